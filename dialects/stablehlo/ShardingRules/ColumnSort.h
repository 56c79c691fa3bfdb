//===- ColumnSort.h - Sorting what lies in blocks ---------------*- C++ -*-===//
//
// Columnsort (F. T. Leighton, Tight bounds on the complexity of parallel
// sorting, IEEE Transactions on Computers 34(4), 1985): the blocks of s devices
// are the columns of a matrix of r rows, in order from column to column. They
// are sorted four times, and between that
//
//   dealt      row by row over the columns, as a transposition does,
//   collected  the other way,
//   shifted    by half a column: each merges its half with that of the last.
//
// No device ever has more than a block, and it sends about three of them.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_COLUMNSORT_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_COLUMNSORT_H

#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"

namespace mlir::stablehlo {

/// The dimension that is sorted, from 0 on.
int64_t getSortedDim(SortOp sort);

/// How a sort goes along the split factor of its dimension.
struct ColumnSortWork {
  /// How often blocks are sorted.
  static constexpr int64_t kNumSorts = 4;
  /// Bytes of a device's blocks, with the positions that decide between equals.
  double bytes;
  /// Those of half a block of each, and of each of the results that are used.
  double shiftedBytes, returnedBytes;
};
ColumnSortWork getColumnSortWork(SortOp sort, const alpa::ShardingRule &rule,
                                 ArrayRef<int64_t> factorShards);

/// Writes it for one device.
class ColumnSort {
public:
  ColumnSort(SortOp sort, unsigned factor, alpa::LocalContext &context);

  /// The device's blocks of the results.
  SmallVector<Value> run();

private:
  using Blocks = SmallVector<Value>;

  /// Where in the whole the elements of the block are, shaped like it.
  Value emitPositions(RankedTensorType block);
  Blocks sortBlocks(const Blocks &blocks);
  /// The order of the sort, and of equals that of their positions.
  void addComparator(SortOp local);
  Value emitBefore(ValueRange left, ValueRange right);

  Value deal(Value block);
  Value collect(Value block);
  /// `value` with dimension `from` at position `to`.
  Value move(Value value, int64_t from, int64_t to);
  /// `value` with the sorted dimension as two.
  Value cut(Value value, int64_t major, int64_t minor);

  Blocks mergeHalves(const Blocks &blocks);
  Value isLastBlock();

  SortOp sort;
  unsigned factor;
  alpa::LocalContext &context;
  OpBuilder &builder;
  LocalEmitter emit;
  int64_t dim;
  int64_t numBlocks;
  int64_t length;
  /// Which of the blocks has the positions; none where equals are the same.
  std::optional<unsigned> positions;
};

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_COLUMNSORT_H
