//===- Combination.h - How devices combine what they have -------*- C++ -*-===//
//
// The blocks of a split loop that is no sum are combined right behind their
// operator, those of an ordered or windowed one within its local form. What
// partitioners of XLA take in an all-reduce depends on the type.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_COMBINATION_H
#define CPP_ANALYSIS_COMBINATION_H

#include "cpp/analysis/FactorMapping.h"
#include "cpp/analysis/StrategyGraph.h"

namespace mlir::alpa {

/// The collective that combines, the element type that values are brought to
/// for it, and that of the elements that it moves.
struct Combination {
  CollectiveKind collective;
  Type valueType;
  Type wireType;
};

/// How values of a type are combined:
/// - minima and maxima of floats as integers in the same order, since the
///   floating-point ones of collectives may lose a NaN; small floats as those
///   of 32 bits;
/// - integers of less than 8 bits as those of 8, booleans excepted;
/// - `and` and `or` of integers, which no all-reduce takes, by an all-gather
/// and
///   a reduction on each device;
/// - everything else by an all-reduce as it is.
Combination getCombination(ReductionKind kind, Type elementType);

/// False if `getCombinedVolumes` is empty for every strategy of an operator.
bool combinesAtOnce(Operation *op, const ShardingRule &rule);

/// What the devices exchange right behind an operator besides its reshards.
///
/// \param factorRow what each axis of the mesh splits.
/// \param resultRows shardings of the results.
std::vector<VolumeStep> getCombinedVolumes(Operation *op,
                                           const ShardingRule &rule,
                                           ArrayRef<int> factorRow,
                                           ArrayRef<ShardingRow> resultRows,
                                           ArrayRef<int64_t> meshShape);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_COMBINATION_H
