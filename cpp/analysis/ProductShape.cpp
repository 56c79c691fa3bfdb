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

static bool isKernelGradient(stablehlo::ConvolutionOp op) {
  auto numbers = op.getDimensionNumbers();
  auto count = [](Value value, ArrayRef<int64_t> dims) {
    auto type = cast<RankedTensorType>(value.getType());
    int64_t product = 1;
    for (int64_t dim : dims) {
      product *= type.getDimSize(dim);
    }
    return product;
  };
  return count(op.getRhs(), numbers.getKernelSpatialDimensions()) >
         count(op.getResult(), numbers.getOutputSpatialDimensions());
}

ProductForm getProductForm(Operation *op) {
  if (auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op)) {
    return isKernelGradient(convolution) ? ProductForm::KernelGradient
                                         : ProductForm::Convolution;
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
