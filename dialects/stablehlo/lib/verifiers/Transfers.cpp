//===- Transfers.cpp - verifiers of transfers -----------------------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

/// Tensors and, last, a token.
static LogicalResult verifyReceived(Operation *op) {
  TypeRange types = op->getResultTypes();
  if (types.empty() || !hlo::isToken(types.back()) ||
      !llvm::all_of(types.drop_back(), llvm::IsaPred<RankedTensorType>)) {
    return op->emitOpError()
           << "must give tensors and then a token, but gives (" << types << ")";
  }
  return success();
}

/// Numbers of channel types, as a channel handle has them.
enum ChannelType : int64_t {
  kDeviceToDevice = 1,
  kDeviceToHost,
  kHostToDevice
};

static LogicalResult verifyChannelType(Operation *op, ChannelHandleAttr channel,
                                       bool isHostTransfer,
                                       ChannelType hostType) {
  ChannelType expected = isHostTransfer ? hostType : kDeviceToDevice;
  if (channel.getType() != expected) {
    return op->emitOpError()
           << "a transfer " << (isHostTransfer ? "with the host" : "of devices")
           << " needs a channel of type " << static_cast<int64_t>(expected)
           << ", but got " << channel.getType();
  }
  return success();
}

/// A list of integers for each of the received tensors.
static LogicalResult verifyInfeedLayout(InfeedOp op, ArrayAttr layouts) {
  if (verifyCount(op, "layouts", layouts.size(), op.getNumResults() - 1)
          .failed()) {
    return failure();
  }
  for (Attribute attr : layouts) {
    auto layout = dyn_cast<ArrayAttr>(attr);
    if (!layout || !llvm::all_of(layout, llvm::IsaPred<IntegerAttr>)) {
      return op.emitOpError()
             << "layouts must be lists of integers, but got " << attr;
    }
  }
  return success();
}

LogicalResult InfeedOp::verify() {
  // (C1) to (C3)
  if (verifyReceived(*this).failed()) {
    return failure();
  }
  return getLayout() ? verifyInfeedLayout(*this, *getLayout()) : success();
}

LogicalResult SendOp::verify() {
  // (C1)
  return verifyChannelType(*this, getChannelHandle(), getIsHostTransfer(),
                           kDeviceToHost);
}

LogicalResult RecvOp::verify() {
  // (C1) to (C4)
  return failure(verifyChannelType(*this, getChannelHandle(),
                                   getIsHostTransfer(), kHostToDevice)
                     .failed() ||
                 verifyReceived(*this).failed());
}
