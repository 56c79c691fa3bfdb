//===- Alpa.h - The sharding dialect ----------------------------*- C++ -*-===//

#ifndef DIALECTS_ALPA_ALPA_H
#define DIALECTS_ALPA_ALPA_H

#include "dialects/alpa/ShardingRule.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_ATTRDEF_CLASSES
#include "dialects/alpa/AlpaAttrs.h.inc"

// Names the attributes that are defined above.
#include "dialects/alpa/AlpaDialect.h.inc"

#define GET_OP_CLASSES
#include "dialects/alpa/AlpaOps.h.inc"

namespace mlir::alpa {

/// Names of the discardable attributes; see the description of the dialect.
inline constexpr llvm::StringLiteral kMeshAttrName =
    AlpaDialect::MeshAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kRuleAttrName =
    AlpaDialect::RuleAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kStrategyAttrName =
    AlpaDialect::StrategyAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kOperandsAttrName =
    AlpaDialect::OperandsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kResultsAttrName =
    AlpaDialect::ResultsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kShardingAttrName =
    AlpaDialect::ShardingAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kAliasAttrName =
    AlpaDialect::AliasAttrHelper::getNameStr();
/// As JAX marks an argument that is given away.
inline constexpr llvm::StringLiteral kDonorAttrName = "jax.buffer_donor";
inline constexpr llvm::StringLiteral kRoleAttrName =
    AlpaDialect::RoleAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kFollowsAttrName =
    AlpaDialect::FollowsAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kTripCountAttrName =
    AlpaDialect::TripCountAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kPartialEdgesAttrName =
    AlpaDialect::PartialEdgesAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kBarrierAttrName =
    AlpaDialect::BarrierAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kProductRingAttrName =
    AlpaDialect::ProductRingAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kExplicitPaddingAttrName =
    AlpaDialect::ExplicitPaddingAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kPlacedAttrName =
    AlpaDialect::PlacedAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kLayerAttrName =
    AlpaDialect::LayerAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kPhaseAttrName =
    AlpaDialect::PhaseAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kOnceAttrName =
    AlpaDialect::OnceAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kMicroBatchesAttrName =
    AlpaDialect::MicroBatchesAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kMicroBatchAttrName =
    AlpaDialect::MicroBatchAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kBatchAttrName =
    AlpaDialect::BatchAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kInputAttrName =
    AlpaDialect::InputAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kOutputAttrName =
    AlpaDialect::OutputAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kTransferAttrName =
    AlpaDialect::TransferAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kLocalAttrName =
    AlpaDialect::LocalAttrHelper::getNameStr();
inline constexpr llvm::StringLiteral kAccumulatorAttrName =
    AlpaDialect::AccumulatorAttrHelper::getNameStr();

/// Values of `alpa.role`.
inline constexpr llvm::StringLiteral kLeaderRole = "leader";
inline constexpr llvm::StringLiteral kFollowerRole = "follower";
inline constexpr llvm::StringLiteral kRematerializedRole = "rematerialized";
inline constexpr llvm::StringLiteral kReplicatedRole = "replicated";

} // namespace mlir::alpa

#endif // DIALECTS_ALPA_ALPA_H
