//===- CollectiveEmitter.cpp - Collectives of StableHLO -------------------===//

#include "passes/CollectiveEmitter.h"

#include "cpp/analysis/DataFlow.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/Support/MathExtras.h"
#include <map>

namespace mlir::alpa {

Operation *CollectiveEmitter::create(StringRef name, ValueRange operands,
                                     TypeRange results,
                                     ArrayRef<NamedAttribute> attributes,
                                     Location loc,
                                     std::unique_ptr<Region> body) {
  OperationState state(loc, name, operands, results, attributes);
  if (body) {
    state.addRegion(std::move(body));
  }
  return builder.create(state);
}

NamedAttribute CollectiveEmitter::getI64(StringRef name, int64_t value) {
  return builder.getNamedAttr(name, builder.getI64IntegerAttr(value));
}

NamedAttribute CollectiveEmitter::getChannel() {
  // Type 1 is device to device.
  return builder.getNamedAttr(
      "channel_handle", stablehlo::ChannelHandleAttr::get(builder.getContext(),
                                                          nextChannel++, 1));
}

NamedAttribute CollectiveEmitter::getGlobalIds() {
  return builder.getNamedAttr("use_global_device_ids", builder.getUnitAttr());
}

int64_t CollectiveEmitter::getGroupSize(ArrayRef<unsigned> axes) const {
  int64_t size = 1;
  for (unsigned axis : axes) {
    size *= meshShape[axis];
  }
  return size;
}

SmallVector<int64_t> CollectiveEmitter::getCoordinates(int64_t device) const {
  SmallVector<int64_t> coordinates(meshShape.size());
  for (unsigned axis = meshShape.size(); axis-- > 0;) {
    coordinates[axis] = device % meshShape[axis];
    device /= meshShape[axis];
  }
  return coordinates;
}

/// One row per group; within a row the devices in the order of their linear
/// index along `axes`.
NamedAttribute CollectiveEmitter::getReplicaGroups(ArrayRef<unsigned> axes) {
  int64_t numDevices = mesh.getNumDevices();
  int64_t groupSize = getGroupSize(axes);
  std::map<SmallVector<int64_t>, SmallVector<int64_t>> groups;
  for (int64_t device = 0; device < numDevices; ++device) {
    SmallVector<int64_t> coordinates = getCoordinates(device);
    int64_t position = 0;
    for (unsigned axis : axes) {
      position = position * meshShape[axis] + coordinates[axis];
      coordinates[axis] = 0;
    }
    auto &group = groups[coordinates];
    group.resize(groupSize);
    group[position] = device;
  }
  SmallVector<int64_t> flat;
  for (const auto &[key, group] : groups) {
    llvm::append_range(flat, group);
  }
  auto type = RankedTensorType::get({numDevices / groupSize, groupSize},
                                    builder.getI64Type());
  return builder.getNamedAttr("replica_groups",
                              DenseIntElementsAttr::get(type, flat));
}

Value CollectiveEmitter::emitScalar(Type elementType, int64_t value,
                                    Location loc) {
  auto type = RankedTensorType::get({}, elementType);
  Attribute element;
  if (auto complex = dyn_cast<ComplexType>(elementType)) {
    Attribute real = builder.getFloatAttr(complex.getElementType(),
                                          static_cast<double>(value));
    Attribute zero = builder.getFloatAttr(complex.getElementType(), 0.0);
    element = builder.getArrayAttr({real, zero});
    auto real64 = cast<FloatAttr>(real).getValue();
    auto zero64 = cast<FloatAttr>(zero).getValue();
    return create("stablehlo.constant", {}, type,
                  builder.getNamedAttr("value", DenseElementsAttr::get(
                                                    type, std::complex<APFloat>(
                                                              real64, zero64))),
                  loc)
        ->getResult(0);
  }
  if (isa<FloatType>(elementType)) {
    element = builder.getFloatAttr(elementType, static_cast<double>(value));
  } else {
    element = IntegerAttr::get(
        elementType, APInt(elementType.getIntOrFloatBitWidth(),
                           static_cast<uint64_t>(value), /*isSigned=*/false,
                           /*implicitTrunc=*/true));
  }
  return create("stablehlo.constant", {}, type,
                builder.getNamedAttr("value",
                                     DenseElementsAttr::get(type, element)),
                loc)
      ->getResult(0);
}

Value CollectiveEmitter::emitFilled(RankedTensorType type, Value scalar,
                                    Location loc) {
  return create("stablehlo.broadcast_in_dim", scalar, type,
                builder.getNamedAttr("broadcast_dimensions",
                                     builder.getDenseI64ArrayAttr({})),
                loc)
      ->getResult(0);
}

Value CollectiveEmitter::emitNeutral(RankedTensorType type, Location loc) {
  auto scalar = RankedTensorType::get({}, type.getElementType());
  Value zero =
      create("stablehlo.constant", {}, scalar,
             builder.getNamedAttr("value", getNeutralOfSum(scalar)), loc)
          ->getResult(0);
  return emitFilled(type, zero, loc);
}

Value CollectiveEmitter::emitZeros(RankedTensorType type, Location loc) {
  return emitFilled(type, emitScalar(type.getElementType(), 0, loc), loc);
}

Value CollectiveEmitter::emitOffset(ArrayRef<unsigned> axes, int64_t blockSize,
                                    Type elementType, Location loc) {
  MLIRContext *context = builder.getContext();
  auto getScalarType = [&](unsigned width) {
    return RankedTensorType::get(
        {}, IntegerType::get(context, width, IntegerType::Unsigned));
  };
  auto convert = [&](Value value, Type type) {
    return value.getType() == type
               ? value
               : create("stablehlo.convert", value, type, {}, loc)
                     ->getResult(0);
  };
  bool isWide = !llvm::isUInt<32>(blockSize * getGroupSize(axes));
  RankedTensorType type = getScalarType(isWide ? 64 : 32);
  auto binary = [&](StringRef name, Value left, int64_t right) {
    Value number = emitScalar(type.getElementType(), right, loc);
    return create(name, {left, number}, type, {}, loc)->getResult(0);
  };
  Value device =
      number ? number
             : create("stablehlo.partition_id", {}, getScalarType(32), {}, loc)
                   ->getResult(0);
  device = convert(device, type);
  Value index;
  int64_t weight = blockSize;
  for (unsigned axis : llvm::reverse(axes)) {
    int64_t stride = 1;
    for (unsigned minor = axis + 1; minor < meshShape.size(); ++minor) {
      stride *= meshShape[minor];
    }
    Value coordinate =
        stride == 1 ? device : binary("stablehlo.divide", device, stride);
    coordinate = binary("stablehlo.remainder", coordinate, meshShape[axis]);
    Value term = binary("stablehlo.multiply", coordinate, weight);
    index = index ? create("stablehlo.add", {term, index}, type, {}, loc)
                        ->getResult(0)
                  : term;
    weight *= meshShape[axis];
  }
  if (!index) {
    index = emitScalar(type.getElementType(), 0, loc);
  }
  return convert(index, RankedTensorType::get({}, elementType));
}

SmallVector<Value> CollectiveEmitter::emitStarts(RankedTensorType type, int dim,
                                                 ArrayRef<unsigned> axes,
                                                 int64_t blockSize,
                                                 Location loc) {
  Type index =
      builder.getIntegerType(llvm::isInt<32>(type.getDimSize(dim)) ? 32 : 64);
  SmallVector<Value> starts;
  Value zero = emitScalar(index, 0, loc);
  for (int64_t position = 0; position < type.getRank(); ++position) {
    starts.push_back(position == dim ? emitOffset(axes, blockSize, index, loc)
                                     : zero);
  }
  return starts;
}

/// What XLA moves a slice over.
static bool rearranges(Operation *op) {
  return isa<stablehlo::BroadcastInDimOp, stablehlo::ConvertOp,
             stablehlo::ReshapeOp, stablehlo::ReverseOp, stablehlo::SliceOp,
             stablehlo::TransposeOp>(op);
}

/// XLA makes one slice of a slice of a slice, be they apart by a few operators
/// that rearrange elements, and adds the starts, which is another one where the
/// first start lies so high or low that it is moved. So it is moved here, for
/// what `local` is a part of.
void CollectiveEmitter::moveInside(Value local) {
  Operation *op = local.getDefiningOp();
  while (op && slicesInside.insert(op).second) {
    if (auto inner = dyn_cast<stablehlo::DynamicSliceOp>(op)) {
      return moveStartsInside(inner);
    }
    if (auto inner = dyn_cast<stablehlo::GatherOp>(op)) {
      return moveStartsInside(inner);
    }
    op = rearranges(op) ? op->getOperand(0).getDefiningOp() : nullptr;
  }
}

/// The last start of a slice, or the last that its type holds.
static APInt getLastStart(IntegerType type, int64_t size, int64_t sliceSize) {
  unsigned width = type.getWidth();
  APInt limit = type.isUnsigned() ? APInt::getMaxValue(width)
                                  : APInt::getSignedMaxValue(width);
  return APInt(width,
               limit.getLimitedValue(static_cast<uint64_t>(size - sliceSize)));
}

/// `clamp(0, start, size - sliceSize)`; of a dimension of which one element is
/// taken nothing can be cut off.
void CollectiveEmitter::moveStartsInside(stablehlo::DynamicSliceOp slice) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(slice);
  Location loc = slice.getLoc();
  auto operand = cast<RankedTensorType>(slice.getOperand().getType());
  for (auto [start, size, sliceSize] :
       llvm::zip(slice.getStartIndicesMutable(), operand.getShape(),
                 slice.getSliceSizes())) {
    if (sliceSize == 1 || matchPattern(start.get(), m_Zero())) {
      continue;
    }
    Value old = start.get();
    auto integer = cast<IntegerType>(getElementTypeOrSelf(old.getType()));
    auto largest = static_cast<int64_t>(
        getLastStart(integer, size, sliceSize).getZExtValue());
    start.set(create("stablehlo.clamp",
                     {emitScalar(integer, 0, loc), old,
                      emitScalar(integer, largest, loc)},
                     old.getType(), {}, loc)
                  ->getResult(0));
  }
}

/// A gather of one slice is a slice for XLA.
void CollectiveEmitter::moveStartsInside(stablehlo::GatherOp gather) {
  Value starts = gather.getStartIndices();
  auto type = cast<RankedTensorType>(starts.getType());
  ArrayRef<int64_t> dims = gather.getDimensionNumbers().getStartIndexMap();
  ArrayRef<int64_t> sliceSizes = gather.getSliceSizes();
  bool isCut =
      llvm::any_of(dims, [&](int64_t dim) { return sliceSizes[dim] > 1; });
  if (type.getNumElements() != static_cast<int64_t>(dims.size()) || !isCut) {
    return;
  }
  auto integer = cast<IntegerType>(type.getElementType());
  auto operand = cast<RankedTensorType>(gather.getOperand().getType());
  SmallVector<APInt> zeros, last;
  for (int64_t dim : dims) {
    zeros.push_back(APInt::getZero(integer.getWidth()));
    last.push_back(
        getLastStart(integer, operand.getDimSize(dim), sliceSizes[dim]));
  }
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(gather);
  auto fill = [&](ArrayRef<APInt> values) {
    return create("stablehlo.constant", {}, type,
                  builder.getNamedAttr("value",
                                       DenseElementsAttr::get(type, values)),
                  gather.getLoc())
        ->getResult(0);
  };
  Value inside = create("stablehlo.clamp", {fill(zeros), starts, fill(last)},
                        type, {}, gather.getLoc())
                     ->getResult(0);
  gather.getStartIndicesMutable().assign(inside);
}

Value CollectiveEmitter::emitSlice(const ReshardStep &step, Value local,
                                   Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  int64_t size = type.getDimSize(step.toDim) / getGroupSize(step.axes);
  return emitSlice(local, step.toDim, size, loc, [&] {
    return emitStarts(type, step.toDim, step.axes, size, loc);
  });
}

Value CollectiveEmitter::emitSlice(
    Value local, int64_t dim, int64_t size, Location loc,
    function_ref<SmallVector<Value>()> makeStarts) {
  moveInside(local);
  auto type = cast<RankedTensorType>(local.getType());
  SmallVector<int64_t> sizes(type.getShape());
  sizes[dim] = size;
  SmallVector<Value> operands = {local};
  llvm::append_range(operands, makeStarts());
  Operation *slice = create(
      "stablehlo.dynamic_slice", operands, type.clone(sizes),
      builder.getNamedAttr("slice_sizes", builder.getDenseI64ArrayAttr(sizes)),
      loc);
  slicesInside.insert(slice);
  return slice->getResult(0);
}

Value CollectiveEmitter::emitRotatedSlice(Value local, int64_t dim,
                                          ArrayRef<unsigned> axes,
                                          int64_t shift, Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  int64_t size = type.getDimSize(dim) / getGroupSize(axes);
  return emitSlice(local, dim, size, loc, [&] {
    return emitRotatedStarts(type, dim, axes, shift, loc);
  });
}

Value CollectiveEmitter::emitRotatedUpdate(Value whole, Value block,
                                           int64_t dim, ArrayRef<unsigned> axes,
                                           int64_t shift, Location loc) {
  auto type = cast<RankedTensorType>(whole.getType());
  SmallVector<Value> operands = {whole, block};
  llvm::append_range(operands, emitRotatedStarts(type, dim, axes, shift, loc));
  return create("stablehlo.dynamic_update_slice", operands, type, {}, loc)
      ->getResult(0);
}

/// Position 0 of the axes keeps the value, the others hold -0.0: the sum over
/// the axes is the value. Zeros are a summand of zeros as they are.
Value CollectiveEmitter::emitMask(ArrayRef<unsigned> axes, Value local,
                                  Location loc) {
  if (isZero(local)) {
    return local;
  }
  auto type = cast<RankedTensorType>(local.getType());
  Type i32 = builder.getI32Type();
  Value position = emitOffset(axes, 1, i32, loc);
  auto equal = stablehlo::ComparisonDirectionAttr::get(
      builder.getContext(), stablehlo::ComparisonDirection::EQ);
  Value isFirst =
      create("stablehlo.compare", {position, emitScalar(i32, 0, loc)},
             RankedTensorType::get({}, builder.getI1Type()),
             builder.getNamedAttr("comparison_direction", equal), loc)
          ->getResult(0);
  Value none = emitNeutral(type, loc);
  return create("stablehlo.select", {isFirst, local, none}, type, {}, loc)
      ->getResult(0);
}

/// The blocks of the devices, each at its place among zeros.
Value CollectiveEmitter::emitPlace(const ReshardStep &step, Value local,
                                   Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  SmallVector<int64_t> sizes(type.getShape());
  int64_t blockSize = sizes[step.fromDim];
  sizes[step.fromDim] *= getGroupSize(step.axes);
  RankedTensorType whole = type.clone(sizes);
  SmallVector<Value> operands = {emitNeutral(whole, loc), local};
  llvm::append_range(
      operands, emitStarts(whole, step.fromDim, step.axes, blockSize, loc));
  return create("stablehlo.dynamic_update_slice", operands, whole, {}, loc)
      ->getResult(0);
}

Value CollectiveEmitter::emitPermute(const ReshardStep &step, Value local,
                                     Location loc) {
  SmallVector<int64_t> pairs;
  for (auto [device, source] :
       llvm::enumerate(getPermuteSources(step.before, step.after, meshShape))) {
    pairs.push_back(source);
    pairs.push_back(static_cast<int64_t>(device));
  }
  return emitPermute(local, pairs, loc);
}

Value CollectiveEmitter::emitPermute(
    Value local, ArrayRef<unsigned> axes,
    function_ref<std::optional<int64_t>(int64_t index)> getTarget,
    Location loc) {
  SmallVector<int64_t> pairs;
  for (int64_t device = 0; device < mesh.getNumDevices(); ++device) {
    SmallVector<int64_t> coordinates = getCoordinates(device);
    int64_t position = 0;
    for (unsigned axis : axes) {
      position = position * meshShape[axis] + coordinates[axis];
    }
    std::optional<int64_t> index = getTarget(position);
    if (!index) {
      continue;
    }
    for (unsigned axis : llvm::reverse(axes)) {
      coordinates[axis] = *index % meshShape[axis];
      *index /= meshShape[axis];
    }
    int64_t target = 0;
    for (auto [coordinate, length] : llvm::zip(coordinates, meshShape)) {
      target = target * length + coordinate;
    }
    pairs.push_back(device);
    pairs.push_back(target);
  }
  return emitPermute(local, pairs, loc);
}

Value CollectiveEmitter::emitShift(Value local, int64_t distance,
                                   ArrayRef<unsigned> axes, Location loc) {
  int64_t size = getGroupSize(axes);
  auto getTarget = [&](int64_t index) -> std::optional<int64_t> {
    int64_t target = index + distance;
    return target < 0 || target >= size ? std::nullopt : std::optional(target);
  };
  return emitPermute(local, axes, getTarget, loc);
}

Value CollectiveEmitter::emitRotation(Value local, ArrayRef<unsigned> axes,
                                      Location loc) {
  int64_t size = getGroupSize(axes);
  auto getTarget = [&](int64_t index) { return (index + 1) % size; };
  return emitPermute(local, axes, getTarget, loc);
}

Value CollectiveEmitter::emitPermutation(Value local, ArrayRef<int64_t> targets,
                                         ArrayRef<unsigned> axes,
                                         Location loc) {
  auto getTarget = [&](int64_t index) {
    return targets[index] < 0 ? std::nullopt : std::optional(targets[index]);
  };
  return emitPermute(local, axes, getTarget, loc);
}

SmallVector<Value> CollectiveEmitter::emitRotatedStarts(RankedTensorType type,
                                                        int64_t dim,
                                                        ArrayRef<unsigned> axes,
                                                        int64_t shift,
                                                        Location loc) {
  int64_t numBlocks = getGroupSize(axes);
  Type element =
      builder.getIntegerType(llvm::isInt<32>(type.getDimSize(dim)) ? 32 : 64);
  auto scalar = RankedTensorType::get({}, element);
  Value start = emitOffset(axes, 1, element, loc);
  for (auto [name, number] :
       {std::pair("stablehlo.add", shift),
        std::pair("stablehlo.remainder", numBlocks),
        std::pair("stablehlo.multiply", type.getDimSize(dim) / numBlocks)}) {
    start =
        create(name, {start, emitScalar(element, number, loc)}, scalar, {}, loc)
            ->getResult(0);
  }
  SmallVector<Value> starts(type.getRank(), emitScalar(element, 0, loc));
  starts[dim] = start;
  return starts;
}

Value CollectiveEmitter::emitPermute(Value local, ArrayRef<int64_t> pairs,
                                     Location loc) {
  auto type = RankedTensorType::get({static_cast<int64_t>(pairs.size()) / 2, 2},
                                    builder.getI64Type());
  return create("stablehlo.collective_permute", local, local.getType(),
                {getChannel(),
                 builder.getNamedAttr("source_target_pairs",
                                      DenseIntElementsAttr::get(type, pairs))},
                loc)
      ->getResult(0);
}

Value CollectiveEmitter::emitGather(Value local, int64_t dim,
                                    ArrayRef<unsigned> axes, Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  SmallVector<int64_t> sizes(type.getShape());
  sizes[dim] *= getGroupSize(axes);
  return create("stablehlo.all_gather", local, type.clone(sizes),
                {getI64("all_gather_dim", dim), getChannel(),
                 getReplicaGroups(axes), getGlobalIds()},
                loc)
      ->getResult(0);
}

Value CollectiveEmitter::emitAllToAll(Value local, int64_t splitDim,
                                      int64_t concatDim,
                                      ArrayRef<unsigned> axes, Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  SmallVector<int64_t> sizes(type.getShape());
  int64_t groupSize = getGroupSize(axes);
  sizes[splitDim] /= groupSize;
  sizes[concatDim] *= groupSize;
  return create("stablehlo.all_to_all", local, type.clone(sizes),
                {getChannel(), getI64("concat_dimension", concatDim),
                 getReplicaGroups(axes), getI64("split_count", groupSize),
                 getI64("split_dimension", splitDim)},
                loc)
      ->getResult(0);
}

Value CollectiveEmitter::emit(const ReshardStep &step, Value local,
                              Location loc) {
  auto type = cast<RankedTensorType>(local.getType());
  int64_t groupSize = getGroupSize(step.axes);
  SmallVector<int64_t> sizes(type.getShape());
  switch (step.kind) {
  case CollectiveKind::AllReduce:
    return emitCombination(local, step.axes, ReductionKind::Sum, loc);
  case CollectiveKind::AllGather:
    return emitGather(local, step.fromDim, step.axes, loc);
  case CollectiveKind::ReduceScatter:
    sizes[step.toDim] /= groupSize;
    return create("stablehlo.reduce_scatter", local, type.clone(sizes),
                  {getChannel(), getReplicaGroups(step.axes),
                   getI64("scatter_dimension", step.toDim), getGlobalIds()},
                  loc,
                  makeCombiner(type.getElementType(), ReductionKind::Sum, loc))
        ->getResult(0);
  case CollectiveKind::AllToAll:
    return emitAllToAll(local, step.toDim, step.fromDim, step.axes, loc);
  case CollectiveKind::CollectivePermute:
    return emitPermute(step, local, loc);
  case CollectiveKind::Local:
    return step.toDim >= 0     ? emitSlice(step, local, loc)
           : step.fromDim >= 0 ? emitPlace(step, local, loc)
                               : emitMask(step.axes, local, loc);
  }
  llvm_unreachable("unknown collective");
}

} // namespace mlir::alpa
