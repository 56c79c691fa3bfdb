//===- ImportRules.cpp - Shardy's rules of custom calls -------------------===//

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/Diagnostics.h"
#include "passes/Passes.h"
#include "passes/ShardyReader.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORTRULES
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kShardyRule = "sdy.sharding_rule";

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
  std::string reason =
      rule ? findMisfit(call, *rule) : "it is not in Shardy's notation";
  if (!reason.empty()) {
    call.emitRemark() << "sharding rule " << text << " of @"
                      << call.getCallTargetName() << " is left out: " << reason;
    return;
  }
  if (!rule->isReplicated()) {
    call->setAttr(kRuleAttrName, RuleAttr::get(call.getContext(), *rule));
  }
}

struct ImportRules : impl::ImportRulesBase<ImportRules> {
  void runOnOperation() override {
    getOperation()->walk([](stablehlo::CustomCallOp call) {
      Attribute written = call->getDiscardableAttr(kShardyRule);
      if (!written) {
        return;
      }
      call->removeDiscardableAttr(kShardyRule);
      std::optional<ShardingRule> known = getShardingRule(call);
      bool isKnown = known && !known->isReplicated();
      if (!isKnown && !call.getHasSideEffect()) {
        import(call, written);
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
