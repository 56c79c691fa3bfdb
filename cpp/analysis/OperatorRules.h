//===- OperatorRules.h - Sharding rules, made once --------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_OPERATORRULES_H
#define CPP_ANALYSIS_OPERATORRULES_H

#include "dialects/alpa/ShardingRule.h"
#include "llvm/ADT/DenseMap.h"
#include <unordered_set>

namespace mlir::alpa {

/// The rules of operators, made when they are first asked for. Equal rules are
/// one object, so that what follows from a rule is known by its address.
/// Operators must not change in between: a rule may read the operands' makers.
class OperatorRules {
public:
  /// The rule of an operator; null if it has none.
  const ShardingRule *get(Operation *op);

private:
  struct Hash {
    size_t operator()(const ShardingRule &rule) const {
      return hash_value(rule);
    }
  };
  DenseMap<Operation *, const ShardingRule *> rules;
  /// Addresses of its elements stay.
  std::unordered_set<ShardingRule, Hash> distinct;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_OPERATORRULES_H
