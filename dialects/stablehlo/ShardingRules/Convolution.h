//===- Convolution.h - Convolutions in other forms --------------*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_CONVOLUTION_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_CONVOLUTION_H

#include "mlir/IR/Builders.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::stablehlo {

/// Puts a convolution in groups of features in the place of one in groups of
/// the batch, of which there are several:
///
///   %1 = convolution(%0, %kernel) {batch_group_count = 2, [b, 0, f]}
///       : (tensor<6x8x4xf32>, ...)
/// becomes
///   %2 = reshape %0 : tensor<2x3x8x4xf32>
///   %3 = transpose %2 : tensor<3x8x2x4xf32>
///   %4 = reshape %3 : tensor<3x8x8xf32>
///   %1 = convolution(%4, %kernel) {feature_group_count = 2, [b, 0, f]}
///
/// \returns the new convolution.
ConvolutionOp writeBatchGroupsOut(OpBuilder &builder, ConvolutionOp op);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_CONVOLUTION_H
