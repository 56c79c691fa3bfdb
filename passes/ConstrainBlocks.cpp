//===- ConstrainBlocks.cpp - Blocks as constrained as whole arrays --------===//

#include "passes/Passes.h"

#include "cpp/analysis/FusionRole.h"
#include "passes/ShardingNotation.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_CONSTRAINBLOCKS
#include "passes/Passes.h.inc"

namespace {

bool isReordered(Operation *op) {
  return isa_and_nonnull<stablehlo::ReshapeOp, stablehlo::TransposeOp>(op);
}

/// True for what devices send each other, perhaps in another shape, where
/// somebody reads it for another purpose than to reorder it.
bool isReceived(Value value) {
  Operation *op = value.getDefiningOp();
  while (isReordered(op)) {
    op = op->getOperand(0).getDefiningOp();
  }
  return op && isAsynchronous(op) &&
         llvm::any_of(value.getUsers(),
                      [](Operation *user) { return !isReordered(user); });
}

/// True for what XLA moves, or moves operators across, before its partitioner.
bool isMoved(Value value) {
  return isa<stablehlo::IotaOp, stablehlo::DotGeneralOp>(
             value.getDefiningOp()) ||
         isReceived(value);
}

/// `sdy.sharding_constraint %0 <mesh<[]>, [{}, {}]>`.
void constrain(OpBuilder &builder, Value value) {
  int64_t rank = cast<RankedTensorType>(value.getType()).getRank();
  std::string text = "sharding<mesh<[]>, [";
  llvm::raw_string_ostream os(text);
  llvm::interleaveComma(llvm::seq(rank), os, [&](int64_t) { os << "{}"; });
  os << "]>";
  builder.setInsertionPointAfterValue(value);
  Value constrained =
      createShardyConstraint(builder, value.getLoc(), value,
                             getShardyAttr(builder.getContext(), text));
  value.replaceAllUsesExcept(constrained, constrained.getDefiningOp());
}

struct ConstrainBlocks : impl::ConstrainBlocksBase<ConstrainBlocks> {
  void runOnOperation() override {
    SmallVector<Value> moved;
    getOperation().walk([&](Operation *op) {
      for (Value value : op->getResults()) {
        auto type = dyn_cast<RankedTensorType>(value.getType());
        if (type && type.getRank() > 0 && isMoved(value)) {
          moved.push_back(value);
        }
      }
    });
    OpBuilder builder(&getContext());
    for (Value value : moved) {
      constrain(builder, value);
    }
  }
};

} // namespace
} // namespace mlir::alpa
