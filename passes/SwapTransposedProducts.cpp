//===- SwapTransposedProducts.cpp - Products in the order they are read ---===//

#include "passes/Passes.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_SWAPTRANSPOSEDPRODUCTS
#include "passes/Passes.h.inc"

namespace {

/// A product whose sum over devices is transposed.
struct TransposedProduct {
  stablehlo::DotGeneralOp dot;
  /// What completes the sum, the last first; nothing else reads what is made in
  /// between.
  SmallVector<Operation *> sums;
};

/// The order in which dimensions of a product's result come where its operands
/// are swapped: those of a batch, of the right operand, of the left.
SmallVector<int64_t> getSwappedOrder(stablehlo::DotGeneralOp dot) {
  auto numbers = dot.getDotDimensionNumbers();
  auto numBatch =
      static_cast<int64_t>(numbers.getLhsBatchingDimensions().size());
  int64_t numBefore =
      cast<RankedTensorType>(dot.getLhs().getType()).getRank() -
      static_cast<int64_t>(numbers.getLhsContractingDimensions().size());
  auto order = llvm::to_vector(
      llvm::seq<int64_t>(0, cast<RankedTensorType>(dot.getType()).getRank()));
  std::rotate(order.begin() + numBatch, order.begin() + numBefore, order.end());
  return order;
}

/// What is transposed, if it is a product's sum, and comes out as it is read
/// where the operands are swapped; no sums otherwise.
TransposedProduct getTransposedProduct(stablehlo::TransposeOp transpose) {
  TransposedProduct found;
  Value made = transpose.getOperand();
  while (made.hasOneUse() &&
         isa_and_nonnull<stablehlo::AllReduceOp, stablehlo::ReduceScatterOp>(
             made.getDefiningOp()) &&
         made.getDefiningOp()->getNumOperands() == 1) {
    found.sums.push_back(made.getDefiningOp());
    made = found.sums.back()->getOperand(0);
  }
  found.dot = made.getDefiningOp<stablehlo::DotGeneralOp>();
  // An algorithm names the types of both operands.
  bool isSwapped = found.dot && made.hasOneUse() && !found.dot.getAlgorithm() &&
                   transpose.getType().hasStaticShape() &&
                   ArrayRef<int64_t>(getSwappedOrder(found.dot)) ==
                       transpose.getPermutation();
  return isSwapped ? found : TransposedProduct();
}

RankedTensorType permute(Type type, ArrayRef<int64_t> order) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<int64_t> sizes;
  for (int64_t dim : order) {
    sizes.push_back(tensor.getDimSize(dim));
  }
  return tensor.clone(sizes);
}

stablehlo::DotGeneralOp swapOperands(stablehlo::DotGeneralOp dot,
                                     ArrayRef<int64_t> order) {
  auto numbers = dot.getDotDimensionNumbers();
  auto swapped = stablehlo::DotDimensionNumbersAttr::get(
      dot.getContext(), numbers.getRhsBatchingDimensions(),
      numbers.getLhsBatchingDimensions(), numbers.getRhsContractingDimensions(),
      numbers.getLhsContractingDimensions());
  ArrayAttr precision = dot.getPrecisionConfigAttr();
  if (precision) {
    SmallVector<Attribute> both(llvm::reverse(precision.getValue()));
    precision = ArrayAttr::get(dot.getContext(), both);
  }
  OpBuilder builder(dot);
  return stablehlo::DotGeneralOp::create(
      builder, dot.getLoc(), permute(dot.getType(), order), dot.getRhs(),
      dot.getLhs(), swapped, precision, stablehlo::DotAlgorithmAttr());
}

void swap(stablehlo::TransposeOp transpose, TransposedProduct product) {
  ArrayRef<int64_t> order = transpose.getPermutation();
  for (Operation *sum : product.sums) {
    if (auto scatter = dyn_cast<stablehlo::ReduceScatterOp>(sum)) {
      auto scattered = static_cast<int64_t>(scatter.getScatterDimension());
      scatter.setScatterDimension(
          std::distance(order.begin(), llvm::find(order, scattered)));
    }
    Value made = sum->getResult(0);
    made.setType(permute(made.getType(), order));
  }
  stablehlo::DotGeneralOp dot = swapOperands(product.dot, order);
  product.dot.replaceAllUsesWith(dot.getResult());
  product.dot.erase();
  transpose.replaceAllUsesWith(transpose.getOperand());
  transpose.erase();
}

struct SwapTransposedProducts
    : impl::SwapTransposedProductsBase<SwapTransposedProducts> {
  void runOnOperation() override {
    getOperation().walk([](stablehlo::TransposeOp transpose) {
      TransposedProduct product = getTransposedProduct(transpose);
      if (!product.sums.empty()) {
        swap(transpose, std::move(product));
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
