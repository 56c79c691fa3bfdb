//===- ShardingRule.h - An operator as a loop nest --------------*- C++ -*-===//
//
// The one thing an operator supplies to be planned and lowered: its loops
// (factors), which of them make up every dimension of its operands and
// results, and of what kind each loop is. Strategies, shardings, communication
// volumes, local shapes and the SPMD form all follow from it.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_ALPA_SHARDINGRULE_H
#define DIALECTS_ALPA_SHARDINGRULE_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/Hashing.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>
#include <string>

namespace mlir::alpa {

/// What happens when a mesh axis splits the loop of a factor.
enum class FactorKind {
  /// Iterations are independent: every device computes its block.
  Parallel,
  /// Iterations are combined: results are partial and have to be reduced.
  Reduction,
  /// The loop needs all its iterations on one device: it is never split.
  Replicated,
  /// Iterations depend on each other in a way that the operator knows: its
  /// local form exchanges what blocks have to know of each other. Such a loop
  /// is in an operand, and in those results that have as many elements along
  /// it.
  Ordered,
  /// As `Ordered`, and where an iteration goes depends on all others: the local
  /// form sorts blocks and deals them out, which takes blocks of some size (see
  /// `Factor::canSplit`).
  Sorted,
};

/// How the iterations of a `Reduction` factor are combined. `Sum` leaves a
/// partial value that may be reduced later; every other kind is reduced by an
/// all-reduce right behind the operator.
enum class ReductionKind { Sum, Product, Max, Min, And, Or };

/// The size of a factor in a notation that leaves it to the operator's shapes.
inline constexpr int64_t kUnknownSize = -1;

/// What a factor is called where it has no name: a, b, ... z, f26, f27, ...
std::string getFactorName(unsigned factor);

/// The factor of such a name; none if it is none.
std::optional<unsigned> findFactor(StringRef name);

/// One loop of the nest; `size` is its global trip count.
struct Factor {
  int64_t size;
  FactorKind kind;
  ReductionKind reduction = ReductionKind::Sum;
  /// Blocks of a parallel or summed loop need iterations of the blocks beside
  /// them, as a window does that reaches over the border of its block: the
  /// operator's local form fetches them.
  bool isWindowed = false;

  bool isSum() const {
    return kind == FactorKind::Reduction && reduction == ReductionKind::Sum;
  }
  bool isOrdered() const {
    return kind == FactorKind::Ordered || kind == FactorKind::Sorted;
  }
  /// Whether devices that split the loop have to hear of each other before the
  /// operator is done.
  bool hasExchange() const { return isOrdered() || isWindowed; }
  /// Whether the loop can be in `numBlocks` blocks. Sorted ones are those of
  /// columnsort (Leighton, Tight bounds on the complexity of parallel sorting,
  /// 1985): s blocks of r iterations, r divisible by s and r >= 2 (s - 1)^2.
  bool canSplit(int64_t numBlocks) const;
  bool operator==(const Factor &other) const {
    return size == other.size && kind == other.kind &&
           reduction == other.reduction && isWindowed == other.isWindowed;
  }
};

/// The factors that make up one dimension, major to minor. The product of
/// their sizes is the size of the dimension; an empty list is a dimension of
/// size one or one that is the same on every device.
using DimFactors = SmallVector<unsigned, 1>;

/// One entry per dimension of a tensor.
using TensorFactors = SmallVector<DimFactors, 4>;

/// The loop nest of an operator.
///
/// For `dot_general` of A[b,m,k] and B[b,k,n]:
///   factors  = {b: parallel, m: parallel, n: parallel, k: reduction(sum)}
///   operands = {[b],[m],[k]}, {[b],[k],[n]};  results = {[b],[m],[n]}
struct ShardingRule {
  SmallVector<Factor, 6> factors;
  SmallVector<TensorFactors, 3> operands;
  SmallVector<TensorFactors, 2> results;

  /// Operands that hold a share of the sum themselves when a `Sum` factor is
  /// split: the input of a scatter-add. They have to arrive partial.
  SmallVector<unsigned, 1> accumulators;

  /// Sets of operands in which the operator is linear: if all operands of one
  /// set are partial sums over an axis (and the others are not), then so is the
  /// result. add: {{0, 1}}; multiply: {{0}, {1}}; negate: {{0}}. The empty set
  /// is that of a constant zero, which is a summand as it is: {{}}.
  SmallVector<SmallVector<unsigned, 2>, 2> linearOperands;

  /// Those of `linearOperands`, by number, that hold for real numbers only. In
  /// floating point the shares of a sum may be larger than the sum, or zero
  /// where it is not: a product of them may overflow or be 0 * inf, and a type
  /// of fewer digits rounds what should have cancelled. Shares of devices do
  /// not go through such a set; shares of micro-batches do, as adding up
  /// gradients asks for.
  SmallVector<unsigned, 1> algebraicSets;

  /// Adds a set of linear operands that holds in floating point.
  void addLinear(ArrayRef<unsigned> operands) {
    linearOperands.emplace_back(operands);
  }
  /// Adds one that holds for real numbers only.
  void addAlgebraic(ArrayRef<unsigned> operands) {
    algebraicSets.push_back(linearOperands.size());
    linearOperands.emplace_back(operands);
  }
  /// Whether a set of linear operands holds for real numbers only.
  bool isAlgebraic(unsigned set) const;

  /// Floating-point operations of the whole, unsplit operator.
  double flops = 0;

  /// Operands and results that are only touched in places (the table of a
  /// gather, the operand of an update): they do not count as memory traffic.
  SmallVector<unsigned, 1> untouchedOperands;
  SmallVector<unsigned, 1> untouchedResults;

  unsigned addFactor(int64_t size, FactorKind kind,
                     ReductionKind reduction = ReductionKind::Sum,
                     bool isWindowed = false);

  /// A rule in which every dimension is a factor of its own that is never
  /// split: what an operator without a rule gets.
  static ShardingRule replicated(Operation *op);

  /// One parallel factor per dimension of the result, shared by all operands of
  /// the same shape; operands of rank 0 are replicated.
  static ShardingRule pointwise(Operation *op);

  /// True if no loop can be split: nothing is known of the operator.
  bool isReplicated() const;

  /// True if this rule is `other` with fewer loops that are split and fewer
  /// sets of linear operands: each of its strategies is one of `other`.
  bool isRestrictionOf(const ShardingRule &other) const;

  /// Gives factors without a size the one that the shapes of `op` imply; false
  /// if some are left.
  bool resolveSizes(Operation *op);

  /// What is wrong with the rule whatever its operator is, by the constraints
  /// of `#alpa.rule`; empty if nothing is.
  std::string findFault() const;

  /// Fails with a reason when the rule has a fault, or does not fit `op`.
  LogicalResult verify(Operation *op) const;

  bool operator==(const ShardingRule &other) const;

private:
  /// True if each set of linear operands is one of `other`, for no more shares
  /// than there.
  bool hasLinearSetsOf(const ShardingRule &other) const;
};

llvm::hash_code hash_value(const ShardingRule &rule);

/// Whether `+` on the type is the sum of which devices may hold shares:
/// floats of 16 bits and more, complex numbers and integers, but not booleans
/// and the very small types that have no collectives.
bool isSummable(Type type);

/// What a device has of a sum that it has no part of: numbers that leave others
/// as they are when they are added. That is -0.0, as 0.0 makes 0.0 of -0.0.
DenseElementsAttr getNeutralOfSum(RankedTensorType type);

/// The axis splits no factor: every device does the same along it.
inline constexpr int kNoFactor = -1;
/// `kLinearSet - j`: the operands of `linearOperands[j]` are partial over the
/// axis, and so is the result.
inline constexpr int kLinearSet = -2;

/// A strategy: one entry per mesh axis, a factor or one of the above.
using FactorRow = SmallVector<int, 4>;

/// How an operator takes part in operator merging (Alpa, section 4.2).
enum class OperatorRole {
  /// Has strategies of its own (dot, convolution, gather, scatter, sort ...).
  Leader,
  /// Cheap: follows its deepest operand (elementwise, transpose, reduce ...).
  Follower,
  /// Costs nothing to make again where it is needed, in the sharding in which
  /// it is needed (constant, iota, broadcast).
  Rematerialized,
};

/// What the local form of an operator writes that depends on the mesh.
class LocalCollectives {
public:
  virtual ~LocalCollectives() = default;

  /// The scalar `tensor<elementType>` that holds
  /// (linear index of this device along `axes`) * `blockSize`.
  virtual Value emitOffset(ArrayRef<unsigned> axes, int64_t blockSize,
                           Type elementType) = 0;
  /// The blocks of all devices along `axes`, side by side along `dim`.
  virtual Value emitGather(Value local, int64_t dim,
                           ArrayRef<unsigned> axes) = 0;
  /// What the device has whose linear index along `axes` is less by `distance`;
  /// zeros where there is none.
  virtual Value emitShift(Value local, int64_t distance,
                          ArrayRef<unsigned> axes) = 0;
  /// What the device before this one along `axes` has, the last one being
  /// before the first.
  virtual Value emitRotation(Value local, ArrayRef<unsigned> axes) = 0;
  /// What the device has whose linear index along `axes` has that of this one
  /// as its target; zeros where there is none. A negative target is none.
  virtual Value emitPermutation(Value local, ArrayRef<int64_t> targets,
                                ArrayRef<unsigned> axes) = 0;
  /// What all devices along `axes` have for this one, in their order: of a
  /// value with as many elements along dimension 0 as there are devices, each
  /// gets the one with its number.
  virtual Value emitDeal(Value local, ArrayRef<unsigned> axes) = 0;
};

/// Everything a rule needs to write the form of its operator for one device.
class LocalContext {
public:
  LocalContext(OpBuilder &builder, const ShardingRule &rule,
               ArrayRef<SmallVector<unsigned, 2>> factorAxes,
               ArrayRef<int64_t> factorShards, ValueRange operands,
               TypeRange resultTypes, LocalCollectives &collectives)
      : builder(builder), rule(rule), factorAxes(factorAxes),
        factorShards(factorShards), operands(operands),
        resultTypes(resultTypes), collectives(collectives) {}

  OpBuilder &getBuilder() { return builder; }
  const ShardingRule &getRule() const { return rule; }

  /// Local operands and result types of the operator.
  ValueRange getOperands() const { return operands; }
  TypeRange getResultTypes() const { return resultTypes; }

  /// Mesh axes that split the factor, major to minor.
  ArrayRef<unsigned> getAxes(unsigned factor) const {
    return factorAxes[factor];
  }
  /// In how many blocks the factor is split; 1 if it is not.
  int64_t getNumShards(unsigned factor) const { return factorShards[factor]; }
  /// Trip count of the factor on one device.
  int64_t getLocalSize(unsigned factor) const {
    return rule.factors[factor].size / factorShards[factor];
  }
  /// An integer type that holds every iteration of the factor.
  Type getIndexType(unsigned factor) const;
  /// First iteration of the factor on this device, a `tensor<elementType>`.
  Value getOffset(unsigned factor, Type elementType) {
    return collectives.emitOffset(getAxes(factor), getLocalSize(factor),
                                  elementType);
  }
  /// Number of the block that this device has, a `tensor<elementType>`.
  Value getBlock(unsigned factor, Type elementType) {
    return collectives.emitOffset(getAxes(factor), 1, elementType);
  }
  /// What the devices with the blocks of a split factor have, in the order of
  /// the blocks and side by side along `dim`. `getExchanges` of the operator
  /// tells of each.
  Value gather(Value local, int64_t dim, unsigned factor) {
    return collectives.emitGather(local, dim, getAxes(factor));
  }
  /// What the device has whose block of a split factor is the one so many in
  /// front of that of this device, or behind it where `distance` is negative;
  /// zeros where there is none. `getExchanges` of the operator tells of each.
  Value shift(Value local, int64_t distance, unsigned factor) {
    return collectives.emitShift(local, distance, getAxes(factor));
  }
  /// What the device with the block before that of this device has, the last
  /// block being before the first. `getExchanges` of the operator tells of
  /// each.
  Value rotate(Value local, unsigned factor) {
    return collectives.emitRotation(local, getAxes(factor));
  }
  /// Every device sends what it has to that with the block that stands in the
  /// place of its own in `targets`, all different, or to none where a negative
  /// number stands there; those that hear of none have zeros. `getExchanges` of
  /// the operator tells of each.
  Value permute(Value local, ArrayRef<int64_t> targets, unsigned factor) {
    return collectives.emitPermutation(local, targets, getAxes(factor));
  }
  /// Of a value with as many elements along dimension 0 as the factor has
  /// blocks, the device with each block gets the one with its number; what they
  /// have for this device, in their order. `getExchanges` of the operator tells
  /// of each.
  Value deal(Value local, unsigned factor) {
    return collectives.emitDeal(local, getAxes(factor));
  }

private:
  OpBuilder &builder;
  const ShardingRule &rule;
  ArrayRef<SmallVector<unsigned, 2>> factorAxes;
  ArrayRef<int64_t> factorShards;
  ValueRange operands;
  TypeRange resultTypes;
  LocalCollectives &collectives;
};

/// One collective of a local form along a split factor.
struct Exchange {
  /// What each device contributes.
  double bytes;
  /// To which block it goes: the one so many further on (back, if negative), or
  /// to all of them.
  std::optional<int64_t> distance = std::nullopt;
  /// Whether each block gets a part of its own: an all-to-all.
  bool isDealt = false;
  /// From and to which block it goes, where that is not as far for all.
  SmallVector<std::pair<int64_t, int64_t>, 0> routes = {};
};

/// Per result an all-gather of what a device has of one iteration of a factor,
/// where factors are split in so many blocks; of a result without the factor,
/// of all that the device has.
SmallVector<Exchange> getIterationExchanges(Operation *op,
                                            const ShardingRule &rule,
                                            unsigned factor,
                                            ArrayRef<int64_t> factorShards);

/// The same operator on local operands with local result types, regions and
/// attributes copied: right whenever no attribute names a size that is split.
SmallVector<Value> cloneLocal(Operation *op, LocalContext &context);

/// What the local form of an operator does inside.
struct InnerWork {
  /// The part of the rule's FLOPs that is done; less than one where what adds
  /// nothing is skipped.
  double doneShare = 1;
  /// Bytes that a device reads and writes of what is neither operand nor
  /// result.
  double bytes = 0;
};

} // namespace mlir::alpa

#include "dialects/alpa/ShardingRuleInterface.h.inc"

namespace mlir::alpa {

/// The rule of an operator: the one that it carries (`alpa.rule`), or else its
/// own; none if it has neither.
std::optional<ShardingRule> getShardingRule(Operation *op);

/// Whether it has one.
bool hasShardingRule(Operation *op);

/// Its role in operator merging; one that only carries a rule leads.
OperatorRole getOperatorRole(Operation *op);

/// Whether its results depend on the device that runs it.
bool isDeviceDependent(Operation *op);

/// What its local form sends along an ordered or windowed factor of its rule;
/// see `ShardingRuleOpInterface::getExchanges`.
SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                   unsigned factor,
                                   ArrayRef<int64_t> factorShards);

/// What its local form does that does not follow from rule, operands and
/// results; see `ShardingRuleOpInterface::getInnerWork`.
InnerWork getInnerWork(Operation *op, const ShardingRule &rule,
                       ArrayRef<int64_t> factorShards);

/// Its form for one device; of an operator that knows nothing of its loops
/// itself, the same operator on blocks.
FailureOr<SmallVector<Value>> localize(Operation *op, LocalContext &context);

} // namespace mlir::alpa

#endif // DIALECTS_ALPA_SHARDINGRULE_H
