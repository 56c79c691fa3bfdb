//===- OperatorShardings.h - The plan of one operator -----------*- C++ -*-===//

#ifndef CPP_ANALYSIS_OPERATORSHARDINGS_H
#define CPP_ANALYSIS_OPERATORSHARDINGS_H

#include "cpp/analysis/FactorMapping.h"
#include "dialects/alpa/DataFlow.h"

namespace mlir::alpa {

/// Every operand and every result whole on every device.
OperatorRows getReplicatedRows(Operation *op, unsigned numAxes);

/// What follows for an operator from its rule and the strategy that is written
/// on it; of a computation that its author has split, what he says. Everything
/// is replicated of an operator that has no rule.
///
/// Emits an error if there is no strategy, or if it is none of the rule's for
/// such shares of sums.
FailureOr<OperatorRows> getPlannedRows(Operation *op, MeshAttr mesh,
                                       Shares shares = Shares::OfDevices);

/// What the operands of a region's terminator have to be: each as the edge that
/// it is on, and whole on every device where it is on none.
SmallVector<ShardingAttr> getReturnedShardings(DataFlowOpInterface op,
                                               const DataFlowEdges &edges,
                                               Operation *terminator);

/// The strategy from which shardings follow; none if there is no such strategy.
std::optional<FactorRow> findFactorRow(const ShardingRule &rule,
                                       const OperatorRows &rows,
                                       ArrayRef<int64_t> meshShape,
                                       Shares shares = Shares::OfDevices);

/// Writes `alpa.operands` and `alpa.results`.
void setShardings(Operation *op, const OperatorRows &rows);

/// Writes the strategy of an operator that has a rule.
void setStrategy(Operation *op, ArrayRef<int> factorRow);

/// Writes shardings, and the strategy from which they follow, if there is one.
void setPlan(Operation *op, const OperatorRows &rows,
             ArrayRef<int64_t> meshShape, Shares shares = Shares::OfDevices);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_OPERATORSHARDINGS_H
