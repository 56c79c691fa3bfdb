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

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_KERNELS_H
