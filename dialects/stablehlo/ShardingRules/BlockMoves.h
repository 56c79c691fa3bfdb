//===- BlockMoves.h - Elements that move to other blocks --------*- C++ -*-===//
//
// A slice, a pad or a concatenation puts the elements of a dimension elsewhere,
// in their order. Where both sides are split into as many blocks, a device
// sends what it has of them to the devices whose blocks they come to lie in, in
// rounds in which each device sends to one device at most and hears of one.
//
//   x[0:4] of 8 in four blocks:   block 0 has 0 1, block 1 has 2 3, ...
//   kept:    0 -> 0
//   round 0: block 0 sends 1 to block 1, block 1 sends 2 to block 2
//   round 1: block 1 sends 3 to block 3
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_BLOCKMOVES_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_BLOCKMOVES_H

#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"

namespace mlir::stablehlo {

/// Elements of a dimension of an operand: `source + i` of them becomes element
/// `target + i` of the result.
struct MovedRun {
  int64_t source, target, size;
};

/// A dimension of an operand and of a result that are split into as many
/// blocks, and what of the one comes to lie in the other.
struct MovedDim {
  int64_t dim;
  int64_t sourceSize, targetSize;
  MovedRun run;
};

/// What devices send each other of a dimension in so many blocks.
class BlockMoves {
public:
  /// Rows of the block `from`, from `start` on, that lie in the block `to` from
  /// `place` on.
  struct Piece {
    int64_t from, to, start, place, rows;
  };
  /// What is sent at once, of as many rows from all devices.
  struct Round {
    SmallVector<Piece> pieces;
    int64_t rows = 0;
  };

  BlockMoves(const MovedDim &moved, int64_t numBlocks);

  /// What stays on its device.
  ArrayRef<Piece> getKept() const { return kept; }
  ArrayRef<Round> getRounds() const { return rounds; }

private:
  SmallVector<Piece> kept;
  SmallVector<Round> rounds;
};

/// Whether elements of a dimension may be sent to where they come to lie: the
/// smaller of two sizes is no less than a fourth of the larger one, so that a
/// device sends few pieces. Heuristic.
bool canMoveBlocks(int64_t sourceSize, int64_t targetSize);

/// Appends to a rule the blocks of a dimension of a result, and of the
/// dimensions of the given operands that come to lie in it; as many as divide
/// all of them. Says whether there are several.
bool addMovedBlocks(RuleBuilder &builder, ArrayRef<unsigned> operands,
                    int64_t dim);

/// Whether a dimension, by its factors, is split and devices exchange what they
/// have along it.
bool isExchanged(const alpa::ShardingRule &rule, const alpa::DimFactors &dim,
                 function_ref<int64_t(unsigned)> getShards);

/// A dimension of which devices send each other elements, and its factor.
struct SplitMove {
  MovedDim dim;
  unsigned factor;
};

/// Those of an operator of one operand. `getMoved` says of a dimension that is
/// exchanged what comes to lie elsewhere, or that nothing does.
SmallVector<SplitMove>
findSplitMoves(const alpa::ShardingRule &rule,
               function_ref<int64_t(unsigned)> getShards,
               function_ref<std::optional<MovedDim>(int64_t)> getMoved);

/// Writes what comes of a block of an operand over a block of a result.
Value moveBlocks(alpa::LocalContext &context, Value block, Value result,
                 const MovedDim &moved, unsigned factor, Location loc);

/// What `moveBlocks` sends of a dimension in so many blocks, of rows of so many
/// bytes.
SmallVector<alpa::Exchange>
getMoveExchanges(const MovedDim &moved, int64_t numBlocks, double rowBytes);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_BLOCKMOVES_H
