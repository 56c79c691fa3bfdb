//===- PrintShardingRules.cpp - Loop nests as remarks ---------------------===//
//
// For tests and for people who add an operator: says what the planner will know
// about every operator.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Alpa.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_PRINTSHARDINGRULES
#include "passes/Passes.h.inc"

namespace {

StringRef getRoleName(OperatorRole role) {
  switch (role) {
  case OperatorRole::Leader:
    return kLeaderRole;
  case OperatorRole::Follower:
    return kFollowerRole;
  case OperatorRole::Rematerialized:
    return kRematerializedRole;
  }
  llvm_unreachable("unknown role");
}

struct PrintShardingRules : impl::PrintShardingRulesBase<PrintShardingRules> {
  using PrintShardingRulesBase::PrintShardingRulesBase;

  void runOnOperation() override {
    bool isValid = true;
    getOperation()->walk([&](Operation *op) {
      std::optional<ShardingRule> rule = getShardingRule(op);
      if (!rule) {
        return;
      }
      if (failed(rule->verify(op))) {
        isValid = false;
        return;
      }
      auto attribute = RuleAttr::get(&getContext(), *rule);
      if (asAttributes) {
        op->setAttr(kRuleAttrName, attribute);
      } else {
        op->emitRemark() << attribute << " "
                         << getRoleName(getOperatorRole(op));
      }
    });
    if (!isValid) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
