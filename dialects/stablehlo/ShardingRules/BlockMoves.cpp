//===- BlockMoves.cpp - Elements that move to other blocks ----------------===//

#include "dialects/stablehlo/ShardingRules/BlockMoves.h"

#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <numeric>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::FactorKind;
using alpa::LocalContext;
using alpa::ReductionKind;
using alpa::ShardingRule;

/// How many times as large as the other one of two dimensions may be.
static constexpr int64_t kMostParts = 4;

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

//===----------------------------------------------------------------------===//
// Geometry
//===----------------------------------------------------------------------===//

/// Whether a device sends to no other one in a round, and another one hears of
/// none.
static bool isFree(const BlockMoves::Round &round,
                   const BlockMoves::Piece &piece) {
  return llvm::none_of(round.pieces, [&](const BlockMoves::Piece &other) {
    return other.from == piece.from || other.to == piece.to;
  });
}

BlockMoves::BlockMoves(const MovedDim &moved, int64_t numBlocks) {
  int64_t sourceRows = moved.sourceSize / numBlocks;
  int64_t targetRows = moved.targetSize / numBlocks;
  const MovedRun &run = moved.run;
  for (int64_t done = 0; done < run.size;) {
    int64_t source = run.source + done, target = run.target + done;
    Piece piece = {source / sourceRows, target / targetRows,
                   source % sourceRows, target % targetRows, 0};
    // As far as both blocks reach.
    piece.rows = std::min(
        {sourceRows - piece.start, targetRows - piece.place, run.size - done});
    done += piece.rows;
    if (piece.from == piece.to) {
      kept.push_back(piece);
      continue;
    }
    Round *round = llvm::find_if(
        rounds, [&](const Round &each) { return isFree(each, piece); });
    if (round == rounds.end()) {
      round = &rounds.emplace_back();
    }
    round->pieces.push_back(piece);
    round->rows = std::max(round->rows, piece.rows);
  }
}

bool stablehlo::canMoveBlocks(int64_t sourceSize, int64_t targetSize) {
  auto [least, most] = std::minmax(sourceSize, targetSize);
  return least > 1 && most <= kMostParts * least;
}

bool stablehlo::addMovedBlocks(RuleBuilder &builder,
                               ArrayRef<unsigned> operands, int64_t dim) {
  int64_t size = builder.getResultSize(0, dim), numBlocks = size;
  for (unsigned operand : operands) {
    int64_t own = builder.getOperandSize(operand, dim);
    if (!canMoveBlocks(own, size)) {
      return false;
    }
    numBlocks = std::gcd(numBlocks, own);
  }
  if (numBlocks < 2) {
    return false;
  }
  DimFactors blocks =
      builder.addFactor(numBlocks, FactorKind::Parallel, ReductionKind::Sum,
                        /*isWindowed=*/true);
  builder.appendResult(0, dim, blocks);
  builder.appendResult(0, dim, builder.addReplicated(size / numBlocks));
  for (unsigned operand : operands) {
    builder.appendOperand(operand, dim, blocks);
    builder.appendOperand(
        operand, dim,
        builder.addReplicated(builder.getOperandSize(operand, dim) /
                              numBlocks));
  }
  return true;
}

bool stablehlo::isExchanged(const ShardingRule &rule, const DimFactors &dim,
                            function_ref<int64_t(unsigned)> getShards) {
  return !dim.empty() && rule.factors[dim.front()].isWindowed &&
         getShards(dim.front()) > 1;
}

SmallVector<SplitMove> stablehlo::findSplitMoves(
    const ShardingRule &rule, function_ref<int64_t(unsigned)> getShards,
    function_ref<std::optional<MovedDim>(int64_t)> getMoved) {
  SmallVector<SplitMove> found;
  for (auto [index, factors] : llvm::enumerate(rule.results[0])) {
    if (!isExchanged(rule, factors, getShards)) {
      continue;
    }
    if (auto moved = getMoved(static_cast<int64_t>(index))) {
      found.push_back({*moved, factors.front()});
    }
  }
  return found;
}

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

namespace {

/// Numbers, one of each device by its block; those of devices that are not
/// mentioned are 0.
using Numbers = SmallVector<int64_t>;

/// Writes what comes of a block of an operand over a block of a result.
class BlockMover {
public:
  BlockMover(LocalContext &context, const MovedDim &moved, unsigned factor,
             Location loc)
      : context(context), dim(moved.dim), factor(factor), loc(loc),
        emit(context, loc), numBlocks(context.getNumShards(factor)),
        moves(moved, numBlocks), sourceRows(moved.sourceSize / numBlocks),
        targetRows(moved.targetSize / numBlocks) {}

  Value run(Value block, Value result) {
    if (!moves.getKept().empty()) {
      result = place(block, result, moves.getKept());
    }
    for (const BlockMoves::Round &round : moves.getRounds()) {
      Numbers starts(numBlocks, 0), targets(numBlocks, -1);
      SmallVector<BlockMoves::Piece> received(round.pieces);
      for (BlockMoves::Piece &piece : received) {
        // As many rows are sent by all; the first may be in front of the piece.
        starts[piece.from] = std::min(piece.start, sourceRows - round.rows);
        piece.start -= starts[piece.from];
        targets[piece.from] = piece.to;
      }
      Value sent = slice(block, starts, round.rows);
      result = place(context.permute(sent, targets, factor), result, received);
    }
    return result;
  }

private:
  /// before: y, rows of which some are a piece of the block of this device
  /// after:  p = dynamic_slice(pad(rows)), so that the piece is where it lies
  ///         y = select(first <= iota < first + size of the piece, p, y)
  Value place(Value rows, Value result, ArrayRef<BlockMoves::Piece> pieces) {
    int64_t numRows = getTensorType(rows).getDimSize(dim);
    Numbers starts(numBlocks, 0), firsts(numBlocks, 0), ends(numBlocks, 0);
    for (const BlockMoves::Piece &piece : pieces) {
      starts[piece.to] = targetRows + piece.start - piece.place;
      firsts[piece.to] = piece.place;
      ends[piece.to] = piece.place + piece.rows;
    }
    if (llvm::all_of(ends, [&](int64_t end) { return end == targetRows; }) &&
        llvm::all_of(firsts, [](int64_t first) { return first == 0; }) &&
        llvm::all_equal(starts)) {
      int64_t start = starts.front() - targetRows;
      return emit.slice(rows, dim, start, start + targetRows);
    }
    Value placed = slice(emit.pad(rows, dim, targetRows), starts, targetRows);
    auto positions = RankedTensorType::get(targetRows, getIndexType(numRows));
    Value iota =
        IotaOp::create(context.getBuilder(), loc, positions, 0).getResult();
    auto bound = [&](const Numbers &numbers) {
      return emit.broadcast(getOwn(numbers, positions.getElementType()),
                            positions, -1);
    };
    Value isThere = emit.binary<AndOp>(
        emit.compare(iota, bound(firsts), ComparisonDirection::GE),
        emit.compare(iota, bound(ends), ComparisonDirection::LT));
    RankedTensorType type = getTensorType(result);
    return emit.select(
        emit.broadcast(isThere, type.clone(context.getBuilder().getI1Type()),
                       dim),
        placed, result);
  }

  Type getIndexType(int64_t numRows) {
    bool isNarrow = llvm::isInt<32>(numRows + 2 * targetRows);
    return context.getBuilder().getIntegerType(isNarrow ? 32 : 64);
  }

  /// The number of this device, a scalar.
  Value getOwn(ArrayRef<int64_t> numbers, Type element) {
    auto scalar = RankedTensorType::get({}, element);
    if (llvm::all_equal(numbers)) {
      return emit.splat(scalar, numbers.front());
    }
    Value own = emit.dynamicSlice(emit.vector(numbers, element),
                                  context.getBlock(factor, element), {1});
    return emit.reshape(own, {});
  }

  /// Rows of a value from where this device says.
  Value slice(Value value, ArrayRef<int64_t> starts, int64_t rows) {
    RankedTensorType type = getTensorType(value);
    if (llvm::all_equal(starts)) {
      return emit.slice(value, dim, starts.front(), starts.front() + rows);
    }
    Type index = getIndexType(type.getDimSize(dim));
    SmallVector<Value> own(type.getRank(),
                           emit.splat(RankedTensorType::get({}, index), 0));
    own[dim] = getOwn(starts, index);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] = rows;
    return emit.dynamicSlice(value, own, shape);
  }

  LocalContext &context;
  int64_t dim;
  unsigned factor;
  Location loc;
  LocalEmitter emit;
  int64_t numBlocks;
  BlockMoves moves;
  int64_t sourceRows, targetRows;
};

} // namespace

Value stablehlo::moveBlocks(LocalContext &context, Value block, Value result,
                            const MovedDim &moved, unsigned factor,
                            Location loc) {
  return BlockMover(context, moved, factor, loc).run(block, result);
}

SmallVector<Exchange> stablehlo::getMoveExchanges(const MovedDim &moved,
                                                  int64_t numBlocks,
                                                  double rowBytes) {
  BlockMoves moves(moved, numBlocks);
  SmallVector<Exchange> exchanges;
  for (const BlockMoves::Round &round : moves.getRounds()) {
    Exchange &exchange = exchanges.emplace_back();
    exchange.bytes = rowBytes * static_cast<double>(round.rows);
    for (const BlockMoves::Piece &piece : round.pieces) {
      exchange.routes.emplace_back(piece.from, piece.to);
    }
  }
  return exchanges;
}
