//===- MicroBatchRewriting.h - A step on the axis of time -------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_MICROBATCHREWRITING_H
#define CPP_TRANSFORMS_MICROBATCHREWRITING_H

#include "cpp/transforms/MicroBatchStates.h"
#include "mlir/IR/IRMapping.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// Writes the body of a step anew with shardings on the axis of time. Where a
/// value leaves the micro-batches it goes through an `alpa.accumulate`.
///
/// First what is needed of every value is found, from the last user to the
/// makers; then the operators are copied, each as often and in the forms in
/// which it is needed.
class MicroBatchRewriting {
public:
  MicroBatchRewriting(func::FuncOp function, MicroBatchStates &states);

  void run();

private:
  using Key = std::pair<Value, int>;

  // What is needed
  void findBeside(Block &block);
  void need(Value value, TimeEntry entry);
  void needAfter(Value value);
  void plan(Block &block);
  void plan(Operation *op);
  void planChosen(Operation *op, const TimeRows &rows);
  void planSame(Operation *op);
  void planBarrier(Operation *op);
  void planRegions(Operation *op, const TimeRows &rows);
  bool isCompared(Operation *op) const;
  void execute(Operation *op, const TimeRows &rows);
  bool isNeeded(Value value, TimeEntry entry) const;

  // The new body
  void addArguments(Block &target);
  void emit(Block &block);
  void emit(Operation *op);
  void emitBarrier(Operation *op);
  void emitExecution(Operation *op, const TimeRows &rows);
  void emitLockstep(stablehlo::ReduceOp op, const TimeRows &rows);
  void emitRegions(DataFlowOpInterface op, Operation *made,
                   const TimeRows &rows);
  void emitAfter(Operation *op);
  void record(Value value, TimeEntry entry, Value made);
  Value lookUp(Value value, TimeEntry entry) const;
  Value lookUpAfter(Value value) const;
  /// Values from outside that regions of an operator use.
  void mapCaptured(Operation *op, IRMapping &mapping, bool isAfter);
  void annotate(Operation *op, ArrayRef<TimeEntry> operands,
                ArrayRef<TimeEntry> results);
  void annotateSame(Operation *op);
  ArrayAttr getShardings(ValueRange values, ArrayRef<TimeEntry> entries);

  func::FuncOp function;
  MicroBatchStates &states;
  OpBuilder builder;
  DenseMap<Value, llvm::SmallSetVector<TimeEntry, 2>> needed;
  llvm::DenseSet<Value> joins;
  /// Values of the whole of which elements are picked.
  llvm::DenseSet<Value> picked;
  /// What is the same for all micro-batches and cannot be made without one:
  /// results of loops that hand on parts as well, and what follows from them.
  llvm::DenseSet<Value> beside;
  DenseMap<Operation *, SmallVector<TimeRows, 1>> executions;
  DenseMap<Key, Value> versions;
  DenseMap<Value, Value> joined;
  int64_t numBarriers = 0;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MICROBATCHREWRITING_H
