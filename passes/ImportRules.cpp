//===- ImportRules.cpp - Rules that operators come with -------------------===//

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/Passes.h"
#include "passes/ShardyReader.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORTRULES
#include "passes/Passes.h.inc"

namespace {

/// Whether the call's configuration holds sizes of the whole tensors: kernels
/// of Pallas are compiled for them, with their grid, fusions have computations
/// of them, and cuDNN's attention reads them. A rule of the operator's own
/// adapts them; one that is carried does not.
bool namesSizes(stablehlo::CustomCallOp call) {
  StringRef target = call.getCallTargetName();
  return target.starts_with("__cudnn$fmha") ||
         llvm::is_contained({"__cudnn$fusion", "__gpu$xla.gpu.triton", "fused",
                             "mosaic_gpu_v2", "tpu_custom_call",
                             "triton_kernel_call_ffi"},
                            target);
}

bool hasOwnRule(stablehlo::CustomCallOp call) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(call.getOperation());
  return interface && !interface.getShardingRule().isReplicated();
}

/// Why a rule does not fit an operator; empty if it does.
std::string findMisfit(Operation *op, ShardingRule &rule) {
  std::string reason;
  ScopedDiagnosticHandler handler(op->getContext(), [&](Diagnostic &error) {
    reason = reason.empty() ? error.str() : reason;
    return success();
  });
  if (!rule.resolveSizes(op)) {
    return "it has factors whose size no shape gives";
  }
  return failed(rule.verify(op)) ? reason : "";
}

void import(stablehlo::CustomCallOp call, Attribute written) {
  std::string text = getShardyText(written);
  std::optional<ShardingRule> rule = readShardyRule(text);
  std::string reason = "it is not in Shardy's notation";
  if (rule) {
    reason = namesSizes(call) ? "it is made for the sizes of the whole"
                              : findMisfit(call, *rule);
  }
  if (!reason.empty()) {
    call.emitRemark() << "sharding rule " << text << " of @"
                      << call.getCallTargetName() << " is left out: " << reason;
    return;
  }
  if (!rule->isReplicated()) {
    call->setAttr(kRuleAttrName, RuleAttr::get(call.getContext(), *rule));
  }
}

/// A rule that says what the operator says itself, as printed rules do, would
/// be in the way of everything that gives the operator another form.
void dropOwnRule(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (interface && op->hasAttrOfType<RuleAttr>(kRuleAttrName) &&
      getShardingRule(op) == interface.getShardingRule()) {
    op->removeAttr(kRuleAttrName);
  }
}

struct ImportRules : impl::ImportRulesBase<ImportRules> {
  void runOnOperation() override {
    getOperation()->walk(dropOwnRule);
    WalkResult result = getOperation()->walk([](stablehlo::CustomCallOp call) {
      if (call->hasAttr(kRuleAttrName) && namesSizes(call) &&
          !hasOwnRule(call)) {
        call.emitError() << "no rule can split @" << call.getCallTargetName()
                         << ": it is made for the sizes of the whole, "
                            "which blocks do not have; say by "
                            "stablehlo_alpa.kernel how the function around it "
                            "is split, or call it in jax.shard_map";
        return WalkResult::interrupt();
      }
      Attribute written = takeShardyAttribute(call, "sharding_rule");
      if (!written) {
        return WalkResult::advance();
      }
      std::optional<ShardingRule> known = getShardingRule(call);
      bool isKnown = known && !known->isReplicated();
      if (!isKnown && !call.getHasSideEffect()) {
        import(call, written);
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
