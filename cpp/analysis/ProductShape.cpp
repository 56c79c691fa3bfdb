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

static ProductForm getConvolutionForm(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  int64_t window =
      countElements(op.getRhs(), numbers.getKernelSpatialDimensions());
  int64_t positions =
      countElements(op.getResult(), numbers.getOutputSpatialDimensions());
  bool isGrouped = op.getFeatureGroupCount() > 1 || op.getBatchGroupCount() > 1;
  bool moves = isAboveOne(op.getWindowStrides());
  bool hasHoles = isAboveOne(op.getRhsDilation());
  // Kernels trade places with results there, and strides with holes.
  if (window > positions) {
    if (isGrouped || moves) {
      return ProductForm::KernelGradient;
    }
    return hasHoles        ? ProductForm::StridedKernelGradient
           : positions > 1 ? ProductForm::WindowedKernelGradient
                           : ProductForm::KernelGradient;
  }
  if (isGrouped || hasHoles) {
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

ProductShape getProductShape(const ShardingRule &rule, ArrayRef<int> factorRow,
                             ArrayRef<int64_t> meshShape) {
  enum { Batch, Rows, Columns, Sums };
  ProductShape shape = {1, 1, 1, 1};
  double flops = rule.flops;
  SmallVector<double> sizes;
  for (const Factor &factor : rule.factors) {
    sizes.push_back(static_cast<double>(factor.size));
  }
  for (auto [axis, factor] : llvm::enumerate(factorRow)) {
    if (factor >= 0) {
      sizes[factor] /= static_cast<double>(meshShape[axis]);
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

} // namespace mlir::alpa
