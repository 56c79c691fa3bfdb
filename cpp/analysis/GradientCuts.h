//===- GradientCuts.h - Where a backward phase can wait ---------*- C++ -*-===//
//
// XLA for GPU computes gradients of parameters behind everything that another
// kernel waits for, so that what they are made of lives to the end of the
// backward phase. Its next kernel can wait for the gradients before it:
// `alpa-order-gradients` makes it so, and schedules of programs that it is
// still to be run on count on it.
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

/// A kernel that can wait for gradients.
struct GradientCut {
  /// One that others wait for in turn.
  Operation *kernel;
  /// What it reads, and what lies in memory anyway.
  Value read;
  /// What no kernel waits for, and was made since the cut before: gradients of
  /// parameters, in the order of the program.
  SmallVector<Value> gradients;
};

/// The cuts of a block, in its order. Gradients can run beside whatever is sent
/// for the kernel that waits. Takes time linear in the block.
///
/// \param numDevices as of `isShortColumnSum`.
std::vector<GradientCut>
findGradientCuts(Block &block, FusionRoles &roles,
                 const llvm::DenseSet<Operation *> &urgent,
                 int64_t numDevices = 1);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_GRADIENTCUTS_H
