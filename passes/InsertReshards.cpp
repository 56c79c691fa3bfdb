//===- InsertReshards.cpp - Reshards between producers and consumers ------===//

#include "cpp/analysis/Entry.h"
#include "dialects/alpa/Sharding.h"
#include "passes/Passes.h"
#include <map>
#include <tuple>

namespace mlir::alpa {

#define GEN_PASS_DEF_INSERTRESHARDS
#include "passes/Passes.h.inc"

namespace {

struct InsertReshards : impl::InsertReshardsBase<InsertReshards> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    // A reshard before its first user in a block reaches all later ones.
    std::map<std::tuple<Block *, const void *, const void *>, Value> made;
    WalkResult result =
        entry->walk<WalkOrder::PreOrder>([&](Operation *op) -> WalkResult {
          for (OpOperand &operand : op->getOpOperands()) {
            ShardingAttr target = getOperandSharding(operand);
            if (!target || !isa<RankedTensorType>(operand.get().getType())) {
              continue;
            }
            ShardingAttr source = getSharding(operand.get());
            if (!source) {
              return op->emitOpError()
                     << "operand " << operand.getOperandNumber()
                     << " has no sharding: run alpa-apply-strategies first";
            }
            if (source == target) {
              continue;
            }
            Value &reshard =
                made[{op->getBlock(), operand.get().getAsOpaquePointer(),
                      target.getAsOpaquePointer()}];
            if (!reshard) {
              OpBuilder builder(op);
              reshard = ReshardOp::create(builder, operand.get().getLoc(),
                                          operand.get(), source, target);
            }
            operand.set(reshard);
          }
          return WalkResult::advance();
        });
    if (result.wasInterrupted()) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
