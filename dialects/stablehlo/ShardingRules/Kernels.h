//===- Kernels.h - Kernels that JAX calls by name ---------------*- C++ -*-===//
//
// Custom calls of which it is known what they compute: the families that have a
// file of their own. `CustomCall.cpp` chooses among them.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_KERNELS_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_KERNELS_H

#include "dialects/alpa/ShardingRule.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <optional>

namespace mlir::stablehlo {

/// The rule of a kernel of linear algebra on a batch of matrices; none if the
/// call is not known to be one. Batches are independent of each other, and so
/// are the sides of an equation.
std::optional<alpa::ShardingRule> getMatrixKernelRule(CustomCallOp call);

/// The rule of one of cuDNN's attention kernels, forward or backward: batches
/// and heads are independent of each other. None if the call is not one, or not
/// one whose blocks are known to be blocks of the whole.
std::optional<alpa::ShardingRule> getAttentionRule(CustomCallOp call);

/// The kernel on one device; its configuration holds the sizes of the batch and
/// of the heads.
FailureOr<SmallVector<Value>> localizeAttention(CustomCallOp call,
                                                alpa::LocalContext &context);

/// Whether an operator calls a kernel that is made anew for the blocks of a
/// device, as its author says how it is split; see `PartitionedKernel.cpp`.
bool isPartitionedKernel(Operation *op);

/// The author's rule; nothing is split where it is not one of the call's.
alpa::ShardingRule getPartitionedKernelRule(CustomCallOp call);

/// The call with its blocks, which says which axes split them.
FailureOr<SmallVector<Value>>
localizePartitionedKernel(CustomCallOp call, alpa::LocalContext &context);

/// What its author's collectives send along an ordered factor: results that
/// lack it are reduced.
SmallVector<alpa::Exchange>
getPartitionedKernelExchanges(CustomCallOp call, const alpa::ShardingRule &rule,
                              unsigned factor, ArrayRef<int64_t> factorShards);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_KERNELS_H
