//===- StageSlicing.h - The part of a step that one mesh runs ---*- C++ -*-===//
//
// A step whose operators have layers and phases (see LayerMarking.h) is cut
// into stages: runs of layers, each on a mesh of its own. Forward and backward
// operators go where their layer goes, the update of a parameter goes where its
// gradient is.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_STAGESLICING_H
#define CPP_TRANSFORMS_STAGESLICING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

class StageSlicing {
public:
  /// \param stageOfLayer the stage of every layer, ascending from 0.
  /// \param lastMakesFree results made from arguments alone are made by the
  /// last stage instead of the first.
  StageSlicing(func::FuncOp function, ArrayRef<int64_t> stageOfLayer,
               bool lastMakesFree = false);

  /// Gives every operator its stage. Fails if a layer has no stage.
  LogicalResult run();

  /// The function of one stage, made at the insertion point: its arguments and
  /// results say what they are (`alpa.input`, `alpa.output`,
  /// `alpa.transfer`). Numbers of transfers are the same in all stages.
  func::FuncOp slice(OpBuilder &builder, int64_t stage, StringRef name) const;

  int64_t getNumStages() const { return numStages; }

private:
  class Extraction;

  void splitSums();
  Value splitSum(Value value, Operation *accumulate);
  bool spansStages(Value value) const;
  int64_t getComputeStage(Operation *op) const;
  LogicalResult placeComputed();
  void placeApplied();
  int64_t findMaker(Value value) const;
  void placeOutputs();
  void numberTransfers();
  void numberApplyPhases();
  void markOnce();
  bool crossesOnce(Value value) const;
  NamedAttribute getArgumentKind(BlockArgument argument) const;
  int64_t getStage(Value value) const;

  func::FuncOp function;
  Block &block;
  SmallVector<int64_t> stageOfLayer;
  bool lastMakesFree;
  int64_t numStages = 1;
  /// Operators without a stage are made again wherever they are used.
  DenseMap<Operation *, int64_t> stages;
  /// The stage that keeps an argument, as far as one is known.
  DenseMap<Value, int64_t> owners;
  SmallVector<int64_t> outputStages;
  DenseMap<Value, int64_t> transfers;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_STAGESLICING_H
