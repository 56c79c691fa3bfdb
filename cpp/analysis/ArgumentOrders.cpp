//===- ArgumentOrders.cpp - Arguments that are read in another order ------===//

#include "cpp/analysis/ArgumentOrders.h"

#include "cpp/analysis/MemoryOrder.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// True for a product, or what is computed elementwise of one in its order.
static bool isOfProduct(Value value) {
  Operation *maker = value.getDefiningOp();
  while (maker && keepsOrder(maker)) {
    maker = maker->getOperand(0).getDefiningOp();
  }
  return isa_and_nonnull<stablehlo::DotGeneralOp>(maker);
}

/// True if another dimension comes last.
static bool movesLast(stablehlo::TransposeOp op) {
  ArrayRef<int64_t> permutation = op.getPermutation();
  return !permutation.empty() &&
         permutation.back() != static_cast<int64_t>(permutation.size()) - 1;
}

SmallVector<BlockArgument> findReorderedArguments(Block &block) {
  SmallVector<Value> transposed;
  for (auto op : block.getOps<stablehlo::TransposeOp>()) {
    if (movesLast(op) && isOfProduct(op.getOperand())) {
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
