//===- IndexComponents.h - Components of the indices of a lookup *- C++ -*-===//

#ifndef PASSES_INDEXCOMPONENTS_H
#define PASSES_INDEXCOMPONENTS_H

#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include <optional>

namespace mlir::alpa {

/// The dimension of `indices` along which a component of every index vector is
/// known to be its own position. Seen through concatenations, limits that no
/// position exceeds, loops that hand indices on, and stacks that a counted loop
/// fills turn by turn, as a scan keeps them for its gradient.
/// \param vectorDim the dimension of the components; the rank of `indices` if
/// every element is an index.
std::optional<int64_t> getOwnPositions(Value indices, int64_t vectorDim,
                                       int64_t component);

/// Indices that have some components of `indices` only, in ascending order.
Value getComponents(Value indices, int64_t vectorDim,
                    ArrayRef<int64_t> components);

} // namespace mlir::alpa

#endif // PASSES_INDEXCOMPONENTS_H
