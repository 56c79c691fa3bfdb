//===- HostMoves.h - Between a device and the host --------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_HOSTMOVES_H
#define CPP_ANALYSIS_HOSTMOVES_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// True for what moves its operand to the memory of the host, as
/// `annotate_device_placement` of jax does.
bool movesToHost(Operation *op);

/// True for what moves its operand to the memory of the device, or leaves it
/// there.
bool movesToDevice(Operation *op);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_HOSTMOVES_H
