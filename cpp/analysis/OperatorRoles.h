//===- OperatorRoles.h - What merging says of operators ---------*- C++ -*-===//

#ifndef CPP_ANALYSIS_OPERATORROLES_H
#define CPP_ANALYSIS_OPERATORROLES_H

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"

namespace mlir::alpa {

/// Tensors of no more elements than this are the same on every device: keys of
/// random generators, counters, hyper-parameters. Heuristic: splitting them
/// saves nothing and would cost a node of the graph each.
inline constexpr int64_t kTinyElements = 16;

bool isTiny(Type type);

/// True if any value of an edge of `op` is tiny: then they all stay whole.
bool isTinyEdge(Operation *op, const DataFlowEdge &edge);

/// True if the sum that a reduction leaves over split axes may stay partial:
/// its result is not much smaller than its operand (a gradient summed over a
/// few dimensions). Small results (means, norms, losses) are reduced at once.
bool delaysReduction(Operation *op);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_OPERATORROLES_H
