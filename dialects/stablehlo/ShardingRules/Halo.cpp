//===- Halo.cpp - Windows over dimensions that are split ------------------===//

#include "dialects/stablehlo/ShardingRules/Halo.h"
#include "dialects/alpa/Sharding.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"
#include <algorithm>
#include <numeric>
#include <tuple>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::Exchange;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::ReductionKind;
using alpa::ShardingRule;

int64_t stablehlo::getSizeAt(OptionalSizes values, int64_t dim) {
  return values && dim < static_cast<int64_t>(values->size()) ? (*values)[dim]
                                                              : 1;
}

std::optional<Padding>
stablehlo::getPadding(std::optional<DenseIntElementsAttr> padding,
                      int64_t dim) {
  if (!padding) {
    return Padding(0, 0);
  }
  if (2 * dim + 1 >= padding->getNumElements()) {
    return std::nullopt;
  }
  auto values = padding->getValues<int64_t>();
  return Padding(values[2 * dim], values[2 * dim + 1]);
}

//===----------------------------------------------------------------------===//
// Geometry
//===----------------------------------------------------------------------===//

std::optional<SplitWindow> SplitWindow::find(const Window &window, bool isSum) {
  if (window.inputSize < 1 || window.outputSize < 1 || window.numTaps < 1 ||
      window.stride < 1 || window.baseDilation < 1 ||
      window.windowDilation < 1) {
    return std::nullopt;
  }
  std::optional<SplitWindow> best;
  for (bool overTaps : {false, true}) {
    int64_t end = overTaps ? window.numTaps * window.windowDilation
                           : window.outputSize * window.stride;
    if (end != window.inputSize * window.baseDilation || (overTaps && !isSum)) {
      continue;
    }
    SplitWindow found(window, overTaps);
    if (found.numBlocks > (best ? best->numBlocks : 1)) {
      best = found;
    }
  }
  return best;
}

/// Whether blocks of one row are what XLA takes for a dimension of groups: as
/// many taps as the base dilation, one more than the stride, without padding.
/// Where it swaps the operands of a convolution (SwapConvOperands in
/// algebraic_simplifier.cc) it leaves such a dimension as it is even if the
/// halo makes it longer, and ends the process at the sizes that disagree.
static bool isGroupOfOneRow(const Window &window) {
  return window.baseDilation > 1 && window.windowDilation == 1 &&
         window.stride == window.baseDilation - 1;
}

/// Positions that a block takes, counted from its first row: from -lowPadding
/// to `last`, where `last` grows with the block as its rows do.
SplitWindow::SplitWindow(const Window &window, bool overTaps)
    : window(window), overTaps(overTaps),
      numBlocks(std::gcd(window.inputSize,
                         overTaps ? window.numTaps : window.outputSize)) {
  int64_t step = overTaps ? window.windowDilation : window.stride;
  int64_t reach = overTaps ? (window.outputSize - 1) * window.stride
                           : (window.numTaps - 1) * window.windowDilation;
  // Of the rows behind the first position of the next block.
  int64_t last = reach - step - window.lowPadding;
  halo.first = std::max<int64_t>(
      0, llvm::divideFloorSigned(window.lowPadding, window.baseDilation));
  halo.second = std::max<int64_t>(
      0, llvm::divideFloorSigned(last, window.baseDilation) + 1);
  if (overTaps && isGroupOfOneRow(window) && numBlocks > 1) {
    int64_t rows = 2;
    while (numBlocks % rows != 0) {
      ++rows;
    }
    numBlocks /= rows;
  }
}

Padding SplitWindow::getLocalPadding(int64_t shards) const {
  int64_t rows = window.inputSize / shards;
  int64_t outputs = window.outputSize / (overTaps ? 1 : shards);
  int64_t taps = window.numTaps / (overTaps ? shards : 1);
  int64_t low = window.lowPadding - halo.first * window.baseDilation;
  int64_t last = (outputs - 1) * window.stride +
                 (taps - 1) * window.windowDilation - window.lowPadding;
  int64_t high = last - (rows - 1 + halo.second) * window.baseDilation;
  // Rows behind the last position make no further output before a stride.
  return {low,
          high < 0 ? std::min<int64_t>(0, high + window.stride - 1) : high};
}

WindowFactors stablehlo::addWindow(RuleBuilder &builder, const Window &window,
                                   bool isSum) {
  WindowFactors factors;
  std::optional<SplitWindow> split = SplitWindow::find(window, isSum);
  if (!split) {
    return factors;
  }
  int64_t blocks = split->getNumBlocks();
  factors.input = builder.addFactor(blocks,
                                    split->isOverTaps() ? FactorKind::Reduction
                                                        : FactorKind::Parallel,
                                    ReductionKind::Sum, split->hasHalo());
  alpa::DimFactors &loop = split->isOverTaps() ? factors.taps : factors.outputs;
  loop = factors.input;
  llvm::append_range(factors.input,
                     builder.addReplicated(window.inputSize / blocks));
  llvm::append_range(
      loop,
      builder.addReplicated(
          (split->isOverTaps() ? window.numTaps : window.outputSize) / blocks));
  return factors;
}

SmallVector<HaloDim> stablehlo::getInputs(ArrayRef<SplitDim> dims) {
  return llvm::map_to_vector(dims,
                             [](const SplitDim &dim) { return dim.input; });
}

DenseIntElementsAttr
stablehlo::getLocalPadding(LocalContext &context,
                           std::optional<DenseIntElementsAttr> padding,
                           int64_t numDims, ArrayRef<SplitDim> dims) {
  SmallVector<int64_t> values(2 * numDims, 0);
  if (padding) {
    llvm::copy(padding->getValues<int64_t>(), values.begin());
  }
  for (const SplitDim &dim : dims) {
    std::tie(values[2 * dim.number], values[2 * dim.number + 1]) =
        dim.window.getLocalPadding(context.getNumShards(dim.input.factor));
  }
  Builder &builder = context.getBuilder();
  return DenseIntElementsAttr::get(
      RankedTensorType::get({numDims, 2}, builder.getI64Type()), values);
}

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

namespace {

/// Rows that come from one block, so many blocks away.
struct Piece {
  int64_t distance;
  int64_t rows;
};

} // namespace

/// The pieces of a halo on one side, the nearest first.
static SmallVector<Piece> getPieces(int64_t halo, int64_t blockRows) {
  SmallVector<Piece> pieces;
  for (int64_t distance = 1; halo > 0; ++distance) {
    pieces.push_back({distance, std::min(halo, blockRows)});
    halo -= blockRows;
  }
  return pieces;
}

namespace {

/// Fetches the halo along one dimension.
class HaloFetch {
public:
  HaloFetch(LocalContext &context, const HaloDim &split, Value filling,
            Location loc)
      : context(context), dim(split.dim), factor(split.factor),
        halo(split.halo), filling(filling), loc(loc), emit(context, loc) {}

  /// before: x
  /// after:  l = collective_permute(last rows of x) to the next block
  ///         h = collective_permute(first rows of x) to the block before
  ///         concatenate l, x, h
  Value run(Value block) {
    rows = cast<RankedTensorType>(block.getType()).getDimSize(dim);
    SmallVector<Value> parts;
    SmallVector<Piece> inFront = getPieces(halo.first, rows);
    for (Piece piece : llvm::reverse(inFront)) {
      parts.push_back(fetch(block, rows - piece.rows, piece, true));
    }
    parts.push_back(block);
    for (Piece piece : getPieces(halo.second, rows)) {
      parts.push_back(fetch(block, 0, piece, false));
    }
    if (parts.size() == 1) {
      return block;
    }
    auto type = cast<RankedTensorType>(block.getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] += halo.first + halo.second;
    OpBuilder &builder = context.getBuilder();
    return ConcatenateOp::create(builder, loc, type.clone(shape), parts,
                                 builder.getI64IntegerAttr(dim))
        .getResult();
  }

private:
  Value fetch(Value block, int64_t start, Piece piece, bool isLow) {
    Value sent = emit.slice(block, dim, start, start + piece.rows);
    auto type = cast<RankedTensorType>(sent.getType());
    if (piece.distance >= context.getNumShards(factor)) {
      return filling ? emit.broadcast(filling, type, -1) : emit.splat(type, 0);
    }
    Value fetched =
        context.shift(sent, isLow ? piece.distance : -piece.distance, factor);
    return filling ? fillMissing(fetched, piece.distance, isLow) : fetched;
  }

  /// Blocks at the ends get nothing, which is zeros.
  Value fillMissing(Value fetched, int64_t distance, bool isLow) {
    auto type = RankedTensorType::get({}, context.getIndexType(factor));
    int64_t blockSize = context.getLocalSize(factor);
    int64_t limit = isLow ? distance : context.getNumShards(factor) - distance;
    Value isThere =
        emit.compare(context.getOffset(factor, type.getElementType()),
                     emit.splat(type, limit * blockSize),
                     isLow ? ComparisonDirection::GE : ComparisonDirection::LT);
    return emit.select(
        isThere, fetched,
        emit.broadcast(filling, cast<RankedTensorType>(fetched.getType()), -1));
  }

  LocalContext &context;
  int64_t dim;
  unsigned factor;
  Padding halo;
  Value filling;
  Location loc;
  LocalEmitter emit;
  int64_t rows = 0;
};

} // namespace

Value stablehlo::fetchHalo(LocalContext &context, Value block,
                           ArrayRef<HaloDim> dims, Value filling,
                           Location loc) {
  for (const HaloDim &split : dims) {
    block = HaloFetch(context, split, filling, loc).run(block);
  }
  return block;
}

SmallVector<Exchange>
stablehlo::getHaloExchanges(const ShardingRule &rule, unsigned operand,
                            Type type, ArrayRef<HaloDim> dims, unsigned factor,
                            ArrayRef<int64_t> factorShards) {
  auto tensor = cast<RankedTensorType>(type);
  SmallVector<double> shape(tensor.getShape());
  for (auto [size, factors] : llvm::zip(shape, rule.operands[operand])) {
    for (unsigned each : factors) {
      size /= static_cast<double>(factorShards[each]);
    }
  }
  SmallVector<Exchange> exchanges;
  for (const auto &[splitDim, splitFactor, halo] : dims) {
    auto blockRows = static_cast<int64_t>(shape[splitDim]);
    if (splitFactor == factor) {
      double rowBytes = alpa::getElementBytes(tensor.getElementType());
      for (auto [dim, size] : llvm::enumerate(shape)) {
        rowBytes *= static_cast<int64_t>(dim) == splitDim ? 1 : size;
      }
      for (bool isLow : {true, false}) {
        for (Piece piece :
             getPieces(isLow ? halo.first : halo.second, blockRows)) {
          if (piece.distance < factorShards[factor]) {
            exchanges.push_back({rowBytes * static_cast<double>(piece.rows),
                                 isLow ? piece.distance : -piece.distance});
          }
        }
      }
    }
    shape[splitDim] += static_cast<double>(halo.first + halo.second);
  }
  return exchanges;
}
