//===- RuleBuilder.h - Writing sharding rules -------------------*- C++ -*-===//
//
// What the rules of all families share: a builder that cannot produce a rule
// that does not fit its operator, and questions about types and constants.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_RULEBUILDER_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_RULEBUILDER_H

#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/TypeUtilities.h"
#include <optional>

namespace mlir::stablehlo {

/// Base of an external model: `struct Model : RuleModel<Model, AddOp>`.
template <typename Model, typename Op>
using RuleModel = alpa::ShardingRuleOpInterface::ExternalModel<Model, Op>;

/// Builds the rule of `op` dimension by dimension. Dimensions that are not
/// mentioned become replicated factors of their own. Wherever a dimension
/// number, a size or a type does not fit, `finish` returns
/// `ShardingRule::replicated`, which is right for every instance.
class RuleBuilder {
public:
  explicit RuleBuilder(Operation *op);

  /// Sizes; 1 for a position that does not exist.
  int64_t getOperandSize(unsigned operand, int64_t dim);
  int64_t getResultSize(unsigned result, int64_t dim);
  int64_t getOperandRank(unsigned operand) const;
  int64_t getResultRank(unsigned result) const;

  /// A new factor; a loop of one iteration needs none.
  alpa::DimFactors
  addFactor(int64_t size, alpa::FactorKind kind,
            alpa::ReductionKind reduction = alpa::ReductionKind::Sum,
            bool isWindowed = false);
  alpa::DimFactors addParallel(int64_t size) {
    return addFactor(size, alpa::FactorKind::Parallel);
  }
  alpa::DimFactors addReplicated(int64_t size) {
    return addFactor(size, alpa::FactorKind::Replicated);
  }

  /// Appends factors, major to minor, to those of a dimension.
  void appendOperand(unsigned operand, int64_t dim, ArrayRef<unsigned> factors);
  void appendResult(unsigned result, int64_t dim, ArrayRef<unsigned> factors);

  /// A parallel factor shared by a dimension of an operand and of a result.
  void share(unsigned operand, int64_t operandDim, unsigned result,
             int64_t resultDim);

  /// Whether all types have loops that can be split, and all went well so far.
  bool isUsable() const { return isValid; }

  /// Gives up: the rule will be the replicated one.
  void invalidate() { isValid = false; }

  /// What is not about dimensions is set here.
  alpa::ShardingRule &getRule() { return rule; }

  alpa::ShardingRule finish();

private:
  bool fits(const alpa::TensorFactors &tensor, Type type) const;
  void replicateRest(alpa::TensorFactors &tensor, Type type);

  Operation *op;
  alpa::ShardingRule rule;
  bool isValid = true;
};

/// Whether some loop of more than one iteration cannot be split: an operator
/// with such a rule may force a reshard and therefore leads.
bool hasReplicatedFactor(const alpa::ShardingRule &rule);

/// `Leader` if the rule has a replicated factor, else `Follower`.
alpa::OperatorRole getRoleOf(const alpa::ShardingRule &rule);

using alpa::isSummable;

/// Whether shares of a sum of type `from` are, as they stand, shares of the sum
/// in type `to`: the types are equal, or floating-point and `to` has every
/// value of `from`. Wider integers do not: shares wrap. Narrower floats do not:
/// they overflow and round what would have cancelled.
bool keepsShares(Type from, Type to);

/// Number of elements of a value of static shape, else 0.
double getNumElements(Value value);
double getNumElements(Type type);

/// Bytes of a device's block of a tensor, its factors being split in so many
/// blocks.
double getBlockBytes(Type type, const alpa::TensorFactors &tensor,
                     ArrayRef<int64_t> factorShards);

/// Whether a reducer with some initial values combines single elements. One
/// that combines whole tensors fixes their sizes.
bool combinesElements(ValueRange inits);

/// The monoid of a reducer with two arguments: the body is a single operation
/// on the two arguments.
std::optional<alpa::ReductionKind> getReductionKind(Region &body);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_RULEBUILDER_H
