//===- ProductShape.cpp - Products as products of matrices ----------------===//

#include "cpp/analysis/ProductShape.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

static bool has(const TensorFactors &tensor, unsigned factor) {
  return llvm::any_of(tensor, [&](const DimFactors &factors) {
    return llvm::is_contained(factors, factor);
  });
}

/// True if an operand's sums run over dimensions in front of those of its rows
/// or columns, one of each at least.
static bool hasSumsInFront(Value operand, ArrayRef<int64_t> sums) {
  std::optional<int64_t> lastSum, firstOther;
  for (auto [dim, size] :
       llvm::enumerate(cast<RankedTensorType>(operand.getType()).getShape())) {
    if (size == 1) {
      continue;
    }
    if (llvm::is_contained(sums, dim)) {
      lastSum = dim;
    } else if (!firstOther) {
      firstOther = dim;
    }
  }
  return lastSum && firstOther && *lastSum < *firstOther;
}

static int64_t countElements(Value value, ArrayRef<int64_t> dims) {
  int64_t product = 1;
  for (int64_t dim : dims) {
    product *= cast<RankedTensorType>(value.getType()).getDimSize(dim);
  }
  return product;
}

static bool isAboveOne(std::optional<ArrayRef<int64_t>> sizes) {
  return sizes && llvm::any_of(*sizes, [](int64_t size) { return size > 1; });
}

/// Channels of vectors that libraries load at once: 16 bytes of 16 bits.
static constexpr int64_t kChannels = 8;

/// True of the gradient of a kernel: kernels trade places with results there,
/// and strides with holes. So what takes the kernel's place reaches, with its
/// holes, over more positions than the result has, which are fewer than those
/// of the input.
static bool isKernelGradient(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  auto kernel = cast<RankedTensorType>(op.getRhs().getType());
  int64_t reach = 1;
  for (auto [index, dim] :
       llvm::enumerate(numbers.getKernelSpatialDimensions())) {
    int64_t holes = op.getRhsDilation() ? (*op.getRhsDilation())[index] : 1;
    reach *= (kernel.getDimSize(dim) - 1) * holes + 1;
  }
  int64_t positions =
      countElements(op.getResult(), numbers.getOutputSpatialDimensions());
  return reach > positions &&
         countElements(op.getLhs(), numbers.getInputSpatialDimensions()) >
             positions;
}

static bool isGrouped(stablehlo::ConvolutionOp op) {
  return op.getFeatureGroupCount() > 1 || op.getBatchGroupCount() > 1;
}

/// The dimension of the input that its channels lie along: what is summed up,
/// and rows of the result in the gradient of a kernel.
static int64_t getChannelDim(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  return isKernelGradient(op) ? numbers.getInputBatchDimension()
                              : numbers.getInputFeatureDimension();
}

static bool hasFewChannels(stablehlo::ConvolutionOp op) {
  return !isGrouped(op) &&
         countElements(op.getLhs(), getChannelDim(op)) < kChannels;
}

static ProductForm getConvolutionForm(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  int64_t window =
      countElements(op.getRhs(), numbers.getKernelSpatialDimensions());
  int64_t positions =
      countElements(op.getResult(), numbers.getOutputSpatialDimensions());
  bool moves = isAboveOne(op.getWindowStrides());
  bool hasHoles = isAboveOne(op.getRhsDilation());
  bool isGradient = isKernelGradient(op);
  if (hasFewChannels(op)) {
    return isGradient ? ProductForm::FewChannelsKernelGradient
                      : ProductForm::FewChannels;
  }
  if (isGradient) {
    if (isGrouped(op) || moves) {
      return ProductForm::KernelGradient;
    }
    return hasHoles        ? ProductForm::StridedKernelGradient
           : positions > 1 ? ProductForm::WindowedKernelGradient
                           : ProductForm::KernelGradient;
  }
  if (isGrouped(op) || hasHoles) {
    return ProductForm::Convolution;
  }
  return moves || isAboveOne(op.getLhsDilation()) ? ProductForm::Strided
         : window > 1                             ? ProductForm::Windowed
                                                  : ProductForm::Convolution;
}

ProductForm getProductForm(Operation *op) {
  if (auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op)) {
    return getConvolutionForm(convolution);
  }
  auto product = dyn_cast<stablehlo::DotGeneralOp>(op);
  if (!product) {
    return ProductForm::Usual;
  }
  auto numbers = product.getDotDimensionNumbers();
  auto type = cast<RankedTensorType>(product.getLhs().getType());
  bool isBatch =
      llvm::any_of(numbers.getLhsBatchingDimensions(),
                   [&](int64_t dim) { return type.getDimSize(dim) > 1; });
  bool isInFront =
      !isBatch &&
      hasSumsInFront(product.getLhs(), numbers.getLhsContractingDimensions()) &&
      hasSumsInFront(product.getRhs(), numbers.getRhsContractingDimensions());
  return isInFront ? ProductForm::SumsInFront : ProductForm::Usual;
}

/// The sizes of a rule's factors on one device.
static SmallVector<double> getLocalSizes(const ShardingRule &rule,
                                         ArrayRef<int> factorRow,
                                         ArrayRef<int64_t> meshShape) {
  SmallVector<double> sizes;
  for (const Factor &factor : rule.factors) {
    sizes.push_back(static_cast<double>(factor.size));
  }
  for (auto [axis, factor] : llvm::enumerate(factorRow)) {
    if (factor >= 0) {
      sizes[factor] /= static_cast<double>(meshShape[axis]);
    }
  }
  return sizes;
}

ProductShape getProductShape(const ShardingRule &rule, ArrayRef<int> factorRow,
                             ArrayRef<int64_t> meshShape) {
  enum { Batch, Rows, Columns, Sums };
  ProductShape shape = {1, 1, 1, 1};
  double flops = rule.flops;
  SmallVector<double> sizes = getLocalSizes(rule, factorRow, meshShape);
  for (auto [axis, factor] : llvm::enumerate(factorRow)) {
    if (factor >= 0) {
      flops /= static_cast<double>(meshShape[axis]);
    }
  }
  for (auto [factor, size] : llvm::enumerate(sizes)) {
    if (!has(rule.results.front(), factor)) {
      continue;
    }
    bool isLeft = has(rule.operands[0], factor);
    bool isRight = has(rule.operands[1], factor);
    // The positions of a convolution are rows, whose operand is a window.
    bool isColumn = isRight && !isLeft;
    shape[isLeft && isRight ? Batch : isColumn ? Columns : Rows] *= size;
  }
  double results = shape[Batch] * shape[Rows] * shape[Columns];
  shape[Sums] = results > 0 ? flops / (2 * results) : 0;
  return shape;
}

double getChannelPadding(Operation *op, const ShardingRule &rule,
                         ArrayRef<int> factorRow, ArrayRef<int64_t> meshShape) {
  auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op);
  if (!convolution || !hasFewChannels(convolution)) {
    return 1;
  }
  SmallVector<double> sizes = getLocalSizes(rule, factorRow, meshShape);
  double channels = 1;
  for (unsigned factor : rule.operands[0][getChannelDim(convolution)]) {
    channels *= sizes[factor];
  }
  return kChannels / channels;
}

} // namespace mlir::alpa
