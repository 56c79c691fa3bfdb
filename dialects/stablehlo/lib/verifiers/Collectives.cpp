//===- Collectives.cpp - verifiers of communication -----------------------===//
//
// Labels (C1)... are the constraints of the StableHLO specification.
//
//===----------------------------------------------------------------------===//

#include "Checks.h"

using namespace mlir;
using namespace mlir::stablehlo;
using namespace mlir::stablehlo::verifiers;

/// More devices than any machine has: a splat's text may name far more.
static constexpr int64_t kMaxDevices = 1 << 24;

/// Groups [groups, devices of a group]: distinct numbers, -1 fills up.
static LogicalResult verifyGroups(Operation *op, DenseIntElementsAttr groups) {
  auto type = cast<RankedTensorType>(groups.getType());
  if (type.getRank() != 2) {
    return op->emitOpError()
           << "replica groups must have rank 2, but got " << type;
  }
  if (groups.getNumElements() > kMaxDevices) {
    return op->emitOpError() << "replica groups name more than " << kMaxDevices
                             << " devices: " << type;
  }
  llvm::DenseSet<int64_t> seen;
  for (int64_t device : groups.getValues<int64_t>()) {
    if (device < -1 || device > kMaxDevices) {
      return op->emitOpError()
             << "replica groups name device " << device << ", which is not in "
             << "[0, " << kMaxDevices << "]";
    }
    if (device >= 0 && !seen.insert(device).second) {
      return op->emitOpError()
             << "device " << device << " is in replica groups twice";
    }
  }
  return success();
}

/// Devices of a group, dynamic where the groups do not say.
static int64_t getGroupSize(DenseIntElementsAttr groups) {
  auto type = cast<RankedTensorType>(groups.getType());
  return type.getNumElements() == 0 ? ShapedType::kDynamic : type.getDimSize(1);
}

static LogicalResult verifyChannel(Operation *op, bool useGlobalDeviceIds,
                                   std::optional<ChannelHandleAttr> channel) {
  if (useGlobalDeviceIds && (!channel || channel->getHandle() <= 0)) {
    return op->emitOpError("global device ids need a channel above 0");
  }
  return success();
}

/// A size times or over the number of devices; dynamic if one of them is or if
/// the result is none.
static int64_t multiply(int64_t size, int64_t count) {
  int64_t result;
  if (ShapedType::isDynamic(size) || ShapedType::isDynamic(count) ||
      llvm::MulOverflow(size, count, result)) {
    return ShapedType::kDynamic;
  }
  return result;
}

static LogicalResult verifyDivides(Operation *op, StringRef name, int64_t size,
                                   int64_t count) {
  if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(count) &&
      size % count != 0) {
    return op->emitOpError() << name << " " << size << " does not divide into "
                             << count << " parts";
  }
  return success();
}

LogicalResult AllGatherOp::verify() {
  // (C2) to (C5)
  if (verifyGroups(*this, getReplicaGroups()).failed() ||
      verifyChannel(*this, getUseGlobalDeviceIds(), getChannelHandle())
          .failed() ||
      verifyCount(*this, "results", getNumResults(), getOperands().size())
          .failed()) {
    return failure();
  }
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults())) {
    RankedTensorType type = typeOf(operand);
    auto dim = static_cast<int64_t>(getAllGatherDim());
    // (C1)
    if (verifyDim(*this, "all-gather dimension", dim, type.getRank())
            .failed() ||
        verifyElementType(*this, "result", result, operand).failed()) {
      return failure();
    }
    // (C6)
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = multiply(shape[dim], getGroupSize(getReplicaGroups()));
    if (verifyShape(*this, "result", typeOf(result).getShape(), shape)
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult AllReduceOp::verify() {
  // (C1) to (C5)
  if (verifyGroups(*this, getReplicaGroups()).failed() ||
      verifyChannel(*this, getUseGlobalDeviceIds(), getChannelHandle())
          .failed() ||
      verifyCount(*this, "results", getNumResults(), getOperands().size())
          .failed() ||
      verifyScalarRegion(*this, "the computation", getComputation(), 2, 1)
          .failed()) {
    return failure();
  }
  // (C6), (C7)
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults())) {
    if (verifyShape(*this, "result", typeOf(result).getShape(),
                    typeOf(operand).getShape())
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  RankedTensorType type = typeOf(getOperand());
  auto dim = static_cast<int64_t>(getScatterDimension());
  int64_t count = getGroupSize(getReplicaGroups());
  // (C1) to (C7)
  if (verifyGroups(*this, getReplicaGroups()).failed() ||
      verifyChannel(*this, getUseGlobalDeviceIds(), getChannelHandle())
          .failed() ||
      verifyScalarRegion(*this, "the computation", getComputation(), 2, 1)
          .failed() ||
      verifyDim(*this, "scatter dimension", dim, type.getRank()).failed() ||
      verifyDivides(*this, "size of the scatter dimension",
                    type.getDimSize(dim), count)
          .failed()) {
    return failure();
  }
  // (C8)
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = ShapedType::isDynamic(shape[dim]) || ShapedType::isDynamic(count)
                   ? ShapedType::kDynamic
                   : shape[dim] / count;
  return verifyShape(*this, "result", getType().getShape(), shape);
}

LogicalResult AllToAllOp::verify() {
  auto split = static_cast<int64_t>(getSplitDimension());
  auto concat = static_cast<int64_t>(getConcatDimension());
  auto count = static_cast<int64_t>(getSplitCount());
  // (C4), (C5), (C7), (C8)
  if (count < 1 || count > kMaxDevices) {
    return emitOpError() << "split count " << count << " is not in [1, "
                         << kMaxDevices << "]";
  }
  if (verifyGroups(*this, getReplicaGroups()).failed() ||
      verifySize(*this, "split count", count, getGroupSize(getReplicaGroups()))
          .failed() ||
      verifyCount(*this, "results", getNumResults(), getOperands().size())
          .failed()) {
    return failure();
  }
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults())) {
    RankedTensorType type = typeOf(operand);
    // (C1) to (C3)
    if (verifyDim(*this, "split dimension", split, type.getRank()).failed() ||
        verifyDim(*this, "concat dimension", concat, type.getRank()).failed() ||
        verifyDivides(*this, "size of the split dimension",
                      type.getDimSize(split), count)
            .failed() ||
        verifyElementType(*this, "result", result, operand).failed()) {
      return failure();
    }
    // (C9)
    SmallVector<int64_t> shape(type.getShape());
    if (!ShapedType::isDynamic(shape[split])) {
      shape[split] /= count;
    }
    shape[concat] = multiply(shape[concat], count);
    if (verifyShape(*this, "result", typeOf(result).getShape(), shape)
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult CollectivePermuteOp::verify() {
  DenseIntElementsAttr pairs = getSourceTargetPairs();
  auto type = cast<RankedTensorType>(pairs.getType());
  // (C1)
  if (type.getRank() != 2 || type.getDimSize(1) != 2) {
    return emitOpError()
           << "source-target pairs must be a tensor of pairs, but got " << type;
  }
  if (pairs.getNumElements() > kMaxDevices) {
    return emitOpError() << "source-target pairs name more than " << kMaxDevices
                         << " devices: " << type;
  }
  // (C2) to (C4)
  llvm::DenseSet<int64_t> sources, targets;
  for (auto [index, device] : llvm::enumerate(pairs.getValues<int64_t>())) {
    bool isSource = index % 2 == 0;
    if (device < 0 || device > kMaxDevices) {
      return emitOpError() << "source-target pairs name device " << device
                           << ", which is not in [0, " << kMaxDevices << "]";
    }
    if (!(isSource ? sources : targets).insert(device).second) {
      return emitOpError() << "device " << device << " is "
                           << (isSource ? "source" : "target") << " twice";
    }
  }
  return success();
}

LogicalResult CollectiveBroadcastOp::verify() {
  // (C1), (C2)
  return verifyGroups(*this, getReplicaGroups());
}
