//===- ImportCallbacks.cpp - Callbacks become operators -------------------===//

#include "cpp/analysis/Entry.h"
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

  /// True for operators whose regions hold an ordered callback.
  static bool holdsOrdered(Operation *op) {
    return llvm::any_of(op->getRegions(), [](Region &region) {
      WalkResult result = region.walk([](stablehlo::CustomCallOp call) {
        return isCallbackCall(call) ? WalkResult::interrupt()
                                    : WalkResult::advance();
      });
      return result.wasInterrupted();
    });
  }

  /// The token behind the block. Unordered callbacks are imported already.
  FailureOr<Value> thread(Block &block, Value token) {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isCallbackCall(&op)) {
        auto call = cast<stablehlo::CustomCallOp>(op);
        token = import(call, *readCallbackConfig(call), token);
        continue;
      }
      if (!holdsOrdered(&op)) {
        continue;
      }
      FailureOr<Value> next = failure();
      if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
        next = threadLoop(loop, token);
      } else if (isa<stablehlo::CaseOp, stablehlo::IfOp>(op)) {
        next = threadBranches(&op, token);
      } else {
        op.emitOpError() << "has an ordered callback inside, whose order is "
                            "known in loops and branches only";
      }
      if (failed(next)) {
        return failure();
      }
      token = *next;
    }
    return token;
  }

  /// The loop carries the token behind its other values.
  FailureOr<Value> threadLoop(stablehlo::WhileOp loop, Value token) {
    Region &condition = loop->getRegion(0);
    Region &body = loop->getRegion(1);
    WalkResult inCondition = condition.walk([](Operation *op) {
      return isCallbackCall(op) ? WalkResult::interrupt()
                                : WalkResult::advance();
    });
    if (inCondition.wasInterrupted()) {
      return loop.emitOpError() << "has an ordered callback in its condition, "
                                   "it can only be in the body of a loop";
    }
    condition.front().addArgument(tokenType, loop.getLoc());
    Value inner = body.front().addArgument(tokenType, loop.getLoc());
    FailureOr<Value> next = threadRegion(body, inner);
    if (failed(next)) {
      return failure();
    }
    SmallVector<Value> operands(loop->getOperands());
    operands.push_back(token);
    return extend(loop, operands);
  }

  FailureOr<Value> threadBranches(Operation *op, Value token) {
    for (Region &region : op->getRegions()) {
      if (failed(threadRegion(region, token))) {
        return failure();
      }
    }
    return extend(op, llvm::to_vector(op->getOperands()));
  }

  /// Threads a region and returns the token from it.
  FailureOr<Value> threadRegion(Region &region, Value token) {
    FailureOr<Value> next = thread(region.front(), token);
    if (succeeded(next)) {
      Operation *terminator = region.front().getTerminator();
      terminator->insertOperands(terminator->getNumOperands(), *next);
    }
    return next;
  }

  /// The operator again, with a token as its last result.
  Value extend(Operation *op, ArrayRef<Value> operands) {
    builder.setInsertionPoint(op);
    OperationState state(op->getLoc(), op->getName());
    state.addOperands(operands);
    state.addTypes(op->getResultTypes());
    state.addTypes(tokenType);
    state.addAttributes(llvm::to_vector(op->getDiscardableAttrs()));
    for (Region &region : op->getRegions()) {
      state.addRegion()->takeBody(region);
    }
    Operation *extended = builder.create(state);
    op->replaceAllUsesWith(extended->getResults().drop_back());
    op->erase();
    return extended->getResults().back();
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
