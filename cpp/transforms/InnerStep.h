//===- InnerStep.h - What goes through the batch in a region ----*- C++ -*-===//

#ifndef CPP_TRANSFORMS_INNERSTEP_H
#define CPP_TRANSFORMS_INNERSTEP_H

#include "cpp/transforms/MicroBatchStates.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// What a turn of a loop or a branch does with the whole batch (the points that
/// a line search tries, several updates on one batch) becomes a function of the
/// batch and of what comes into the region, is cut into micro-batches as the
/// step is, and comes back as a loop over them inside of the region.
class InnerStep {
public:
  /// \param body of a loop, or a branch, of an operator of the step.
  /// \param states of the step.
  InnerStep(Block &body, const MicroBatchStates &states);

  /// A module inside of that of the step, with its function.
  ModuleOp outline();
  /// Arguments of that function that hold a batch.
  ArrayRef<int64_t> getBatch() const { return batch; }
  /// Whether it uses no parts of any value of the step, and has nothing to cut.
  bool isOfNoBatch() const;

  /// Puts the function, which is that of one micro-batch by now, into the
  /// region. Fails, and nothing has changed, if it needs sums over the
  /// micro-batches before the last is through.
  LogicalResult embed(ModuleOp module);

private:
  void findTaken();
  void findBatch();

  Block &body;
  Operation *op;
  const MicroBatchStates &states;
  /// What the function takes: arguments of the region, and values from outside
  /// of it; and what it returns.
  llvm::SetVector<Value> taken, returned;
  SmallVector<int64_t> batch;
};

/// Regions of an operator that may be cut so: they multiply, outside of what is
/// differentiated, and all of the operator is left for behind the
/// micro-batches.
SmallVector<Region *> getInnerSteps(Operation *op,
                                    const MicroBatchStates &states);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_INNERSTEP_H
