//===- Quantization.h - verifiers of quantized elements ---------*- C++ -*-===//
//
// All hold of types without quantized elements.
//
//===----------------------------------------------------------------------===//

#ifndef STABLEHLO_LIB_VERIFIERS_QUANTIZATION_H
#define STABLEHLO_LIB_VERIFIERS_QUANTIZATION_H

#include "Checks.h"
#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::stablehlo::verifiers {

bool isAnyQuantized(TypeRange types);

/// One scale and zero point, or the same ones for each entry of an axis.
LogicalResult verifySameQuantization(Operation *op, Type lhs, Type rhs);

/// A reshape keeps the quantized dimension and what is before it.
LogicalResult verifyReshapedAxis(Operation *op, RankedTensorType in,
                                 RankedTensorType out);

/// A transposition moves the quantized dimension with the others.
LogicalResult verifyTransposedAxis(Operation *op, Type in, Type out,
                                   ArrayRef<int64_t> permutation);

/// A broadcast to `dims` moves the quantized dimension with the others.
LogicalResult verifyBroadcastAxis(Operation *op, RankedTensorType in,
                                  RankedTensorType out, ArrayRef<int64_t> dims);

/// Types of a product of which one is quantized.
LogicalResult verifyProductQuantization(Operation *op, Type lhs, Type rhs,
                                        Type result);
LogicalResult verifyDotQuantization(DotGeneralOp op);
LogicalResult verifyConvolutionQuantization(Operation *op, Type lhs, Type rhs,
                                            Type result,
                                            ConvDimensionNumbersAttr dims);

} // namespace mlir::stablehlo::verifiers

#endif // STABLEHLO_LIB_VERIFIERS_QUANTIZATION_H
