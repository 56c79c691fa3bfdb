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

#include "dialects/alpa/AlpaDialect.h.inc"

#define GET_ATTRDEF_CLASSES
#include "dialects/alpa/AlpaAttrs.h.inc"

#define GET_OP_CLASSES
#include "dialects/alpa/AlpaOps.h.inc"

namespace mlir::alpa {

/// Names of the discardable attributes; see the description of the dialect.
inline constexpr llvm::StringLiteral kMeshAttrName = "alpa.mesh";
inline constexpr llvm::StringLiteral kShardingAttrName = "alpa.sharding";
inline constexpr llvm::StringLiteral kOperandsAttrName = "alpa.operands";
inline constexpr llvm::StringLiteral kResultsAttrName = "alpa.results";
inline constexpr llvm::StringLiteral kAliasAttrName = "alpa.alias";
inline constexpr llvm::StringLiteral kRoleAttrName = "alpa.role";
inline constexpr llvm::StringLiteral kFollowsAttrName = "alpa.follows";
inline constexpr llvm::StringLiteral kTripCountAttrName = "alpa.trip_count";
inline constexpr llvm::StringLiteral kBarrierAttrName = "alpa.barrier";
inline constexpr llvm::StringLiteral kLayerAttrName = "alpa.layer";
inline constexpr llvm::StringLiteral kPhaseAttrName = "alpa.phase";
inline constexpr llvm::StringLiteral kBatchAttrName = "alpa.batch";
inline constexpr llvm::StringLiteral kOnceAttrName = "alpa.once";
inline constexpr llvm::StringLiteral kMicroBatchesAttrName =
    "alpa.micro_batches";
inline constexpr llvm::StringLiteral kMicroBatchAttrName = "alpa.micro_batch";
inline constexpr llvm::StringLiteral kInputAttrName = "alpa.input";
inline constexpr llvm::StringLiteral kOutputAttrName = "alpa.output";
inline constexpr llvm::StringLiteral kTransferAttrName = "alpa.transfer";
inline constexpr llvm::StringLiteral kLocalAttrName = "alpa.local";
inline constexpr llvm::StringLiteral kAccumulatorAttrName = "alpa.accumulator";

} // namespace mlir::alpa

#endif // DIALECTS_ALPA_ALPA_H
