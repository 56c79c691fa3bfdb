//===- OperatorRule.cpp - The rule that an operator has -------------------===//
//
// An operator may carry a rule. It stands for its own, of which it then is a
// restriction, unless the operator is a call of which nothing is known.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Elements.h"
#include "dialects/alpa/Sharding.h"
#include "dialects/alpa/ShardingRule.h"

namespace mlir::alpa {

std::optional<ShardingRule> getShardingRule(Operation *op) {
  if (auto carried = op->getAttrOfType<RuleAttr>(kRuleAttrName)) {
    ShardingRule rule = carried.getRule();
    // Without sizes it does not fit, as verification of `op` says.
    return rule.resolveSizes(op) ? rule : ShardingRule::replicated(op);
  }
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  if (!interface) {
    return std::nullopt;
  }
  ShardingRule own = interface.getShardingRule();
  return findSplitElements(own, op).empty() ? own
                                            : ShardingRule::replicated(op);
}

bool hasShardingRule(Operation *op) {
  return isa<ShardingRuleOpInterface>(op) ||
         op->hasAttrOfType<RuleAttr>(kRuleAttrName);
}

OperatorRole getOperatorRole(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  return interface ? interface.getOperatorRole() : OperatorRole::Leader;
}

bool isDeviceDependent(Operation *op) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  return interface && interface.isDeviceDependent();
}

SmallVector<Exchange> getIterationExchanges(Operation *op,
                                            const ShardingRule &rule,
                                            unsigned factor,
                                            ArrayRef<int64_t> factorShards) {
  SmallVector<Exchange> found;
  for (auto [result, tensor] : llvm::zip(op->getResults(), rule.results)) {
    double bytes = getTensorBytes(result.getType());
    for (const DimFactors &factors : tensor) {
      for (unsigned other : factors) {
        bytes /= static_cast<double>(other == factor ? rule.factors[other].size
                                                     : factorShards[other]);
      }
    }
    found.push_back({bytes});
  }
  return found;
}

SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                   unsigned factor,
                                   ArrayRef<int64_t> factorShards) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  return interface ? interface.getExchanges(rule, factor, factorShards)
                   : SmallVector<Exchange>();
}

InnerWork getInnerWork(Operation *op, const ShardingRule &rule,
                       ArrayRef<int64_t> factorShards) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  return interface ? interface.getInnerWork(rule, factorShards) : InnerWork();
}

FailureOr<SmallVector<Value>> localize(Operation *op, LocalContext &context) {
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  bool isCarried = op->hasAttrOfType<RuleAttr>(kRuleAttrName);
  if (!interface || (isCarried && interface.getShardingRule().isReplicated())) {
    return cloneLocal(op, context);
  }
  return interface.localize(context);
}

} // namespace mlir::alpa
