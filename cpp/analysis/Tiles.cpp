//===- Tiles.cpp - How much a tensor is padded in memory ------------------===//

#include "cpp/analysis/Tiles.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>
#include <numeric>

namespace mlir::alpa {

/// Rows of a tile.
static constexpr int64_t kRows = 8;

/// Beyond this the first dimension is taken as well. Heuristic.
static constexpr double kMuch = 1.5;

static double pad(int64_t size, int64_t tile) {
  return static_cast<double>(llvm::alignTo(size, tile)) /
         static_cast<double>(size);
}

/// The least padding by any two of some dimensions.
static double getLeast(ArrayRef<int64_t> sizes) {
  double least = std::numeric_limits<double>::infinity();
  for (size_t row = 0; row < sizes.size(); ++row) {
    for (size_t column = 0; column < sizes.size(); ++column) {
      if (row != column) {
        least = std::min(least, pad(sizes[row], kRows) *
                                    pad(sizes[column], kTileColumns));
      }
    }
  }
  return least;
}

double getTilePadding(RankedTensorType type) {
  if (type.getRank() < 2 || !type.hasStaticShape() ||
      type.getNumElements() == 0) {
    return 1;
  }
  ArrayRef<int64_t> sizes = type.getShape();
  double padding =
      type.getRank() > 2 ? getLeast(sizes.drop_front()) : getLeast(sizes);
  return padding > kMuch ? getLeast(sizes) : padding;
}

/// Words that the last two dimensions take in tiles. Of fewer rows than a tile
/// has, a power of two is laid out.
static int64_t getRoom(int64_t rows, int64_t columns) {
  int64_t tile = std::min<int64_t>(kRows, llvm::PowerOf2Ceil(rows));
  return llvm::alignTo(rows, tile) * llvm::alignTo(columns, kTileColumns);
}

/// The dimensions of a result, the outermost first.
static SmallVector<int64_t> getResultOrder(ArrayRef<int64_t> sizes) {
  SmallVector<int64_t> order(sizes.size());
  std::iota(order.begin(), order.end(), 0);
  if (sizes.size() < 2 || sizes.back() == 0 || *(sizes.end() - 2) == 0) {
    return order;
  }
  int64_t &row = *(order.end() - 2), &column = order.back();
  if (getRoom(sizes[column], sizes[row]) < getRoom(sizes[row], sizes[column])) {
    std::swap(row, column);
  }
  return order;
}

bool isMadeOfTiles(RankedTensorType type, int64_t dim, int64_t size) {
  SmallVector<int64_t> order = getResultOrder(type.getShape());
  auto *place = llvm::find(order, dim);
  bool isOutermost = std::all_of(order.begin(), place, [&](int64_t outer) {
    return type.getDimSize(outer) == 1;
  });
  auto inside = std::distance(place, order.end());
  int64_t tile = inside == 1 ? kTileColumns : inside == 2 ? kRows : 1;
  return isOutermost || size % tile == 0;
}

} // namespace mlir::alpa
