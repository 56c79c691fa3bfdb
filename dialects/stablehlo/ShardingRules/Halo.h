//===- Halo.h - Windows over dimensions that are split ----------*- C++ -*-===//
//
// A window that runs over a dimension reaches over the borders of its blocks.
// Every device fetches the rows that it lacks from the blocks beside its own,
// the halo, and then runs the window over what it has. Rows that are in no
// block are padding, as in the whole operator.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_HALO_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_HALO_H

#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"

namespace mlir::stablehlo {

using OptionalSizes = std::optional<ArrayRef<int64_t>>;

/// What an optional attribute with a number per dimension says of one; 1 where
/// it is not there.
int64_t getSizeAt(OptionalSizes values, int64_t dim);

/// In front of the elements of a dimension and behind them.
using Padding = std::pair<int64_t, int64_t>;

/// What an optional attribute says of one dimension; none if it says nothing of
/// a dimension with that number.
std::optional<Padding> getPadding(std::optional<DenseIntElementsAttr> padding,
                                  int64_t dim);

/// A window over one dimension. Output o takes, for every tap t, the position
/// o * stride + t * windowDilation - lowPadding; row i of the input is at
/// position i * baseDilation, and all other positions are padding.
struct Window {
  int64_t inputSize, numTaps, outputSize;
  int64_t stride = 1;
  int64_t lowPadding = 0;
  int64_t baseDilation = 1;
  int64_t windowDilation = 1;
};

/// A window whose blocks lie over blocks of the input. One of its loops is cut
/// with the input: that over the outputs, or that over the taps, which leaves
/// shares of a sum (the gradient of a convolution's kernel has as many taps as
/// the convolution has outputs). A block of the loop and the rows under it end
/// at the same position:
///
///   inputSize * baseDilation = outputSize * stride         for outputs
///   inputSize * baseDilation = numTaps * windowDilation    for taps
class SplitWindow {
public:
  /// The way to cut a window into the most blocks; none if there is none.
  ///
  /// \param isSum whether outputs may be shares of a sum over the taps.
  static std::optional<SplitWindow> find(const Window &window, bool isSum);

  bool isOverTaps() const { return overTaps; }
  /// How many blocks there are at most: their number divides it.
  int64_t getNumBlocks() const { return numBlocks; }

  /// Rows that a block needs of those in front of it, and of those behind it.
  /// They are the same however many blocks there are.
  const Padding &getHalo() const { return halo; }
  bool hasHalo() const { return halo.first > 0 || halo.second > 0; }

  /// Padding of the window over a block and its halo.
  Padding getLocalPadding(int64_t shards) const;

private:
  SplitWindow(const Window &window, bool overTaps);

  Window window;
  bool overTaps;
  int64_t numBlocks;
  Padding halo;
};

/// Factors of a dimension of the input, of the outputs and of the taps: a loop
/// of blocks, and within each the rows, outputs or taps; empty for what is the
/// same on every device.
struct WindowFactors {
  alpa::DimFactors input, outputs, taps;
};

/// Adds those of a window to a rule; none where it cannot be cut.
///
/// \param isSum whether outputs may be shares of a sum over the taps.
WindowFactors addWindow(RuleBuilder &builder, const Window &window, bool isSum);

/// A split dimension of an operand, and the rows that each block of it needs of
/// those in front of it and behind it.
struct HaloDim {
  int64_t dim;
  unsigned factor;
  Padding halo;
};

/// A dimension of a window, by its number, that is split.
struct SplitDim {
  int64_t number;
  SplitWindow window;
  HaloDim input;
};

SmallVector<HaloDim> getInputs(ArrayRef<SplitDim> dims);

/// The attribute of a window over blocks and their halos.
DenseIntElementsAttr
getLocalPadding(alpa::LocalContext &context,
                std::optional<DenseIntElementsAttr> padding, int64_t numDims,
                ArrayRef<SplitDim> dims);

/// Fetches the halo of a block along some of its dimensions, one after another:
/// rows at corners come by way of the blocks between.
///
/// \param filling a scalar in the place of rows that there are not; null for
///        zeros.
Value fetchHalo(alpa::LocalContext &context, Value block,
                ArrayRef<HaloDim> dims, Value filling, Location loc);

/// What `fetchHalo` sends along a factor of an operand.
SmallVector<alpa::Exchange> getHaloExchanges(const alpa::ShardingRule &rule,
                                             unsigned operand, Type type,
                                             ArrayRef<HaloDim> dims,
                                             unsigned factor,
                                             ArrayRef<int64_t> factorShards);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_HALO_H
