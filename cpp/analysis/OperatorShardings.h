//===- OperatorShardings.h - The plan of one operator -----------*- C++ -*-===//

#ifndef CPP_ANALYSIS_OPERATORSHARDINGS_H
#define CPP_ANALYSIS_OPERATORSHARDINGS_H

#include "cpp/analysis/FactorMapping.h"

namespace mlir::alpa {

/// Every operand and every result whole on every device.
OperatorRows getReplicatedRows(Operation *op, unsigned numAxes);

/// What follows for an operator from its rule and the strategy that is written
/// on it; of a computation that its author has split, what he says. Everything
/// is replicated of an operator that has no rule.
///
/// Emits an error if there is no strategy, or if it is none of the rule's.
FailureOr<OperatorRows> getPlannedRows(Operation *op, MeshAttr mesh);

/// The strategy from which shardings follow; none if there is no such strategy.
std::optional<FactorRow> findFactorRow(const ShardingRule &rule,
                                       const OperatorRows &rows,
                                       ArrayRef<int64_t> meshShape);

/// Writes `alpa.operands` and `alpa.results`.
void setShardings(Operation *op, const OperatorRows &rows);

/// Writes the strategy of an operator that has a rule.
void setStrategy(Operation *op, ArrayRef<int> factorRow);

/// Writes shardings, and the strategy from which they follow, if there is one.
void setPlan(Operation *op, const OperatorRows &rows,
             ArrayRef<int64_t> meshShape);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_OPERATORSHARDINGS_H
