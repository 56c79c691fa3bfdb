//===- ShardingRules.h - Loop nests of StableHLO operators ------*- C++ -*-===//
//
// External models of `ShardingRuleOpInterface` for StableHLO and CHLO.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_SHARDINGRULES_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_SHARDINGRULES_H

namespace mlir {
class DialectRegistry;
class Value;

namespace stablehlo {

/// Attaches the sharding rules when the StableHLO or CHLO dialect is loaded.
void registerShardingRules(DialectRegistry &registry);

/// Whether every element of `value` is known to be zero: such a value is a
/// partial sum over any axis as it stands. Looks through broadcasts, reshapes,
/// transposes and conversions of constants.
bool isKnownZero(Value value);

} // namespace stablehlo
} // namespace mlir

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_SHARDINGRULES_H
