//===- Tiles.cpp - How much a tensor is padded in memory ------------------===//

#include "cpp/analysis/Tiles.h"

#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <limits>

namespace mlir::alpa {

/// Rows and columns of a tile.
static constexpr int64_t kRows = 8, kColumns = 128;

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
        least = std::min(least,
                         pad(sizes[row], kRows) * pad(sizes[column], kColumns));
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

} // namespace mlir::alpa
