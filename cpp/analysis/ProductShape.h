//===- ProductShape.h - Products as products of matrices --------*- C++ -*-===//

#ifndef CPP_ANALYSIS_PRODUCTSHAPE_H
#define CPP_ANALYSIS_PRODUCTSHAPE_H

#include "dialects/alpa/ShardingRule.h"
#include <array>

namespace mlir::alpa {

/// batch, m, n, k: of a matrix product, or of the one that a convolution is
/// computed as.
using ProductShape = std::array<double, 4>;

/// The shape on one device. Factors of both operands and the result are
/// batches, those of the right one and the result columns, all others of the
/// result rows; the length of the sums is what the FLOPs leave.
///
///   C[b, q, h] = A[b, q, d] B[b, d, h], b over 4 devices: [B/4, Q, H, D]
///
/// Args:
///   rule: of an operator that is a product (see ArgumentUses.h).
///   factorRow: the factor that each mesh axis splits.
ProductShape getProductShape(const ShardingRule &rule, ArrayRef<int> factorRow,
                             ArrayRef<int64_t> meshShape);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_PRODUCTSHAPE_H
