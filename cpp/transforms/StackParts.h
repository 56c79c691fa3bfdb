//===- StackParts.h - Tensors in parts --------------------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_STACKPARTS_H
#define CPP_TRANSFORMS_STACKPARTS_H

#include "cpp/transforms/PaddedOperators.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// Where a tensor is cut: sizes of its parts along a dimension.
struct StackCut {
  unsigned dim;
  SmallVector<int64_t> sizes;

  unsigned size() const { return sizes.size(); }
  int64_t getStart(unsigned part) const;
  /// The part that is those elements; none if they are no part.
  std::optional<unsigned> find(int64_t start, int64_t limit) const;
  bool operator==(const StackCut &other) const {
    return dim == other.dim && sizes == other.sizes;
  }
};

/// The type of a part of a tensor.
RankedTensorType getPartType(Value value, const StackCut &cut, unsigned part);

/// Which tensors are cut where, and their parts, which are made when they are
/// asked for: operators that know nothing of the other parts are made again for
/// one part, everything else is sliced.
class StackParts {
public:
  explicit StackParts(func::FuncOp function);

  /// Notes that a tensor is cut, and with it all that is cut by it: what goes
  /// into an operator and out of it along one loop.
  void cut(Value value, StackCut cut);

  /// Where a tensor is cut; null if it is whole.
  const StackCut *find(Value value) const;

  /// A part of a tensor that is cut.
  Value get(Value value, unsigned part);

  /// The parts of an argument instead of what makes one.
  void set(Value value, ArrayRef<Value> parts);

  /// The operator with its operands that are cut in parts, one for each part,
  /// where the loop along which they are is summed up or the like.
  ///
  /// Returns null if there is no such loop, or it cannot be taken apart.
  Value reduceInParts(Operation *op);

  /// Whether a block runs at most once: that of the function, and those of
  /// branches in such a block.
  bool isReached(Block *block);

  /// Whether an operator was made for a part.
  bool isMade(Operation *op) const { return made.contains(op); }

  /// Erases what nothing needs any more, and puts the parts of what goes
  /// through a barrier into the barrier; of a barrier in a layer each part into
  /// one of its own, so that layers do not wait for each other.
  void finish();

private:
  /// The loop of an operator along a dimension of a tensor.
  std::optional<unsigned> findLoop(const ShardingRule &rule,
                                   const TensorFactors &tensor,
                                   unsigned dim) const;
  const ShardingRule *getRule(Operation *op);
  LongerLoops getLoops(const ShardingRule &rule, unsigned factor,
                       int64_t size) const;
  bool canCut(Operation *op, const ShardingRule &rule, unsigned factor);
  /// Whether a tensor is made of constants. It may be cut in several ways, and
  /// says nothing of what else it goes into.
  bool isClosed(Value value);
  /// Whether a tensor is cut so, or made of constants.
  bool isCutAs(Value value, const StackCut &cut);
  Value get(Value value, const StackCut &cut, unsigned part);
  void spread(Operation *op);
  void spreadLoop(Operation *op, const ShardingRule &rule, unsigned factor,
                  ArrayRef<int64_t> sizes);
  /// Whether an operator stands in no branch.
  bool isOfFunction(Operation *op) {
    return op->getBlock() == &function.getBody().front();
  }
  void spreadReshape(Value from, Value to);
  bool areCut(ValueRange operands, const LongerLoops &loops,
              ArrayRef<int64_t> sizes);
  Value reshapePart(stablehlo::ReshapeOp reshape, const StackCut &cut,
                    unsigned part);
  void note(Value value, StackCut cut);
  static bool isBranching(Operation *op);
  void spreadBranches(Operation *op);
  Value throughBranches(OpResult result, const StackCut &cut, unsigned part);
  void dropUnusedResults(Operation *op);
  Value make(Value value, const StackCut &cut, unsigned part);
  Value makePart(OpResult result, const StackCut &cut, unsigned part);
  Value joinOperands(stablehlo::ConcatenateOp concatenate, const StackCut &cut,
                     unsigned part);
  void eraseUnused();
  void rebuild(Operation *barrier);
  Value throughBarrier(OpResult result, const StackCut &cut, unsigned part);
  Value slice(Value value, const StackCut &cut, unsigned part);
  Operation *remake(OpBuilder &builder, Operation *op, const StackCut &cut,
                    unsigned part, const LongerLoops &loops);

  func::FuncOp function;
  DenseMap<Value, StackCut> cuts;
  DenseMap<Value, SmallVector<Value>> parts;
  DenseMap<Operation *, std::unique_ptr<ShardingRule>> rules;
  DenseMap<Operation *, bool> closed;
  llvm::SetVector<Operation *> waiting;
  llvm::DenseSet<Operation *> made;
  /// Of barriers what goes through them in parts: stand-ins, each of which
  /// takes a part of that number.
  llvm::MapVector<Operation *, SmallVector<std::pair<unsigned, Operation *>>>
      standIns;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_STACKPARTS_H
