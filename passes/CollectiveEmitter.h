//===- CollectiveEmitter.h - Collectives of StableHLO -----------*- C++ -*-===//
//
// Writes the steps of a reshard plan as operators of the per-device program.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_COLLECTIVEEMITTER_H
#define PASSES_COLLECTIVEEMITTER_H

#include "cpp/analysis/ReshardPlanner.h"
#include "dialects/alpa/ShardingRule.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

class CollectiveEmitter {
public:
  CollectiveEmitter(OpBuilder &builder, MeshAttr mesh)
      : builder(builder), mesh(mesh), meshShape(mesh.getSizes()) {}

  /// Local value after `step`, from the local value before it.
  Value emit(const ReshardStep &step, Value local, Location loc);

  /// Combines local values over `axes`, in the form of `getCombination`.
  Value emitCombination(Value local, ArrayRef<unsigned> axes,
                        ReductionKind kind, Location loc);

  /// What the devices along `axes` have, side by side along `dim`.
  Value emitGather(Value local, int64_t dim, ArrayRef<unsigned> axes,
                   Location loc);

  /// Of `local` cut along `splitDim` in as many parts as there are devices
  /// along `axes`, each gets one; what it gets, side by side along `concatDim`.
  Value emitAllToAll(Value local, int64_t splitDim, int64_t concatDim,
                     ArrayRef<unsigned> axes, Location loc);

  /// What the device has whose linear index along `axes` is less by `distance`;
  /// zeros where there is none.
  Value emitShift(Value local, int64_t distance, ArrayRef<unsigned> axes,
                  Location loc);

  /// What the device has whose linear index along `axes` is less by one; of the
  /// first, what the last has.
  Value emitRotation(Value local, ArrayRef<unsigned> axes, Location loc);

  /// What the device has for whose linear index along `axes` that of this one
  /// stands in `targets`.
  Value emitPermutation(Value local, ArrayRef<int64_t> targets,
                        ArrayRef<unsigned> axes, Location loc);

  /// Of as many blocks along `dim` as there are devices along `axes` the one of
  /// the device whose linear index is larger by `shift`, from the first on
  /// behind the last.
  Value emitRotatedSlice(Value local, int64_t dim, ArrayRef<unsigned> axes,
                         int64_t shift, Location loc);

  /// `whole` with `block` in the place of that block.
  Value emitRotatedUpdate(Value whole, Value block, int64_t dim,
                          ArrayRef<unsigned> axes, int64_t shift, Location loc);

  Value emitZeros(RankedTensorType type, Location loc);
  /// What leaves a sum as it is.
  Value emitNeutral(RankedTensorType type, Location loc);

  int64_t getGroupSize(ArrayRef<unsigned> axes) const;

  /// What the first device of the mesh has, on all devices.
  Value emitFirst(Value local, Location loc);

  /// The scalar tensor (linear index of this device along `axes`) * blockSize.
  Value emitOffset(ArrayRef<unsigned> axes, int64_t blockSize, Type elementType,
                   Location loc);

  /// Says that the device's number is this `tensor<ui32>` and no partition id.
  void setPosition(Value value) { number = value; }

private:
  Operation *create(StringRef name, ValueRange operands, TypeRange results,
                    ArrayRef<NamedAttribute> attributes, Location loc,
                    std::unique_ptr<Region> body = nullptr);
  Value emitScalar(Type elementType, int64_t value, Location loc);
  /// A tensor that is a scalar everywhere.
  Value emitFilled(RankedTensorType type, Value scalar, Location loc);
  std::unique_ptr<Region> makeCombiner(Type elementType, ReductionKind kind,
                                       Location loc);
  NamedAttribute getReplicaGroups(ArrayRef<unsigned> axes);
  NamedAttribute getChannel();
  NamedAttribute getGlobalIds();
  NamedAttribute getI64(StringRef name, int64_t value);
  Value emitSlice(const ReshardStep &step, Value local, Location loc);
  /// `size` elements along `dim`.
  Value emitSlice(Value local, int64_t dim, int64_t size, Location loc,
                  function_ref<SmallVector<Value>()> makeStarts);
  void moveInside(Value local);
  void moveStartsInside(stablehlo::DynamicSliceOp slice);
  void moveStartsInside(stablehlo::GatherOp gather);
  Value emitAllReduce(Value local, ArrayRef<unsigned> axes, ReductionKind kind,
                      Location loc);
  Value emitGathered(Value local, ArrayRef<unsigned> axes, ReductionKind kind,
                     Location loc);
  Value emitOrdered(Value local, ArrayRef<unsigned> axes, ReductionKind kind,
                    Location loc);
  Value emitMask(ArrayRef<unsigned> axes, Value local, Location loc);
  Value emitPlace(const ReshardStep &step, Value local, Location loc);
  Value emitPermute(const ReshardStep &step, Value local, Location loc);
  /// `pairs` has a source and a target in turn.
  Value emitPermute(Value local, ArrayRef<int64_t> pairs, Location loc);
  /// Starts of a slice: zero everywhere but in `dim`.
  SmallVector<Value> emitStarts(RankedTensorType type, int dim,
                                ArrayRef<unsigned> axes, int64_t blockSize,
                                Location loc);
  SmallVector<Value> emitRotatedStarts(RankedTensorType type, int64_t dim,
                                       ArrayRef<unsigned> axes, int64_t shift,
                                       Location loc);
  /// Position of a device along each mesh axis.
  SmallVector<int64_t> getCoordinates(int64_t device) const;
  /// Sends from each device to the one whose linear index along `axes` is the
  /// target of its own, if it has one.
  Value
  emitPermute(Value local, ArrayRef<unsigned> axes,
              function_ref<std::optional<int64_t>(int64_t index)> getTarget,
              Location loc);

  OpBuilder &builder;
  MeshAttr mesh;
  ArrayRef<int64_t> meshShape;
  Value number;
  /// Slices whose starts are known to lie inside of their operands, and what
  /// rearranges elements of such.
  llvm::DenseSet<Operation *> slicesInside;
  int64_t nextChannel = 1;
};

} // namespace mlir::alpa

#endif // PASSES_COLLECTIVEEMITTER_H
