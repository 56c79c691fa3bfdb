//===- Scan.h - The region of chlo.scan -------------------------*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_DATAFLOW_SCAN_H
#define DIALECTS_STABLEHLO_DATAFLOW_SCAN_H

namespace mlir {
class MLIRContext;

namespace stablehlo {

/// Attaches the model of `chlo.scan`, where the CHLO dialect has that operator.
void attachScanDataFlow(MLIRContext &context);

} // namespace stablehlo
} // namespace mlir

#endif // DIALECTS_STABLEHLO_DATAFLOW_SCAN_H
