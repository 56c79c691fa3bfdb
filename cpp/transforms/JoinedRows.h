//===- JoinedRows.h - Batches that are put side by side ---------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_JOINEDROWS_H
#define CPP_TRANSFORMS_JOINEDROWS_H

#include "dialects/alpa/ShardingRule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinTypes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace mlir::alpa {

/// Rows of several tensors, one behind the other.
struct JoinedOrder {
  /// How many rows each has, and the dimension that they are.
  SmallVector<int64_t, 2> sizes;
  int64_t dim;
  bool operator==(const JoinedOrder &other) const {
    return sizes == other.sizes && dim == other.dim;
  }
};

/// Follows rows from where batches are put side by side to where they are taken
/// apart again, or summed up, through operators to which it makes no difference
/// in which order rows are.
class JoinedRows {
public:
  /// A concatenation, slice or padding that joins rows or takes them apart, and
  /// the dimension that they are.
  using Step = std::pair<Operation *, int64_t>;

  JoinedRows(Block &block, int64_t numParts);

  ArrayRef<Step> getSteps() const { return steps; }

  /// Operands whose rows are to be in an order that they do not have.
  ArrayRef<std::pair<OpOperand *, JoinedOrder>> getOthers() const {
    return others;
  }

private:
  /// The rows of an operator as a loop of its rule.
  struct Loop {
    unsigned factor;
    /// Iterations for each of the tensors that were joined.
    SmallVector<int64_t, 2> sizes;
    Operation *origin;
  };

  bool follow(Block &block);
  bool visit(Block &block);
  bool visit(Operation *op);
  bool visitConcatenate(stablehlo::ConcatenateOp op);
  bool visitSlice(stablehlo::SliceOp op);
  bool visitPad(stablehlo::PadOp op);
  bool visitWhile(stablehlo::WhileOp op);
  bool visitBranches(Operation *op);
  bool visitBarrier(Operation *op);
  bool visitByRule(Operation *op);
  bool keepsAssumed(stablehlo::WhileOp op);
  bool isUniform(Value value, int64_t dim);

  std::optional<Loop> findLoop(Operation *op, const ShardingRule &rule);
  bool orderOperands(Operation *op, const ShardingRule &rule, const Loop &loop);
  static JoinedOrder getOrder(const Loop &loop, int64_t dim, int64_t size);
  const JoinedOrder *getOrder(Value value) const;
  void set(Value value, JoinedOrder order, Operation *origin);
  /// Leaves out the rows that an operator uses; false.
  bool exclude(Operation *op);
  bool exclude(Value value);

  int64_t numParts;
  DenseMap<Value, JoinedOrder> orders;
  /// One of the operators that have joined the rows of a value.
  DenseMap<Value, Operation *> origins;
  /// Those whose rows meet.
  llvm::EquivalenceClasses<Operation *> classes;
  llvm::DenseSet<Operation *> excluded;
  /// Of rows that the loss takes apart.
  llvm::DenseSet<Operation *> wanted;
  /// What loops carry and has been taken to be the same along a dimension, as
  /// it is in front of them.
  llvm::DenseSet<std::pair<Value, int64_t>> assumed;
  /// And is not behind a turn.
  llvm::DenseSet<std::pair<Value, int64_t>> refuted;
  SmallVector<JoinedOrder> known;
  SmallVector<Step> steps;
  SmallVector<std::pair<OpOperand *, JoinedOrder>> others;
};

/// Whether a step joins batches and takes them apart again, where it does not
/// show in which order rows are in between.
bool hasJoinedRows(func::FuncOp function, int64_t numParts);

/// Joins batches within each of some equal parts:
///
///     y = f(concatenate([a, b])); y[:n] - y[n:]
///
/// has the first part of `a`, then that of `b`, then the second parts, so that
/// a part of the rows is all that is made of a part of both batches.
void joinInParts(func::FuncOp function, int64_t numParts);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_JOINEDROWS_H
