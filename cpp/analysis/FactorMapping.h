//===- FactorMapping.h - Between factors and tensor dimensions --*- C++ -*-===//
//
// A strategy assigns every mesh axis to a factor of an operator's loop nest.
// These functions translate such assignments to shardings of the operands and
// results, and back.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_FACTORMAPPING_H
#define CPP_ANALYSIS_FACTORMAPPING_H

#include "dialects/alpa/Sharding.h"
#include "dialects/alpa/ShardingRule.h"
#include <optional>

namespace mlir::alpa {

/// Shardings of all operands and results under one assignment.
struct OperatorRows {
  SmallVector<ShardingRow, 3> operands;
  SmallVector<ShardingRow, 2> results;
};

/// Shardings that follow from an assignment; none if a tensor's blocks would
/// not be contiguous (a minor factor of a dimension split before its major
/// ones) or a factor is not divisible.
std::optional<OperatorRows> getOperatorRows(const ShardingRule &rule,
                                            ArrayRef<int> factorRow,
                                            ArrayRef<int64_t> meshShape);

/// Blocks that an assignment splits each factor in.
SmallVector<int64_t> getFactorShards(const ShardingRule &rule,
                                     ArrayRef<int> factorRow,
                                     ArrayRef<int64_t> meshShape);

/// The assignment that a tensor's sharding implies. Axes that fit no factor
/// become `kNoFactor`. `linearSet` is the entry for partial axes.
FactorRow getFactorRow(const ShardingRule &rule, const TensorFactors &tensor,
                       ShardingRowRef row, ArrayRef<int64_t> meshShape,
                       int linearSet);

/// Every valid assignment. `linearSets` lists the entries of
/// `rule.linearOperands` that may be used.
SmallVector<FactorRow> enumerateFactorRows(const ShardingRule &rule,
                                           ArrayRef<int64_t> meshShape,
                                           ArrayRef<unsigned> linearSets);

/// Whose shares of a sum an operator is to be linear in; see
/// `ShardingRule::algebraicSets`.
enum class Shares { OfDevices, OfMicroBatches };

/// Whether an entry of `rule.linearOperands` holds for such shares.
bool holdsFor(const ShardingRule &rule, unsigned set, Shares shares);

/// The entries of `rule.linearOperands` that hold for such shares and all of
/// whose operands can be partial, as `canBePartial` says.
SmallVector<unsigned>
getLinearSets(const ShardingRule &rule, Shares shares,
              function_ref<bool(unsigned operand)> canBePartial);

/// Index of the entry of `rule.linearOperands` that is just {operand} and holds
/// for such shares, or -1.
int findLinearSet(const ShardingRule &rule, unsigned operand,
                  Shares shares = Shares::OfDevices);

/// True if every factor of size > 1 of the operator is one of `tensor`'s and
/// none has to be replicated: following this tensor loses no strategy.
bool coversRule(const ShardingRule &rule, const TensorFactors &tensor);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_FACTORMAPPING_H
