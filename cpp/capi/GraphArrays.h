//===- GraphArrays.h - Strategy graphs as flat arrays -----------*- C++ -*-===//

#ifndef CPP_CAPI_GRAPHARRAYS_H
#define CPP_CAPI_GRAPHARRAYS_H

#include "cpp/analysis/StrategyGraph.h"
#include "cpp/capi/Result.h"

namespace mlir::alpa {

/// Adds the arrays and lists that stablehlo_alpa.cost.StrategyGraph reads.
void addGraphArrays(const StrategyGraph &graph, AlpaResult &result);

} // namespace mlir::alpa

#endif // CPP_CAPI_GRAPHARRAYS_H
