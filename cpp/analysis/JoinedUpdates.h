//===- JoinedUpdates.h - Updates that a gather waits for --------*- C++ -*-===//
//
// What a collective sends of a parameter may have to be computed first: a
// kernel of a convolution is reversed for the backward phase. XLA for GPU makes
// one fusion with several results of that and of the parameter's update, as
// both read the parameter (`MultiOutputFusion`). So the collective waits for
// the gradient.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_JOINEDUPDATES_H
#define CPP_ANALYSIS_JOINEDUPDATES_H

#include "cpp/analysis/FusionRole.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::alpa {

/// By operators whose results collectives of a per-device program send, and
/// that are computed from a parameter alone, the update that is computed with
/// them. Where the update depends on what is sent they are two fusions.
DenseMap<Operation *, Operation *> findJoinedUpdates(Block &block,
                                                     FusionRoles &roles);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_JOINEDUPDATES_H
