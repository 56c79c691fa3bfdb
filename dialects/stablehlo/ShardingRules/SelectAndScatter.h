//===- SelectAndScatter.h - Gradients of maximum pooling --------*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_SELECTANDSCATTER_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_SELECTANDSCATTER_H

#include "mlir/IR/Builders.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <optional>

namespace mlir::stablehlo {

/// The number that loses to all others where a window selects: -inf for the
/// greatest of floats, inf for the least; none for other selections.
std::optional<double> getLeastSelected(SelectAndScatterOp op);

/// Whether the padding of an operator holds the number that loses to all
/// others.
bool hasExplicitPadding(SelectAndScatterOp op);

/// Puts an operator in the place of one with `alpa.explicit_padding` that has
/// no padding:
///
///   %1 = select_and_scatter %0, %source {alpa.explicit_padding, padding = 1,
///   1}
/// becomes
///   %2 = pad %0, least selected, low = 1, high = 1
///   %3 = select_and_scatter %2, %source
///   %1 = slice %3
///
/// \returns what the slice makes.
Value writePaddingOut(OpBuilder &builder, SelectAndScatterOp op);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_SELECTANDSCATTER_H
