//===- BlockExchanges.cpp - All-to-alls along a leading dimension ---------===//

#include "passes/Passes.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_BLOCKEXCHANGES
#include "passes/Passes.h.inc"

namespace {

/// Writes one all-to-all of one operand with its blocks along dimension 0.
class Exchange {
public:
  explicit Exchange(stablehlo::AllToAllOp op)
      : op(op), builder(op), splitDim(op.getSplitDimension()),
        concatDim(op.getConcatDimension()), numBlocks(op.getSplitCount()) {}

  void rewrite() {
    Value operand = op.getOperand(0);
    auto type = cast<RankedTensorType>(operand.getType());
    SmallVector<int64_t> sizes(type.getShape());
    sizes[splitDim] /= numBlocks;
    SmallVector<int64_t> blocked(sizes);
    blocked.insert(blocked.begin() + splitDim, numBlocks);
    Value blocks = move(reshape(operand, blocked), splitDim, 0);
    auto exchanged = stablehlo::AllToAllOp::create(
        builder, op.getLoc(), blocks.getType(), blocks, /*split_dimension=*/0,
        /*concat_dimension=*/0, numBlocks, op.getReplicaGroups(),
        op.getChannelHandleAttr());
    sizes[concatDim] *= numBlocks;
    op.getResult(0).replaceAllUsesWith(
        reshape(move(exchanged.getResult(0), 0, concatDim), sizes));
    op.erase();
  }

private:
  Value reshape(Value value, ArrayRef<int64_t> shape) {
    auto type = cast<RankedTensorType>(value.getType());
    return stablehlo::ReshapeOp::create(builder, op.getLoc(), type.clone(shape),
                                        value);
  }

  /// `value` with dimension `from` at position `to`.
  Value move(Value value, int64_t from, int64_t to) {
    if (from == to) {
      return value;
    }
    auto type = cast<RankedTensorType>(value.getType());
    auto permutation = llvm::to_vector(llvm::seq(type.getRank()));
    permutation.erase(permutation.begin() + from);
    permutation.insert(permutation.begin() + to, from);
    SmallVector<int64_t> sizes(type.getShape());
    sizes.erase(sizes.begin() + from);
    sizes.insert(sizes.begin() + to, type.getDimSize(from));
    return stablehlo::TransposeOp::create(
        builder, op.getLoc(), type.clone(sizes), value, permutation);
  }

  stablehlo::AllToAllOp op;
  OpBuilder builder;
  int64_t splitDim;
  int64_t concatDim;
  int64_t numBlocks;
};

/// Whether blocks lie one behind another as they are, and are joined so.
static bool isBlocked(stablehlo::AllToAllOp op) {
  auto type = cast<ShapedType>(op.getOperand(0).getType());
  return op.getConcatDimension() == 0 &&
         llvm::all_of(type.getShape().take_front(op.getSplitDimension()),
                      [](int64_t size) { return size == 1; });
}

struct BlockExchanges : impl::BlockExchangesBase<BlockExchanges> {
  void runOnOperation() override {
    getOperation().walk([](stablehlo::AllToAllOp op) {
      if (op->getNumOperands() == 1 &&
          cast<ShapedType>(op.getOperand(0).getType()).hasStaticShape() &&
          !isBlocked(op)) {
        Exchange(op).rewrite();
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
