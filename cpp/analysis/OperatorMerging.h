//===- OperatorMerging.h - Light operators follow ---------------*- C++ -*-===//
//
// Section 4.2 of the Alpa paper: computationally light operators take the
// sharding of their deepest operand, so that only the others have strategies.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_OPERATORMERGING_H
#define CPP_ANALYSIS_OPERATORMERGING_H

#include "dialects/alpa/ShardingRule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Values of `alpa.role`.
inline constexpr llvm::StringLiteral kLeaderRole = "leader";
inline constexpr llvm::StringLiteral kFollowerRole = "follower";
inline constexpr llvm::StringLiteral kRematerializedRole = "rematerialized";
inline constexpr llvm::StringLiteral kReplicatedRole = "replicated";

/// Tensors of no more elements than this are the same on every device: keys of
/// random generators, counters, hyper-parameters. Heuristic: splitting them
/// saves nothing and would cost a node of the graph each.
inline constexpr int64_t kTinyElements = 16;

bool isTiny(Type type);

/// True if the sum that a reduction leaves over split axes may stay partial:
/// its result is not much smaller than its operand (a gradient summed over a
/// few dimensions). Small results (means, norms, losses) are reduced at once.
bool delaysReduction(Operation *op);

/// Gives every operator of the function and of its loops and branches a role,
/// and inserts `alpa.resolve` behind results that can be partial sums but are
/// used by operators that need the sum itself.
///
/// Emits a remark for every operator that has no sharding rule.
LogicalResult mergeOperators(func::FuncOp function);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_OPERATORMERGING_H
