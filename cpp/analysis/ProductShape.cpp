//===- ProductShape.cpp - Products as products of matrices ----------------===//

#include "cpp/analysis/ProductShape.h"

namespace mlir::alpa {

static bool has(const TensorFactors &tensor, unsigned factor) {
  return llvm::any_of(tensor, [&](const DimFactors &factors) {
    return llvm::is_contained(factors, factor);
  });
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
