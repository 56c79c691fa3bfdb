//===- OperatorRules.cpp - Sharding rules, made once ----------------------===//

#include "cpp/analysis/OperatorRules.h"

namespace mlir::alpa {

const ShardingRule *OperatorRules::get(Operation *op) {
  auto [it, isNew] = rules.try_emplace(op, nullptr);
  if (isNew) {
    if (std::optional<ShardingRule> rule = getShardingRule(op)) {
      it->second = &*distinct.insert(std::move(*rule)).first;
    }
  }
  return it->second;
}

} // namespace mlir::alpa
