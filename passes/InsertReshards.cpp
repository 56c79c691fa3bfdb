//===- InsertReshards.cpp - Reshards between producers and consumers ------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/ReshardReuse.h"
#include "dialects/alpa/Sharding.h"
#include "passes/Passes.h"
#include <map>
#include <tuple>

namespace mlir::alpa {

#define GEN_PASS_DEF_INSERTRESHARDS
#include "passes/Passes.h.inc"

namespace {

class Inserter {
public:
  Inserter(func::FuncOp entry, unsigned reach) : reuse(entry, reach) {}

  LogicalResult run(func::FuncOp entry) {
    WalkResult result = entry.walk<WalkOrder::PreOrder>(
        [&](Operation *op) { return WalkResult(visit(op)); });
    return failure(result.wasInterrupted());
  }

private:
  LogicalResult visit(Operation *op) {
    for (OpOperand &operand : op->getOpOperands()) {
      ShardingAttr target = getOperandSharding(operand);
      if (target && isa<RankedTensorType>(operand.get().getType()) &&
          failed(require(operand, target, op))) {
        return failure();
      }
    }
    if (!op->hasAttr(kOperandsAttrName)) {
      return success();
    }
    // Regions that are copied as they are see whole values.
    LogicalResult result = success();
    forEachCapture(op, [&](OpOperand &operand) {
      auto type = dyn_cast<RankedTensorType>(operand.get().getType());
      if (succeeded(result) && type) {
        auto whole = ShardingAttr::get(op->getContext(), type.getRank(), {});
        result = require(operand, whole, op);
      }
    });
    return result;
  }

  /// Makes `operand`, of `op` or of an operator in it, lie as `target` says.
  LogicalResult require(OpOperand &operand, ShardingAttr target,
                        Operation *op) {
    Value value = operand.get();
    ShardingAttr source = getSharding(value);
    if (!source) {
      return operand.getOwner()->emitOpError()
             << "operand " << operand.getOperandNumber()
             << " has no sharding: run alpa-apply-strategies first";
    }
    if (source == target) {
      return success();
    }
    ReshardOp &reshard = made[{op->getBlock(), value.getAsOpaquePointer(),
                               target.getAsOpaquePointer()}];
    if (!reshard || !reuse.serves(reshard, op)) {
      OpBuilder builder(op);
      reshard =
          ReshardOp::create(builder, value.getLoc(), value, source, target);
    }
    operand.set(reshard);
    return success();
  }

  ReshardReuse reuse;
  /// By block, value and target the last one.
  std::map<std::tuple<Block *, const void *, const void *>, ReshardOp> made;
};

struct InsertReshards : impl::InsertReshardsBase<InsertReshards> {
  using InsertReshardsBase::InsertReshardsBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry) || failed(Inserter(*entry, reach).run(*entry))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
