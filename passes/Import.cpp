//===- Import.cpp - Prepares a module for planning ------------------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/StrategyGraph.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORT
#include "passes/Passes.h.inc"

namespace {

/// Programs that are partitioned by hand already.
bool isPartitioned(Operation *op) {
  StringRef name = op->getName().getStringRef();
  if (name == "sdy.manual_computation") {
    return true;
  }
  auto call = dyn_cast<stablehlo::CustomCallOp>(op);
  return call && (call.getCallTargetName() == "SPMDFullToShardShape" ||
                  call.getCallTargetName() == "SPMDShardToFullShape");
}

struct Import : impl::ImportBase<Import> {
  using ImportBase::ImportBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry) || failed(verifyPlannable(*entry)) ||
        failed(writeAliases(*entry))) {
      signalPassFailure();
    }
  }

  LogicalResult verifyPlannable(func::FuncOp entry) {
    WalkResult result = entry.walk([](Operation *op) {
      if (isPartitioned(op)) {
        op->emitError() << "'" << op->getName()
                        << "' is partitioned by hand already (shard_map); it "
                           "cannot be planned";
        return WalkResult::interrupt();
      }
      auto isDynamic = [](Type type) {
        auto shaped = dyn_cast<ShapedType>(type);
        return shaped && !shaped.hasStaticShape();
      };
      for (Type type : op->getResultTypes()) {
        if (isDynamic(type)) {
          op->emitError() << "result of '" << op->getName()
                          << "' has the dynamic type " << type
                          << "; planning needs static shapes";
          return WalkResult::interrupt();
        }
      }
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          if (isDynamic(argument.getType())) {
            op->emitError()
                << getReadableName(argument) << " has the dynamic type "
                << argument.getType() << "; planning needs static shapes";
            return WalkResult::interrupt();
          }
        }
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult writeAliases(func::FuncOp entry) {
    for (StringRef pair : aliases) {
      auto [argument, result] = pair.split(':');
      unsigned from = 0;
      unsigned to = 0;
      if (argument.getAsInteger(10, from) || result.getAsInteger(10, to) ||
          from >= entry.getNumArguments() || to >= entry.getNumResults()) {
        return entry.emitOpError()
               << "alias '" << pair << "' names no argument and result of the "
               << entry.getNumArguments() << " and " << entry.getNumResults();
      }
      if (entry.getArgumentTypes()[from] != entry.getResultTypes()[to]) {
        return entry.emitOpError() << "alias '" << pair << "' joins "
                                   << entry.getArgumentTypes()[from] << " with "
                                   << entry.getResultTypes()[to];
      }
      entry.setArgAttr(
          from, kAliasAttrName,
          IntegerAttr::get(IntegerType::get(&getContext(), 64), to));
    }
    return success();
  }
};

} // namespace
} // namespace mlir::alpa
