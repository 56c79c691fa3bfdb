//===- HostMoves.h - Between a device and the host --------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_HOSTMOVES_H
#define CPP_ANALYSIS_HOSTMOVES_H

#include "cpp/analysis/FusionRole.h"
#include "mlir/IR/Operation.h"
#include <vector>

namespace mlir::alpa {

/// True for what moves its operand to the memory of the host, as
/// `annotate_device_placement` of jax does.
bool movesToHost(Operation *op);

/// True for what moves its operand to the memory of the device, or leaves it
/// there.
bool movesToDevice(Operation *op);

/// True for either.
bool isHostMove(Operation *op);

/// Puts moves to the host behind what makes their operands, and moves to the
/// device, with slices of what they move, before the first that reads it: XLA's
/// scheduler has the device hold as little of it as it can.
///
/// \param order the operators of a block.
void placeMoves(std::vector<Operation *> &order, FusionRoles &roles);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_HOSTMOVES_H
