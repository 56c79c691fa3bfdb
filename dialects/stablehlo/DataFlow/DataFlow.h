//===- DataFlow.h - Regions of StableHLO operators --------------*- C++ -*-===//
//
// External models of `DataFlowOpInterface` for StableHLO and CHLO.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_DATAFLOW_DATAFLOW_H
#define DIALECTS_STABLEHLO_DATAFLOW_DATAFLOW_H

namespace mlir {
class DialectRegistry;

namespace stablehlo {

/// Attaches the models when the StableHLO or CHLO dialect is loaded: `while`,
/// `case` and `if`, and `chlo.scan`.
void registerDataFlow(DialectRegistry &registry);

} // namespace stablehlo
} // namespace mlir

#endif // DIALECTS_STABLEHLO_DATAFLOW_DATAFLOW_H
