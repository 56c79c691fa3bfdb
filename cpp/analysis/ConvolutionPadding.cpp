//===- ConvolutionPadding.cpp - What convolutions read in copies ----------===//

#include "cpp/analysis/ConvolutionPadding.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

static int64_t getOr(std::optional<ArrayRef<int64_t>> values, size_t place) {
  return values ? (*values)[place] : 1;
}

/// True if XLA sees the gradient of a convolution's input: a kernel that is
/// reversed, or has nothing to be reversed.
static bool isInputGradient(stablehlo::ConvolutionOp op) {
  auto kernel = cast<RankedTensorType>(op.getRhs().getType());
  ArrayRef<int64_t> dims =
      op.getDimensionNumbers().getKernelSpatialDimensions();
  return op.getRhs().getDefiningOp<stablehlo::ReverseOp>() ||
         llvm::all_of(
             dims, [&](int64_t dim) { return kernel.getDimSize(dim) == 1; }) ||
         (op.getWindowReversal() &&
          llvm::all_of(*op.getWindowReversal(), [](bool is) { return is; }));
}

int64_t countPaddedElements(Operation *op) {
  auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op);
  if (!convolution || !convolution.getPadding()) {
    return 0;
  }
  auto input = cast<RankedTensorType>(convolution.getLhs().getType());
  SmallVector<int64_t> padding =
      llvm::to_vector(convolution.getPaddingAttr().getValues<int64_t>());
  int64_t numElements = input.getNumElements();
  bool isPadded = false;
  for (auto [place, dim] : llvm::enumerate(
           convolution.getDimensionNumbers().getInputSpatialDimensions())) {
    int64_t low = padding[2 * place], high = padding[2 * place + 1];
    int64_t holes = getOr(convolution.getLhsDilation(), place);
    if (low < 0 || high < 0 || (holes > 1 && isInputGradient(convolution))) {
      return 0;
    }
    // The gradient of a kernel keeps what both ends have in common.
    int64_t kept = getOr(convolution.getRhsDilation(), place) > 1
                       ? 2 * std::min(low, high)
                       : 0;
    int64_t size = input.getDimSize(dim);
    isPadded |= low != high || holes > 1;
    numElements =
        numElements / size * ((size - 1) * holes + 1 + low + high - kept);
  }
  return isPadded ? numElements : 0;
}

BlockArgument getTransposedKernel(Operation *op) {
  auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op);
  if (!convolution) {
    return {};
  }
  Value kernel = convolution.getRhs();
  auto numbers = convolution.getDimensionNumbers();
  int64_t first = numbers.getKernelOutputFeatureDimension(),
          last = numbers.getKernelInputFeatureDimension();
  if (isInputGradient(convolution)) {
    std::swap(first, last);
    if (auto reverse = kernel.getDefiningOp<stablehlo::ReverseOp>()) {
      kernel = reverse.getOperand();
    }
  }
  auto argument = dyn_cast<BlockArgument>(kernel);
  auto function = argument ? argument.getOwner()->getParentOp() : nullptr;
  if (!isa_and_nonnull<FunctionOpInterface>(function)) {
    return {};
  }
  SmallVector<int64_t> order{first};
  llvm::append_range(order, numbers.getKernelSpatialDimensions());
  order.push_back(last);
  auto type = cast<RankedTensorType>(argument.getType());
  llvm::erase_if(order, [&](int64_t dim) { return type.getDimSize(dim) == 1; });
  return llvm::is_sorted(order) ? BlockArgument() : argument;
}

} // namespace mlir::alpa
