//===- Schedule.h - The order in which a block runs -------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_SCHEDULE_H
#define CPP_ANALYSIS_SCHEDULE_H

#include "cpp/analysis/FusionRole.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Block.h"
#include <optional>
#include <vector>

namespace mlir::alpa {

/// Whether the backward phase comes to a lower layer than that of the operators
/// before, which is then the last, or to what is computed again behind a
/// barrier.
bool beginsLayer(Operation *op, std::optional<int64_t> &last);

/// The operators of a block in the order in which XLA's latency-hiding
/// scheduler runs them, as far as memory depends on it. What is made of a
/// gradient (its sum over devices, the update of its parameter) follows it,
/// otherwise the order is that of the program. Where collectives are to run
/// beside kernels, what no further kernel waits for (gradients of parameters)
/// comes behind everything else up to the next loop, the one that could have
/// been computed first (the head's) last. So the inputs of those gradients live
/// to the end of the backward phase; of a stage with layers, or with parts that
/// are computed again, to the end of their part, behind which
/// `alpa-split-phases` has the next one wait for them. Without layers, sums of
/// columns that no kernel waits for (gradients of biases) come behind these
/// gradients and what is made of them, a gradient is not put off that a gather
/// waits for (see `findJoinedUpdates`), what is gathered to be returned
/// comes last, and what one loop makes and a later one needs from other devices
/// is sent beside the kernels in between. XLA for TPU sums each gradient beside
/// the kernels behind it: nothing is put off.
///
/// \param overlaps whether there are collectives; a stage with layers is taken
///        to have some.
/// \param numDevices among which columns may be divided; see
///        `isShortColumnSum`.
/// \param isOrdered whether the backward phase of the program will wait for
///        gradients where it can (`findGradientCuts`).
std::vector<Operation *> getSchedule(Block &block, FusionRoles &roles,
                                     bool overlaps, int64_t numDevices = 1,
                                     bool isOrdered = false);

/// Places an operator behind all of its block that it, or its regions, are made
/// from and that is missing, and behind what those are made from.
///
/// \param isMissing says of a maker whether it has to be placed.
/// \param place may be called for one operator several times.
void placeBehindOperands(Operation *op,
                         function_ref<bool(Operation *)> isMissing,
                         function_ref<void(Operation *)> place);

/// True if a per-device program communicates.
bool hasCollectives(func::FuncOp function);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_SCHEDULE_H
