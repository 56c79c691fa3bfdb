//===- ConvolutionPadding.h - What convolutions read in copies --*- C++ -*-===//

#ifndef CPP_ANALYSIS_CONVOLUTIONPADDING_H
#define CPP_ANALYSIS_CONVOLUTIONPADDING_H

#include "mlir/IR/Operation.h"
#include "mlir/IR/Value.h"

namespace mlir::alpa {

/// Elements of the padded input of a convolution; 0 where XLA for GPU does not
/// write one, and for all else.
///
/// cuDNN pads both ends of a dimension alike, and takes no input with holes. So
/// XLA writes the input with its padding where the ends differ, as in a strided
/// convolution of an even size (`ConvPaddingLegalization`), and with its holes
/// where it does not see the gradient of a convolution's input: its kernel is
/// not reversed right in front of it, but before it was gathered.
int64_t countPaddedElements(Operation *op);

/// The argument of the program that a convolution takes a transposed copy of as
/// its kernel; null where there is none.
///
/// XLA has cuDNN take kernels by their output features, then by places, then by
/// input features. The gradient of a convolution's input takes the kernel as it
/// is before it is reversed, and the same copy.
BlockArgument getTransposedKernel(Operation *op);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_CONVOLUTIONPADDING_H
