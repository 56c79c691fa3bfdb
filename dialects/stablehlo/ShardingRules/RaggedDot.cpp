//===- RaggedDot.cpp - Rule of products in groups of rows -----------------===//
//
// chlo.ragged_dot: a product whose rows (or contracted or batch indices) come
// in groups of different sizes.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/Products.h"
#include "stablehlo/dialect/ChloOps.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::ShardingRule;

namespace {

/// The loops of one ragged product.
///
///   lhs [b.., m.., k..], rhs [g, b.., k.., n..] -> [b.., m.., n..]
///
/// The ragged dimension is one of b, m and k; if it is one of k, the right side
/// has no groups and the result has them in front. The sizes of the groups are
/// [g], or [x.., g] with the dimensions x of the left side that come before the
/// ragged one: those of the batch, and of its own kind.
///
/// Where they are [g], and rows m or sums k are ragged, blocks of these have
/// groups of other sizes, some of them empty, and devices with blocks of the
/// groups do their part of the rows: of m they have zeros for the others.
class RaggedDot {
public:
  explicit RaggedDot(chlo::RaggedDotOp op)
      : op(op), dims(op.getRaggedDotDimensionNumbers()), builder(op) {}

  ShardingRule getRule() {
    if (dims.getLhsBatchingDimensions().size() !=
            dims.getRhsBatchingDimensions().size() ||
        dims.getLhsContractingDimensions().size() !=
            dims.getRhsContractingDimensions().size() ||
        dims.getLhsRaggedDimensions().size() != 1) {
      builder.invalidate();
      return builder.finish();
    }
    lhs.resize(builder.getOperandRank(0));
    isContracted = llvm::any_of(dims.getLhsContractingDimensions(),
                                [&](int64_t dim) { return isRagged(dim); });
    nextResult = isContracted ? 1 : 0;
    addBatch();
    addFree();
    addContraction();
    addGroups();
    addGroupSizes();
    addBilinear(builder, op);
    return builder.finish();
  }

private:
  bool isRagged(int64_t dim) const {
    return dim == dims.getLhsRaggedDimensions().front();
  }

  bool isFree(int64_t dim) const {
    return !llvm::is_contained(dims.getLhsBatchingDimensions(), dim) &&
           !llvm::is_contained(dims.getLhsContractingDimensions(), dim);
  }

  void appendLhs(int64_t dim, const DimFactors &factors) {
    builder.appendOperand(0, dim, factors);
    if (dim >= 0 && dim < static_cast<int64_t>(lhs.size())) {
      lhs[dim] = factors;
    }
  }

  void addBatch() {
    for (auto [lhsDim, rhsDim] :
         llvm::zip_equal(dims.getLhsBatchingDimensions(),
                         dims.getRhsBatchingDimensions())) {
      int64_t size = builder.getOperandSize(0, lhsDim);
      DimFactors batch = isRagged(lhsDim) ? builder.addReplicated(size)
                                          : builder.addParallel(size);
      appendLhs(lhsDim, batch);
      builder.appendOperand(1, rhsDim, batch);
      builder.appendResult(0, nextResult++, batch);
    }
  }

  void addFree() {
    for (int64_t dim = 0; dim < builder.getOperandRank(0); ++dim) {
      if (!isFree(dim)) {
        continue;
      }
      int64_t size = builder.getOperandSize(0, dim);
      DimFactors rows = isRagged(dim) && !haveOneSize()
                            ? builder.addReplicated(size)
                            : builder.addParallel(size);
      appendLhs(dim, rows);
      builder.appendResult(0, nextResult++, rows);
    }
    for (int64_t dim = 0; dim < builder.getOperandRank(1); ++dim) {
      if (!llvm::is_contained(dims.getRhsBatchingDimensions(), dim) &&
          !llvm::is_contained(dims.getRhsContractingDimensions(), dim) &&
          !llvm::is_contained(dims.getRhsGroupDimensions(), dim)) {
        builder.share(1, dim, 0, nextResult++);
      }
    }
  }

  void addContraction() {
    double contractedSize = 1;
    for (auto [lhsDim, rhsDim] :
         llvm::zip_equal(dims.getLhsContractingDimensions(),
                         dims.getRhsContractingDimensions())) {
      int64_t size = builder.getOperandSize(0, lhsDim);
      DimFactors contracted = isRagged(lhsDim) && !haveOneSize()
                                  ? builder.addReplicated(size)
                                  : addContracted(builder, op, size);
      appendLhs(lhsDim, contracted);
      builder.appendOperand(1, rhsDim, contracted);
      contractedSize *= static_cast<double>(size);
    }
    // A ragged contraction visits every contracted index once, in its group.
    double outputs = getNumElements(op->getResult(0));
    if (isContracted && builder.getResultRank(0) > 0) {
      outputs /= static_cast<double>(
          std::max<int64_t>(1, builder.getResultSize(0, 0)));
    }
    builder.getRule().flops = 2 * outputs * contractedSize;
  }

  /// Whether groups are of the same sizes everywhere.
  bool haveOneSize() const { return builder.getOperandRank(2) == 1; }

  void addGroups() {
    ArrayRef<int64_t> groups = dims.getRhsGroupDimensions();
    if (!haveOneSize()) {
      return;
    }
    if (isContracted) {
      builder.appendResult(0, 0,
                           builder.addParallel(builder.getResultSize(0, 0)));
    } else if (groups.size() == 1) {
      builder.appendOperand(
          1, groups.front(),
          addContracted(builder, op,
                        builder.getOperandSize(1, groups.front())));
    }
  }

  /// Dimensions of the left side that the sizes of groups may differ along.
  SmallVector<int64_t> getPrefix() const {
    ArrayRef<int64_t> batch = dims.getLhsBatchingDimensions();
    int64_t ragged = dims.getLhsRaggedDimensions().front();
    auto before = [&](ArrayRef<int64_t> kind) {
      return kind.take_until([&](int64_t dim) { return dim == ragged; });
    };
    SmallVector<int64_t> prefix(before(batch));
    if (isContracted) {
      llvm::append_range(prefix, before(dims.getLhsContractingDimensions()));
    } else if (isFree(ragged)) {
      for (int64_t dim = 0; dim < ragged; ++dim) {
        if (isFree(dim)) {
          prefix.push_back(dim);
        }
      }
    }
    return prefix;
  }

  void addGroupSizes() {
    SmallVector<int64_t> prefix = getPrefix();
    int64_t rank = builder.getOperandRank(2);
    if (rank == 1) {
      return;
    }
    if (rank != static_cast<int64_t>(prefix.size()) + 1) {
      builder.invalidate();
      return;
    }
    for (auto [dim, source] : llvm::enumerate(prefix)) {
      builder.appendOperand(2, dim, lhs[source]);
    }
  }

  chlo::RaggedDotOp op;
  chlo::RaggedDotDimensionNumbersAttr dims;
  RuleBuilder builder;
  /// Factors of the dimensions of the left side.
  SmallVector<DimFactors> lhs;
  int64_t nextResult = 0;
  /// The ragged dimension is a contracted one.
  bool isContracted = false;
};

/// The product of one device, which has a block of the rows (or sums) and of
/// the groups.
///
/// before: r = ragged_dot(a, b, sizes)
/// after:  ends = cumulative sum of sizes; starts = ends - sizes
///         of the block of rows: clamp(. - first row, 0, number of rows)
///         of the block of groups: own = ends - starts; those rows first
///         r = ragged_dot(roll(a, -starts[0]), b, own)
///         of rows: r = roll(r with zeros behind the own rows, starts[0])
class LocalRaggedDot {
public:
  LocalRaggedDot(chlo::RaggedDotOp op, alpa::LocalContext &context)
      : op(op), dims(op.getRaggedDotDimensionNumbers()), context(context),
        builder(context.getBuilder()), emit(context, op.getLoc()) {
    findLoops();
  }

  bool isSplit() const {
    return (rows && context.getNumShards(*rows) > 1) || areGroupsSplit();
  }

  SmallVector<Value> write() {
    SmallVector<Value> results = alpa::cloneLocal(op, context);
    Operation *local = results.front().getDefiningOp();
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPoint(local);
    addSizes(context.getOperands()[2]);
    local->setOperand(
        2, emit.convert(sizes, getElementTypeOrSelf(op->getOperand(2))));
    if (!areGroupsSplit()) {
      return results;
    }
    local->setOperand(0, roll(local->getOperand(0), lhsDim, first));
    if (rhsDim) {
      local->setOperand(1, roll(local->getOperand(1), *rhsDim, first));
      return results;
    }
    builder.setInsertionPointAfter(local);
    return {restore(results.front())};
  }

private:
  bool areGroupsSplit() const {
    return groups && context.getNumShards(*groups) > 1;
  }

  static std::optional<unsigned> getLoop(const DimFactors &factors) {
    return factors.empty() ? std::nullopt : std::optional(factors.front());
  }

  void findLoops() {
    const ShardingRule &rule = context.getRule();
    lhsDim = dims.getLhsRaggedDimensions().front();
    rows = getLoop(rule.operands[0][lhsDim]);
    ArrayRef<int64_t> sums = dims.getLhsContractingDimensions();
    const auto *found = llvm::find(sums, lhsDim);
    if (found != sums.end()) {
      rhsDim = dims.getRhsContractingDimensions()[found - sums.begin()];
      groups = getLoop(rule.results[0][0]);
    } else if (dims.getRhsGroupDimensions().size() == 1) {
      groups = getLoop(rule.operands[1][dims.getRhsGroupDimensions().front()]);
    }
  }

  static RankedTensorType getType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  Value fill(Value like, Value scalar) {
    return emit.broadcast(scalar, getType(like), 0);
  }

  /// Rows of the block, of those of the whole; the first row of the block, if
  /// it is a part.
  Value clampToBlock(Value bounds, Value start) {
    auto scalar = RankedTensorType::get({}, getType(bounds).getElementType());
    if (start) {
      bounds = emit.binary<SubtractOp>(bounds, fill(bounds, start));
    }
    return ClampOp::create(builder, op.getLoc(), bounds.getType(),
                           emit.splat(scalar, 0), bounds,
                           emit.splat(scalar, getNumRows()));
  }

  int64_t getNumRows() {
    return getType(context.getOperands()[0]).getDimSize(lhsDim);
  }

  /// The sum of the elements up to each, in steps of 1, 2, 4, ...
  Value sumUp(Value values) {
    auto type = getType(values);
    Value zero =
        emit.splat(RankedTensorType::get({}, type.getElementType()), 0);
    for (int64_t step = 1; step < type.getDimSize(0); step *= 2) {
      Value shifted = PadOp::create(builder, op.getLoc(), type, values, zero,
                                    builder.getDenseI64ArrayAttr({step}),
                                    builder.getDenseI64ArrayAttr({-step}),
                                    builder.getDenseI64ArrayAttr({0}));
      values = emit.binary<AddOp>(values, shifted);
    }
    return values;
  }

  Value cut(Value vector, Value start, int64_t size) {
    auto type = RankedTensorType::get({size}, getType(vector).getElementType());
    return DynamicSliceOp::create(builder, op.getLoc(), type, vector, start,
                                  builder.getDenseI64ArrayAttr({size}));
  }

  void addSizes(Value given) {
    Value all = emit.toSignedIndices(
        given, getType(op->getOperand(0)).getDimSize(lhsDim));
    Type element = getType(all).getElementType();
    Value ends = sumUp(all);
    Value starts = emit.binary<SubtractOp>(ends, all);
    Value start;
    if (rows && context.getNumShards(*rows) > 1) {
      start = context.getOffset(*rows, element);
    }
    ends = clampToBlock(ends, start);
    starts = clampToBlock(starts, start);
    sizes = emit.binary<SubtractOp>(ends, starts);
    if (!areGroupsSplit()) {
      return;
    }
    int64_t count = context.getLocalSize(*groups);
    Value group = context.getOffset(*groups, element);
    sizes = cut(sizes, group, count);
    first = emit.reshape(cut(starts, group, 1), {});
    Value last = emit.binary<AddOp>(
        group, emit.splat(cast<RankedTensorType>(group.getType()), count - 1));
    number =
        emit.binary<SubtractOp>(emit.reshape(cut(ends, last, 1), {}), first);
  }

  /// The rows from `start` on, and then those before.
  Value roll(Value value, int64_t dim, Value start) {
    auto type = getType(value);
    SmallVector<int64_t> shape(type.getShape());
    shape[dim] *= 2;
    Value twice = ConcatenateOp::create(builder, op.getLoc(), type.clone(shape),
                                        ValueRange{value, value}, dim);
    Value zero = emit.splat(cast<RankedTensorType>(start.getType()), 0);
    SmallVector<Value> starts(type.getRank(), zero);
    starts[dim] = start;
    return DynamicSliceOp::create(
        builder, op.getLoc(), type, twice, starts,
        builder.getDenseI64ArrayAttr(type.getShape()));
  }

  /// Where the ragged dimension, a free one, is in the result.
  int64_t getResultDim() const {
    int64_t dim = dims.getLhsBatchingDimensions().size();
    for (int64_t before = 0; before < lhsDim; ++before) {
      dim += !llvm::is_contained(dims.getLhsBatchingDimensions(), before) &&
             !llvm::is_contained(dims.getLhsContractingDimensions(), before);
    }
    return dim;
  }

  Value restore(Value result) {
    auto type = getType(result);
    int64_t dim = getResultDim();
    auto indices = type.clone(getElementTypeOrSelf(number.getType()));
    Value row = IotaOp::create(builder, op.getLoc(), indices,
                               builder.getI64IntegerAttr(dim));
    Value isOwn = emit.compare(row, emit.broadcast(number, indices, 0),
                               ComparisonDirection::LT);
    Value own = emit.select(isOwn, result, emit.splat(type, 0));
    auto scalar = cast<RankedTensorType>(first.getType());
    Value back =
        emit.binary<SubtractOp>(emit.splat(scalar, getNumRows()), first);
    return roll(own, dim, back);
  }

  chlo::RaggedDotOp op;
  chlo::RaggedDotDimensionNumbersAttr dims;
  alpa::LocalContext &context;
  OpBuilder &builder;
  LocalEmitter emit;
  int64_t lhsDim = 0;
  /// Of the right side, where sums are ragged.
  std::optional<int64_t> rhsDim;
  std::optional<unsigned> rows, groups;
  /// Of the device's groups in its block of rows; the first row of these, and
  /// how many there are.
  Value sizes, first, number;
};

struct RaggedDotRule : RuleModel<RaggedDotRule, chlo::RaggedDotOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return RaggedDot(cast<chlo::RaggedDotOp>(op)).getRule();
  }
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         alpa::LocalContext &context) const {
    LocalRaggedDot local(cast<chlo::RaggedDotOp>(op), context);
    return local.isSplit() ? local.write() : alpa::cloneLocal(op, context);
  }
};

} // namespace

void stablehlo::attachChloContractionRules(MLIRContext &context) {
  chlo::RaggedDotOp::attachInterface<RaggedDotRule>(context);
}
