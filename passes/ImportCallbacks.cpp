//===- ImportCallbacks.cpp - Callbacks become operators -------------------===//

#include "cpp/analysis/Entry.h"
#include "dialects/alpa/DataFlow.h"
#include "passes/CallbackForm.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORTCALLBACKS
#include "passes/Passes.h.inc"

namespace {

/// Hands a token from ordered callback to ordered callback.
class Importer {
public:
  explicit Importer(func::FuncOp entry)
      : entry(entry), builder(entry.getContext()),
        tokenType(RankedTensorType::get({}, builder.getI32Type())) {}

  LogicalResult run() {
    SmallVector<stablehlo::CustomCallOp> calls;
    entry.walk([&](stablehlo::CustomCallOp call) {
      if (isCallbackCall(call)) {
        calls.push_back(call);
      }
    });
    bool anyOrdered = false;
    for (stablehlo::CustomCallOp call : calls) {
      std::optional<CallbackConfig> config = readCallbackConfig(call);
      if (!config) {
        return failure();
      }
      anyOrdered |= config->isOrdered;
      if (!config->isOrdered) {
        import(call, *config, {});
      }
    }
    if (!anyOrdered) {
      return success();
    }
    Block &block = entry.getBody().front();
    builder.setInsertionPointToStart(&block);
    Value first = stablehlo::ConstantOp::create(
        builder, entry.getLoc(),
        DenseElementsAttr::get(tokenType, builder.getI32IntegerAttr(0)));
    return success(succeeded(thread(block, first)));
  }

private:
  /// Operand and results of the call follow the token, if there is one.
  Value import(stablehlo::CustomCallOp call, const CallbackConfig &config,
               ArrayRef<Value> token) {
    SmallVector<Value> operands(token);
    llvm::append_range(operands, call->getOperands());
    SmallVector<Type> types(token.size(), tokenType);
    llvm::append_range(types, call->getResultTypes());
    builder.setInsertionPoint(call);
    auto callback = CallbackOp::create(
        builder, call.getLoc(), types, operands, config.name, config.index,
        getFlag(config.isOrdered), getFlag(!call.getHasSideEffect()));
    call->replaceAllUsesWith(callback.getResults().drop_front(token.size()));
    call.erase();
    return token.empty() ? Value() : callback.getResult(0);
  }

  UnitAttr getFlag(bool isSet) {
    return isSet ? builder.getUnitAttr() : UnitAttr();
  }

  /// Unordered callbacks are imported already.
  static bool holdsOrdered(Region &region) {
    WalkResult result = region.walk([](stablehlo::CustomCallOp call) {
      return isCallbackCall(call) ? WalkResult::interrupt()
                                  : WalkResult::advance();
    });
    return result.wasInterrupted();
  }

  /// The token behind the block.
  FailureOr<Value> thread(Block &block, Value token) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isCallbackCall(&op)) {
        auto call = cast<stablehlo::CustomCallOp>(op);
        token = import(call, *readCallbackConfig(call), token);
        continue;
      }
      if (llvm::none_of(op.getRegions(), holdsOrdered)) {
        continue;
      }
      auto dataFlow = dyn_cast<DataFlowOpInterface>(op);
      Operation *extended =
          dataFlow ? dataFlow.addDataFlowEdge(builder, token) : nullptr;
      if (!extended) {
        return op.emitOpError() << "has an ordered callback inside, whose "
                                   "order is known in loops and branches only";
      }
      if (failed(threadRegions(cast<DataFlowOpInterface>(extended)))) {
        return failure();
      }
      token = extended->getResults().back();
    }
    return token;
  }

  /// The last edge brings the token: regions hand on what comes after their own
  /// callbacks.
  LogicalResult threadRegions(DataFlowOpInterface op) {
    SmallVector<DataFlowEdge> edges = op.getDataFlowEdges();
    const DataFlowEdge &edge = edges.back();
    for (Region &region : op->getRegions()) {
      auto source = llvm::find_if(edge.sources, [&](OpOperand *operand) {
        return operand->getOwner()->getParentRegion() == &region;
      });
      if (source == edge.sources.end()) {
        if (holdsOrdered(region)) {
          return op->emitOpError()
                 << "has an ordered callback in its condition, it can only be "
                    "in the body of a loop: call it there, or with "
                    "ordered=False";
        }
        continue;
      }
      FailureOr<Value> next = thread(region.front(), (*source)->get());
      if (failed(next)) {
        return failure();
      }
      (*source)->set(*next);
    }
    return success();
  }

  func::FuncOp entry;
  OpBuilder builder;
  RankedTensorType tokenType;
};

struct ImportCallbacks : impl::ImportCallbacksBase<ImportCallbacks> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry) || failed(Importer(*entry).run())) {
      return signalPassFailure();
    }
    WalkResult result = getOperation().walk([](Operation *op) {
      if (isCallbackCall(op) ||
          (isa<CallbackOp>(op) && op->getParentOfType<ManualOp>())) {
        op->emitError() << "a callback in a shard_map, or in a function that "
                           "is not inlined, cannot be planned";
        return WalkResult::interrupt();
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
