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

/// Distinct numbers from 0 on in a matrix; `fill` is one that may repeat.
static LogicalResult verifyDevices(Operation *op, DenseIntElementsAttr groups,
                                   std::optional<int64_t> fill,
                                   llvm::DenseSet<int64_t> &seen) {
  auto type = cast<RankedTensorType>(groups.getType());
  if (type.getRank() != 2) {
    return op->emitOpError()
           << "replica groups must have rank 2, but got " << type;
  }
  if (groups.getNumElements() > kMaxDevices) {
    return op->emitOpError() << "replica groups name more than " << kMaxDevices
                             << " devices: " << type;
  }
  for (int64_t device : groups.getValues<int64_t>()) {
    if (fill == device) {
      continue;
    }
    if (device < 0 || device > kMaxDevices) {
      return op->emitOpError()
             << "replica groups name device " << device << ", which is not in "
             << "[0, " << kMaxDevices << "]";
    }
    if (!seen.insert(device).second) {
      return op->emitOpError()
             << "device " << device << " is in replica groups twice";
    }
  }
  return success();
}

/// Groups [groups, devices of a group] of the devices 0 to n - 1; -1 fills up
/// groups that may be of different sizes.
static LogicalResult verifyGroups(Operation *op, DenseIntElementsAttr groups,
                                  bool areGlobal, bool mayFill = false) {
  llvm::DenseSet<int64_t> seen;
  if (verifyDevices(op, groups, mayFill ? std::optional(-1) : std::nullopt,
                    seen)
          .failed()) {
    return failure();
  }
  for (int64_t device = 0; device < static_cast<int64_t>(seen.size());
       ++device) {
    if (!seen.contains(device)) {
      return op->emitOpError() << "replica groups lack device " << device
                               << " of " << seen.size();
    }
  }
  if (areGlobal && groups.empty()) {
    return op->emitOpError("global device ids need replica groups");
  }
  return success();
}

/// Devices of a group, dynamic where the groups do not say.
static int64_t getGroupSize(DenseIntElementsAttr groups) {
  return groups.empty() ? ShapedType::kDynamic : groups.getType().getDimSize(1);
}

static LogicalResult verifyChannel(Operation *op, bool areGlobal,
                                   std::optional<ChannelHandleAttr> channel) {
  if (areGlobal && (!channel || channel->getHandle() <= 0)) {
    return op->emitOpError("global device ids need a channel above 0");
  }
  return success();
}

/// `whole` is several times `part`. How often depends on how many partitions a
/// replica has, where ids are not global.
static LogicalResult verifyMultiple(Operation *op, StringRef name,
                                    int64_t whole, int64_t part) {
  if (!ShapedType::isDynamic(whole) && !ShapedType::isDynamic(part) &&
      (part == 0 || whole == 0 || whole % part != 0)) {
    return op->emitOpError()
           << name << " " << whole << " must be a multiple of " << part
           << ", above 0";
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

/// Shapes agree but for one dimension.
static LogicalResult verifyOtherSizes(Operation *op, RankedTensorType type,
                                      RankedTensorType result, int64_t dim) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] = ShapedType::kDynamic;
  return verifyShape(op, "result", result.getShape(), shape);
}

LogicalResult AllGatherOp::verify() {
  // (C2) to (C5)
  if (verifyGroups(*this, getReplicaGroups(), getUseGlobalDeviceIds())
          .failed() ||
      verifyChannel(*this, getUseGlobalDeviceIds(), getChannelHandle())
          .failed() ||
      verifyCount(*this, "results", getNumResults(), getOperands().size())
          .failed()) {
    return failure();
  }
  auto dim = static_cast<int64_t>(getAllGatherDim());
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults())) {
    RankedTensorType type = typeOf(operand);
    // (C1), (C6)
    if (verifyDim(*this, "all-gather dimension", dim, type.getRank())
            .failed() ||
        verifyElementType(*this, "result", result, operand).failed() ||
        verifyOtherSizes(*this, type, typeOf(result), dim).failed() ||
        verifyMultiple(*this, "result size", typeOf(result).getDimSize(dim),
                       type.getDimSize(dim))
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult AllReduceOp::verify() {
  // (C1) to (C4)
  if (verifyGroups(*this, getReplicaGroups(), getUseGlobalDeviceIds(),
                   /*mayFill=*/true)
          .failed() ||
      verifyChannel(*this, getUseGlobalDeviceIds(), getChannelHandle())
          .failed() ||
      verifyCount(*this, "results", getNumResults(), getOperands().size())
          .failed()) {
    return failure();
  }
  // (C5) to (C7)
  for (auto [operand, result] : llvm::zip_equal(getOperands(), getResults())) {
    RankedTensorType element = scalarOf(typeOf(operand));
    if (verifyReducer(*this, "the computation", getComputation(), element,
                      element)
            .failed() ||
        verifyAccumulated(*this, "result", result, getComputation()).failed() ||
        verifyShape(*this, "result", typeOf(result).getShape(),
                    typeOf(operand).getShape())
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult ReduceScatterOp::verify() {
  RankedTensorType type = typeOf(getOperand());
  RankedTensorType element = scalarOf(type);
  auto dim = static_cast<int64_t>(getScatterDimension());
  // (C1) to (C7)
  if (verifyGroups(*this, getReplicaGroups(), getUseGlobalDeviceIds())
          .failed() ||
      verifyChannel(*this, getUseGlobalDeviceIds(), getChannelHandle())
          .failed() ||
      verifyReducer(*this, "the computation", getComputation(), element,
                    element)
          .failed() ||
      verifyDim(*this, "scatter dimension", dim, type.getRank()).failed()) {
    return failure();
  }
  // (C8), (C9)
  return failure(
      verifyOtherSizes(*this, type, getType(), dim).failed() ||
      verifyMultiple(*this, "size of the scatter dimension",
                     type.getDimSize(dim), getType().getDimSize(dim))
          .failed() ||
      verifyAccumulated(*this, "result", getResult(), getComputation())
          .failed());
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
  if (verifyGroups(*this, getReplicaGroups(), /*areGlobal=*/false).failed() ||
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
  llvm::DenseSet<int64_t> seen;
  return verifyDevices(*this, getReplicaGroups(), std::nullopt, seen);
}
