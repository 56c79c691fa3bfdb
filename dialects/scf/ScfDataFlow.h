//===- ScfDataFlow.h - Regions of MLIR's scf dialect ------------*- C++ -*-===//

#ifndef DIALECTS_SCF_SCFDATAFLOW_H
#define DIALECTS_SCF_SCFDATAFLOW_H

namespace mlir {
class DialectRegistry;

namespace alpa {

/// Attaches models of `DataFlowOpInterface` to `scf.for`, `scf.while` and
/// `scf.if` when the scf dialect is loaded.
void registerScfDataFlow(DialectRegistry &registry);

} // namespace alpa
} // namespace mlir

#endif // DIALECTS_SCF_SCFDATAFLOW_H
