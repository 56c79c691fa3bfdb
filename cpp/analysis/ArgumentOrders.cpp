//===- ArgumentOrders.cpp - Arguments that are read in another order ------===//

#include "cpp/analysis/ArgumentOrders.h"

#include "cpp/analysis/MemoryOrder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

/// The product that a value is, or is computed elementwise of in its order;
/// null if there is none.
static stablehlo::DotGeneralOp getProduct(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker && keepsOrder(maker)) {
    maker = maker->getOperand(0).getDefiningOp();
  }
  return dyn_cast_if_present<stablehlo::DotGeneralOp>(maker);
}

/// True if the rows or the columns of a product without batches no longer
/// follow each other where it is transposed: it cannot be made as a matrix in
/// that order.
static bool splitsMatrix(stablehlo::DotGeneralOp product,
                         stablehlo::TransposeOp transpose) {
  auto numbers = product.getDotDimensionNumbers();
  if (!numbers.getLhsBatchingDimensions().empty()) {
    return false;
  }
  ArrayRef<int64_t> shape = product.getType().getShape();
  int64_t numRows =
      cast<RankedTensorType>(product.getLhs().getType()).getRank() -
      static_cast<int64_t>(numbers.getLhsContractingDimensions().size());
  auto isRow = [&](int64_t dim) { return dim < numRows; };
  SmallVector<int64_t> order = llvm::to_vector(llvm::make_filter_range(
      transpose.getPermutation(), [&](int64_t dim) { return shape[dim] > 1; }));
  unsigned numParts = 1;
  for (size_t i = 1; i < order.size(); ++i) {
    numParts +=
        isRow(order[i]) != isRow(order[i - 1]) || order[i] < order[i - 1];
  }
  return numParts > 2;
}

SmallVector<BlockArgument> findReorderedArguments(Block &block) {
  SmallVector<Value> transposed;
  for (auto op : block.getOps<stablehlo::TransposeOp>()) {
    stablehlo::DotGeneralOp product = getProduct(op.getOperand());
    if (product && splitsMatrix(product, op)) {
      transposed.push_back(op.getResult());
    }
  }
  SmallVector<BlockArgument> found;
  for (Value value : findAlike(transposed, [](Value) { return true; })) {
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      found.push_back(argument);
    }
  }
  return found;
}

} // namespace mlir::alpa
