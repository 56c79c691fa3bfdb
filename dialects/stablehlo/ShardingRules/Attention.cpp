//===- Attention.cpp - Rules of attention in blocks of keys ---------------===//
//
// out[b,r,f] = softmax_s(scores(q[b,r,d] k[b,s,d])) v[b,s,f] and its gradients:
// batches are independent of each other, and so are rows of queries. Where
// queries are as many as keys, both are split along one loop: every device has
// a block of queries and one of keys and values, which go around.
//
// Gradients of keys and values are sums over rows that those of queries have:
// no strategy of one operator is both, and other rows are not split there.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Sharding.h"
#include "dialects/stablehlo/ShardingRules/AttentionBlocks.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::AttentionGradientOp;
using alpa::AttentionOp;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::FactorKind;
using alpa::InnerWork;
using alpa::LocalContext;
using alpa::ShardingRule;
using alpa::TensorFactors;

namespace {

/// How often a score is written or read on its way through memory: products
/// end fusions, and so do sums along a row. Forward the products (1, and 2 for
/// the greatest and for the shares), shares (1 and 1); backward products (1 and
/// 2), gradients of weights (1 and 1), weights (1 and 1) and gradients of
/// scores (1 and 2).
constexpr double kForwardPasses = 5, kBackwardPasses = 10;

/// How often what a block adds to sums over blocks moves: it is written and
/// read, and so is the sum.
constexpr double kSumPasses = 4;

double getProduct(ArrayRef<int64_t> sizes) {
  double product = 1;
  for (int64_t size : sizes) {
    product *= static_cast<double>(size);
  }
  return product;
}

/// The loops of one operator.
struct AttentionLoops {
  ShardingRule rule;
  /// Per dimension of the scores; that of the keys is of keys and values.
  SmallVector<DimFactors> dims;
  std::optional<SequenceLoop> sequence;

  template <typename Op> AttentionLoops(Op op, FactorKind otherRows) {
    ArrayRef<int64_t> shape = op.getScoreShape();
    int64_t rank = shape.size(), numBatch = op.getBatch();
    auto add = [&](int64_t size, FactorKind kind) {
      return size == 1 ? DimFactors() : DimFactors{rule.addFactor(size, kind)};
    };
    for (int64_t dim = 0; dim + 1 < rank; ++dim) {
      bool isSequence = dim >= numBatch && !sequence && shape[dim] > 1 &&
                        shape[dim] == shape.back();
      dims.push_back(add(shape[dim], isSequence       ? FactorKind::Ordered
                                     : dim < numBatch ? FactorKind::Parallel
                                                      : otherRows));
      if (isSequence) {
        sequence = SequenceLoop{dims.back().front(), dim};
      }
    }
    dims.push_back(sequence ? DimFactors{sequence->factor}
                            : add(shape.back(), FactorKind::Replicated));
    auto sizeOf = [](Value value) {
      return cast<RankedTensorType>(value.getType()).getShape().back();
    };
    depth = add(sizeOf(op.getQuery()), FactorKind::Replicated);
    features = add(sizeOf(op.getValue()), FactorKind::Replicated);
    // Extras have all keys, whoever has which.
    wholeKeys = add(shape.back(), FactorKind::Replicated);
    batchDims = numBatch;
    flopsOf = 2 * getProduct(shape);
    sizes = {static_cast<double>(sizeOf(op.getQuery())),
             static_cast<double>(sizeOf(op.getValue()))};
  }

  TensorFactors rows(std::optional<DimFactors> last = std::nullopt) const {
    TensorFactors tensor(ArrayRef(dims).drop_back());
    if (last) {
      tensor.push_back(*last);
    }
    return tensor;
  }
  TensorFactors keys(const DimFactors &last) const {
    TensorFactors tensor(ArrayRef(dims).take_front(batchDims));
    tensor.push_back(dims.back());
    tensor.push_back(last);
    return tensor;
  }
  TensorFactors extra(ArrayRef<int64_t> of) const {
    return llvm::to_vector_of<DimFactors, 4>(
        llvm::map_range(of, [&](int64_t dim) {
          return dim + 1 == static_cast<int64_t>(dims.size()) ? wholeKeys
                                                              : dims[dim];
        }));
  }

  DimFactors depth, features, wholeKeys;
  int64_t batchDims;
  double flopsOf;
  std::pair<double, double> sizes;
};

AttentionLoops getLoops(AttentionOp op) {
  AttentionLoops loops(op, FactorKind::Parallel);
  ShardingRule &rule = loops.rule;
  rule.operands = {loops.rows(loops.depth), loops.keys(loops.depth),
                   loops.keys(loops.features)};
  rule.results = {loops.rows(loops.features), loops.rows(), loops.rows()};
  rule.flops = loops.flopsOf * (loops.sizes.first + loops.sizes.second);
  for (unsigned extra = 0; extra < op.getExtras().size(); ++extra) {
    rule.operands.push_back(loops.extra(op.getExtraDims(extra)));
  }
  return loops;
}

AttentionLoops getLoops(AttentionGradientOp op) {
  AttentionLoops loops(op, FactorKind::Replicated);
  ShardingRule &rule = loops.rule;
  rule.operands = {loops.rows(loops.depth),
                   loops.keys(loops.depth),
                   loops.keys(loops.features),
                   loops.rows(loops.features),
                   loops.rows(),
                   loops.rows(),
                   loops.rows(loops.features)};
  rule.results = {loops.rows(loops.depth), loops.keys(loops.depth),
                  loops.keys(loops.features)};
  rule.flops = loops.flopsOf * (3 * loops.sizes.first + 2 * loops.sizes.second);
  for (unsigned extra = 0; extra < op.getExtras().size(); ++extra) {
    rule.operands.push_back(loops.extra(op.getExtraDims(extra)));
  }
  return loops;
}

/// The scores of a device with its own keys.
template <typename Op>
SmallVector<int64_t> getLocalScores(Op op, const AttentionLoops &loops,
                                    ArrayRef<int64_t> factorShards) {
  SmallVector<int64_t> scores(op.getScoreShape());
  for (auto [size, factors] : llvm::zip(scores, loops.dims)) {
    for (unsigned factor : factors) {
      size /= factorShards[factor];
    }
  }
  return scores;
}

template <typename Op> struct AttentionRule : RuleModel<AttentionRule<Op>, Op> {
  static constexpr bool kIsBackward = std::is_same_v<Op, AttentionGradientOp>;

  ShardingRule getShardingRule(Operation *op) const {
    return getLoops(cast<Op>(op)).rule;
  }

  InnerWork getInnerWork(Operation *op, const ShardingRule &,
                         ArrayRef<int64_t> factorShards) const {
    auto attention = cast<Op>(op);
    AttentionLoops loops = getLoops(attention);
    SmallVector<int64_t> scores =
        getLocalScores(attention, loops, factorShards);
    ArrayRef<int64_t> rows = ArrayRef(scores).drop_back();
    int64_t numBatch = attention.getBatch(), numKeys = scores.back();
    double bytes = alpa::getTensorBytes(RankedTensorType::get(
        {}, getElementTypeOrSelf(attention.getSum().getType())));
    double numShards =
        loops.sequence ? factorShards[loops.sequence->factor] : 1;
    ScoreBlocks blocks(attention, rows, numKeys, loops.sequence, numShards);
    bool isSkipping = blocks.skippingMask.has_value();
    double share = isSkipping ? blocks.getSeenShare() : 1;

    double rowBytes = bytes * getProduct(rows);
    double keyBytes = bytes * getProduct(rows.take_front(numBatch)) * numKeys;
    double keyBlocks = numShards * numKeys / blocks.blockKeys;
    double rowBlocks = numShards * blocks.numRows / blocks.blockRows;
    auto [depth, features] = loops.sizes;
    double sums = kIsBackward ? keyBlocks * rowBytes * depth +
                                    rowBlocks * keyBytes * (depth + features)
                              : keyBlocks * rowBytes * features;
    double passes = kIsBackward ? kBackwardPasses : kForwardPasses;
    return {share, share * (passes * rowBytes * numShards * numKeys +
                            kSumPasses * sums)};
  }

  /// Keys and values come to all devices but the one that they are from; what
  /// they have of their gradients comes home as well. In zigzag, halves of what
  /// has rows or keys change places before and after that.
  SmallVector<Exchange> getExchanges(Operation *op, const ShardingRule &rule,
                                     unsigned,
                                     ArrayRef<int64_t> factorShards) const {
    auto attention = cast<Op>(op);
    AttentionLoops loops = getLoops(attention);
    int64_t numShards = factorShards[loops.sequence->factor];
    Type summed = getElementTypeOrSelf(attention.getSum().getType());
    SmallVector<Exchange> found;
    auto getBytes = [&](Value value, const TensorFactors &factors,
                        Type element) {
      return getBlockBytes(
          cast<RankedTensorType>(value.getType()).clone(element), factors,
          factorShards);
    };
    for (unsigned operand : {1, 2}) {
      Value value = op->getOperand(operand);
      const TensorFactors &factors = rule.operands[operand];
      double bytes =
          getBytes(value, factors, getElementTypeOrSelf(value.getType()));
      found.append(numShards - 1, Exchange{bytes, 1});
      if (kIsBackward) {
        found.append(numShards, Exchange{getBytes(value, factors, summed), 1});
      }
    }
    SmallVector<int64_t> scores =
        getLocalScores(attention, loops, factorShards);
    ScoreBlocks blocks(attention, ArrayRef(scores).drop_back(), scores.back(),
                       loops.sequence, numShards);
    if (!blocks.isZigzag) {
      return found;
    }
    auto addMoved = [&](Value value, const TensorFactors &factors) {
      if (llvm::is_contained(factors, DimFactors{loops.sequence->factor})) {
        double bytes =
            getBytes(value, factors, getElementTypeOrSelf(value.getType()));
        // Of two devices, each keeps the half with the even number.
        found.append(numShards == 2 ? 1 : 2, Exchange{bytes / 2, 1});
      }
    };
    for (OpOperand &operand : op->getOpOperands()) {
      // Of the result of attention its product with the gradient is enough, a
      // number per row as the sums are.
      bool isOut = kIsBackward && operand.getOperandNumber() == 3;
      unsigned moved = isOut ? 5 : operand.getOperandNumber();
      addMoved(op->getOperand(moved), rule.operands[moved]);
    }
    for (OpResult result : op->getResults()) {
      if (!result.use_empty()) {
        addMoved(result, rule.results[result.getResultNumber()]);
      }
    }
    return found;
  }

  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto attention = cast<Op>(op);
    AttentionLoops loops = getLoops(attention);
    Type i32 = context.getBuilder().getI32Type();
    SmallVector<Value> offsets;
    for (const DimFactors &factors : ArrayRef(loops.dims).drop_back()) {
      bool isSplit =
          !factors.empty() && context.getNumShards(factors.front()) > 1;
      offsets.push_back(isSplit ? context.getOffset(factors.front(), i32)
                                : Value());
    }
    return localizeAttention(attention, context, loops.sequence, offsets);
  }
};

} // namespace

void stablehlo::attachAttentionRules(MLIRContext &context) {
  AttentionOp::attachInterface<AttentionRule<AttentionOp>>(context);
  AttentionGradientOp::attachInterface<AttentionRule<AttentionGradientOp>>(
      context);
}
