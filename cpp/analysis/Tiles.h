//===- Tiles.h - How much a tensor is padded in memory ----------*- C++ -*-===//

#ifndef CPP_ANALYSIS_TILES_H
#define CPP_ANALYSIS_TILES_H

#include "mlir/IR/BuiltinTypes.h"

namespace mlir::alpa {

/// Columns of a tile in the memory of a TPU.
inline constexpr int64_t kTileColumns = 128;

/// Bytes that a tensor takes in the memory of a TPU for each byte of its
/// numbers. Two of its dimensions are padded to tiles of 8 x 128 words. XLA
/// leaves the first dimension of three or more where it is unless that costs
/// much, and takes of the others the two that are padded least. The threshold
/// is a heuristic.
double getTilePadding(RankedTensorType type);

/// Whether blocks of `size` along `dim` are whole tiles of a result, or lie one
/// behind another. XLA for TPU lays results out by their last two dimensions,
/// the one first with which the tiles take less room.
bool isMadeOfTiles(RankedTensorType type, int64_t dim, int64_t size);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_TILES_H
