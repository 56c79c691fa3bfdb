//===- SplitSums.h - Products in several parts ------------------*- C++ -*-===//
//
// XLA for GPU splits the sums of a product whose result has too few tiles for
// the device into parts, which lie beside each other until a kernel of their
// own adds them up (`SplitkRewriter`).
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_SPLITSUMS_H
#define CPP_ANALYSIS_SPLITSUMS_H

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// Bytes of the parts of a per-device product beside those of its result, as a
/// share of these; 0 for one that is not split.
///
/// \param widening how much wider the product is computed, as one with others
///        of the same operand (see MergedProducts.h).
double getPartsRatio(stablehlo::DotGeneralOp op, double widening = 1);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_SPLITSUMS_H
