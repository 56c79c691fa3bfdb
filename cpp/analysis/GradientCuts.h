//===- GradientCuts.h - Where a backward phase can wait ---------*- C++ -*-===//
//
// XLA for GPU computes gradients of parameters behind everything that another
// kernel waits for, so that what they are made of lives to the end of the
// backward phase. Where few values lead from what is behind to what comes, that
// can wait for the gradients: `alpa-order-gradients` makes it so, and schedules
// of programs that it is still to be run on count on it.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_GRADIENTCUTS_H
#define CPP_ANALYSIS_GRADIENTCUTS_H

#include "cpp/analysis/FusionRole.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"
#include <vector>

namespace mlir::alpa {

/// A kernel that others wait for. Collectives, and moves to the host and back,
/// run beside them.
bool isAwaited(Operation *op, FusionRoles &roles);

/// The operators of a block on the way to a kernel.
llvm::DenseSet<Operation *> findUrgent(Block &block, FusionRoles &roles);

/// True for a sum of columns that XLA for GPU makes in one step on each of so
/// many devices, among which the columns are divided.
bool isShortColumnSum(Operation *op, int64_t numDevices);

/// A place in a block.
struct GradientCut {
  /// The first operator behind it.
  Operation *next;
  /// What has been made since the cut before and leads to further kernels that
  /// others wait for.
  SmallVector<Value> taken;
  /// What no kernel waits for, and has been made since the cut before:
  /// gradients of parameters, in the order of the program.
  SmallVector<Value> gradients;
};

/// The cuts of a block, in its order: as many as there are places to which few
/// values lead and behind which none of these is sent to other devices, so that
/// gradients run beside what is sent before. Takes time linear in the block.
///
/// \param numDevices as of `isShortColumnSum`.
std::vector<GradientCut>
findGradientCuts(Block &block, FusionRoles &roles,
                 const llvm::DenseSet<Operation *> &urgent,
                 int64_t numDevices = 1);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_GRADIENTCUTS_H
