//===- BlockWindows.h - What of a slice lies in a block ---------*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_BLOCKWINDOWS_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_BLOCKWINDOWS_H

#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"

namespace mlir::stablehlo {

/// A slice of `taken` elements of a dimension of which a device has a block:
/// the part of the slice that lies in the block lies in a window of it that has
/// a fixed size, which starts inside of the block.
struct BlockWindow {
  int64_t dim;
  int64_t taken;
  /// At most that of the slice, and that of the block.
  int64_t size;
  /// Scalars: the first element of the window, in the block and in the slice.
  /// The latter is less than 0 or too large where windows stick out.
  Value start, place;
};

/// Writes slices of blocks, and updates of them.
class BlockWindowEmitter {
public:
  BlockWindowEmitter(alpa::LocalContext &context, LocalEmitter &emit,
                     Location loc)
      : context(context), emit(emit), loc(loc) {}

  /// Adds a dimension that is split, of which `taken` elements are taken from
  /// `start` on, moved inside of the whole dimension.
  void add(int64_t dim, unsigned factor, Value start, int64_t taken);

  /// What is in the block of the slice, zeros elsewhere. `starts` are those of
  /// the slice, one scalar of an integer type each.
  Value slice(Value block, ArrayRef<Value> starts, ArrayRef<int64_t> sizes);

  /// The block with what an update says of it.
  Value update(Value block, Value update, ArrayRef<Value> starts);

private:
  SmallVector<Value> getStarts(ArrayRef<Value> starts);
  Value dynamicUpdate(Value value, Value update, ArrayRef<Value> starts);
  /// Scalars, one of which is not zero.
  SmallVector<Value> at(RankedTensorType type, int64_t dim, Value start);
  /// 0 .. taken + size, where something of the window lies in the slice.
  Value getPaddedPlace(const BlockWindow &window);
  /// Whether an element of a tensor of windows is one of the slice.
  Value mask(RankedTensorType type);

  alpa::LocalContext &context;
  LocalEmitter &emit;
  Location loc;
  SmallVector<BlockWindow> windows;
};

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_BLOCKWINDOWS_H
