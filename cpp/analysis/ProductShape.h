//===- ProductShape.h - Products as products of matrices --------*- C++ -*-===//

#ifndef CPP_ANALYSIS_PRODUCTSHAPE_H
#define CPP_ANALYSIS_PRODUCTSHAPE_H

#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/Operation.h"
#include <array>

namespace mlir::alpa {

/// batch, m, n, k: of a matrix product, or of the one that a convolution is
/// computed as.
using ProductShape = std::array<double, 4>;

/// What decides, beside its shape, how fast the kernels of a product are.
enum class ProductForm : int8_t {
  Usual,
  /// Sums run over the slower dimension of both operands' matrices, as in the
  /// gradient of a parameter. Of batches XLA chooses the order.
  SumsInFront,
  /// A convolution of single positions, of groups, or of windows with holes.
  Convolution,
  /// The gradient of its kernel: a convolution over the positions of its input.
  KernelGradient,
  /// Windows of neighbours that move by one, which libraries compute with fewer
  /// multiplications (Lavin and Gray, arXiv 1509.09308).
  Windowed,
  WindowedKernelGradient,
  /// Windows that leave positions out, or, in gradients, meet zeros.
  Strided,
  StridedKernelGradient,
  /// A convolution whose input has fewer channels than libraries take at once,
  /// as the colours of an image, and the gradient of its kernel.
  FewChannels,
  FewChannelsKernelGradient,
};

ProductForm getProductForm(Operation *op);

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

/// How many times as much a kernel multiplies on one device that takes the
/// channels of an input in eights; 1 but for convolutions of few channels.
///
/// Args: as of `getProductShape`.
double getChannelPadding(Operation *op, const ShardingRule &rule,
                         ArrayRef<int> factorRow, ArrayRef<int64_t> meshShape);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_PRODUCTSHAPE_H
