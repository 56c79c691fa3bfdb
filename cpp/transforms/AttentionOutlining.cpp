//===- AttentionOutlining.cpp - Attention as one operator -----------------===//

#include "cpp/transforms/AttentionOutlining.h"

#include "cpp/transforms/AttentionPattern.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/ShardingRule.h"
#include "mlir/Analysis/TopologicalSortUtils.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

using stablehlo::DotGeneralOp;
using stablehlo::ExpOp;
using stablehlo::TransposeOp;

namespace {

DictionaryAttr getProductAttributes(DotGeneralOp dot) {
  NamedAttrList attributes;
  if (Attribute precision = dot.getPrecisionConfigAttr()) {
    attributes.set("precision_config", precision);
  }
  if (Attribute algorithm = dot.getAlgorithmAttr()) {
    attributes.set("algorithm", algorithm);
  }
  return attributes.getDictionary(dot.getContext());
}

Operation *findFirst(ArrayRef<DotGeneralOp> operators) {
  Operation *first = operators.front();
  for (Operation *op : operators.drop_front()) {
    first = op->isBeforeInBlock(first) ? op : first;
  }
  return first;
}

/// Whether a value needs results of some operators of a sorted block: looked at
/// is what stands between them.
bool needsAny(ArrayRef<Value> values, ArrayRef<DotGeneralOp> makers,
              Block &block) {
  Operation *last = nullptr;
  for (Value value : values) {
    Operation *op = value.getDefiningOp();
    if (op && op->getBlock() == &block &&
        (!last || last->isBeforeInBlock(op))) {
      last = op;
    }
  }
  llvm::DenseSet<Operation *> behind(makers.begin(), makers.end());
  for (Operation *op = findFirst(makers);
       op && last && !last->isBeforeInBlock(op); op = op->getNextNode()) {
    op->walk([&](Operation *inner) {
      if (llvm::any_of(inner->getOperands(), [&](Value operand) {
            return behind.contains(operand.getDefiningOp());
          })) {
        behind.insert(op);
      }
    });
  }
  return llvm::any_of(values, [&](Value value) {
    return behind.contains(value.getDefiningOp());
  });
}

/// Writes the operators of one pattern.
class AttentionWriter {
public:
  AttentionWriter(AttentionPattern &pattern, int64_t blockBytes)
      : pattern(pattern), blockBytes(blockBytes),
        builder(pattern.products.getContext()),
        block(*pattern.products->getBlock()) {}

  /// False if operands of an operator are made of what it takes the place of.
  bool write() {
    SmallVector<Value> inputs = getInputs(/*isBackward=*/false);
    SmallVector<DotGeneralOp, 4> replaced = pattern.getReplaced();
    if (pattern.hasGradient()) {
      llvm::append_range(inputs, getInputs(/*isBackward=*/true));
      if (pattern.out) {
        replaced.erase(llvm::find(replaced, pattern.out->dot));
      }
    }
    if (needsAny(inputs, replaced, block)) {
      return false;
    }
    Operation *first = findFirst(pattern.getReplaced());
    setPlace(getInputs(/*isBackward=*/false));
    addExtras(0, pattern.numScoreExtras);
    query = emit(pattern.query);
    key = emit(pattern.key);
    value = emit(pattern.value);
    AttentionOp attention = writeForward();
    Operation *end = &*builder.getInsertionPoint();
    if (pattern.hasGradient()) {
      inputs.push_back(attention.getOut());
      setPlace(inputs);
      addExtras(pattern.numScoreExtras, pattern.extras.size());
      writeBackward(attention);
      Operation *other = &*builder.getInsertionPoint();
      end = end->isBeforeInBlock(other) ? other : end;
    }
    return sort(first, end);
  }

private:
  SmallVector<Value> getInputs(bool isBackward) {
    SmallVector<Value> inputs{pattern.query.value, pattern.key.value,
                              pattern.value.value};
    if (isBackward) {
      inputs.push_back(pattern.gradient.value);
    }
    ArrayRef<ScoreExtra> needed(pattern.extras);
    for (const ScoreExtra &extra :
         isBackward ? needed : needed.take_front(pattern.numScoreExtras)) {
      inputs.push_back(extra.value);
    }
    return inputs;
  }

  /// Uses of what was replaced, the first of which is given, may stand before
  /// the last of what is there instead, behind which `end` stands.
  bool sort(Operation *first, Operation *end) {
    if (!first->isBeforeInBlock(end)) {
      return true;
    }
    bool isSorted = sortTopologically(
        &block, llvm::make_range(first->getIterator(), end->getIterator()));
    assert(isSorted && "operands depend on what was replaced");
    return isSorted;
  }

  /// Behind the last of some values.
  void setPlace(ArrayRef<Value> inputs) {
    Operation *last = nullptr;
    for (Value input : inputs) {
      Operation *op = input.getDefiningOp();
      if (op && op->getBlock() == &block &&
          (!last || last->isBeforeInBlock(op))) {
        last = op;
      }
    }
    if (last) {
      builder.setInsertionPointAfter(last);
    } else {
      builder.setInsertionPointToStart(&block);
    }
  }

  void addExtras(size_t first, size_t end) {
    for (const ScoreExtra &extra :
         ArrayRef(pattern.extras).slice(first, end - first)) {
      extras.push_back(ScoreRegion::emitExtra(builder, pattern.dims, extra));
      dims.push_back(builder.getDenseI64ArrayAttr(
          ScoreRegion::getExtraDims(pattern.dims, extra)));
    }
  }

  Value transpose(Value operand, ArrayRef<int64_t> order, Location loc) {
    auto type = cast<RankedTensorType>(operand.getType());
    if (llvm::is_sorted(order)) {
      return operand;
    }
    SmallVector<int64_t> shape = llvm::map_to_vector(
        order, [&](int64_t dim) { return type.getDimSize(dim); });
    return TransposeOp::create(builder, loc, type.clone(shape), operand,
                               builder.getDenseI64ArrayAttr(order));
  }
  Value emit(const Ordered &ordered) {
    return transpose(ordered.value, ordered.order, pattern.products.getLoc());
  }

  void replace(const AttentionProduct &product, Value made) {
    DotGeneralOp dot = product.dot;
    dot.getResult().replaceAllUsesWith(
        transpose(made, product.resultOrder, dot.getLoc()));
  }

  RankedTensorType getRows(Type elementType,
                           std::optional<int64_t> size = std::nullopt) {
    SmallVector<int64_t> shape = pattern.dims.getOrderedShape();
    shape.pop_back();
    if (size) {
      shape.push_back(*size);
    }
    return RankedTensorType::get(shape, elementType);
  }

  static int64_t getLastSize(Value value) {
    return cast<RankedTensorType>(value.getType()).getShape().back();
  }

  AttentionOp writeForward() {
    DotGeneralOp sum = pattern.out ? pattern.out->dot : pattern.ofWeights;
    // Where only the gradient is wanted: the weights have the values' type.
    Type element = getElementTypeOrSelf(pattern.out ? sum.getResult().getType()
                                                    : value.getType());
    Type weights = pattern.out
                       ? getElementTypeOrSelf(pattern.out->scores.getType())
                       : getElementTypeOrSelf(value.getType());
    RankedTensorType rows = getRows(pattern.accumulated);
    size_t numExtras = pattern.numScoreExtras;
    auto attention = AttentionOp::create(
        builder, sum.getLoc(),
        TypeRange{getRows(element, getLastSize(value)), rows, rows}, query, key,
        value, ArrayRef(extras).take_front(numExtras),
        pattern.dims.batch.size(),
        builder.getArrayAttr(ArrayRef(dims).take_front(numExtras)),
        builder.getArrayAttr({getProductAttributes(pattern.products),
                              getProductAttributes(sum)}),
        weights, blockBytes);
    IRMapping mapping;
    pattern.scores->cloneInto(&attention.getScores(), mapping);
    if (pattern.out) {
      replace(*pattern.out, attention.getOut());
    }
    return attention;
  }

  Type getGradientType(const std::optional<AttentionProduct> &product,
                       Value of) {
    if (!product) {
      return of.getType();
    }
    Value result = product->dot->getResult(0);
    return cast<RankedTensorType>(of.getType())
        .clone(getElementTypeOrSelf(result.getType()));
  }

  DictionaryAttr getAttributes(const std::optional<AttentionProduct> &product,
                               DotGeneralOp like) {
    return getProductAttributes(product ? product->dot : like);
  }

  void writeBackward(AttentionOp attention) {
    Block &scores = pattern.scores->front();
    for (Value extra : ArrayRef(extras).drop_front(pattern.numScoreExtras)) {
      scores.addArgument(extra.getType(), extra.getLoc());
    }
    Value gradient = emit(pattern.gradient);
    Type weights =
        getElementTypeOrSelf(pattern.ofValue ? pattern.ofValue->scores.getType()
                                             : gradient.getType());
    DotGeneralOp like =
        pattern.ofQuery ? pattern.ofQuery->dot : pattern.ofKey->dot;
    auto made = AttentionGradientOp::create(
        builder, like.getLoc(),
        TypeRange{getGradientType(pattern.ofQuery, query),
                  getGradientType(pattern.ofKey, key),
                  getGradientType(pattern.ofValue, value)},
        query, key, value, attention.getOut(), attention.getMax(),
        attention.getSum(), gradient, extras, pattern.dims.batch.size(),
        builder.getArrayAttr(dims),
        builder.getArrayAttr(
            {getProductAttributes(pattern.products),
             getProductAttributes(pattern.ofWeights),
             getAttributes(pattern.ofQuery, like),
             getAttributes(pattern.ofKey, like),
             getAttributes(pattern.ofValue, pattern.ofWeights)}),
        weights, blockBytes);
    made.getScores().takeBody(*pattern.scores);
    made.getGradients().takeBody(*pattern.gradients);
    for (auto [product, result] :
         {std::pair(&pattern.ofQuery, made.getQueryGradient()),
          std::pair(&pattern.ofKey, made.getKeyGradient()),
          std::pair(&pattern.ofValue, made.getValueGradient())}) {
      if (*product) {
        replace(**product, result);
      }
    }
  }

  AttentionPattern &pattern;
  int64_t blockBytes;
  OpBuilder builder;
  Block &block;
  SmallVector<Value> extras;
  SmallVector<Attribute> dims;
  Value query, key, value;
};

/// Erases what nothing uses any more, from some operators upward.
void eraseDead(ArrayRef<DotGeneralOp> from,
               llvm::DenseSet<Operation *> &erased) {
  SmallVector<Operation *> work(from.begin(), from.end());
  while (!work.empty()) {
    Operation *op = work.pop_back_val();
    if (erased.contains(op) || !isOpTriviallyDead(op)) {
      continue;
    }
    for (Value operand : op->getOperands()) {
      if (Operation *maker = operand.getDefiningOp()) {
        work.push_back(maker);
      }
    }
    erased.insert(op);
    op->erase();
  }
}

} // namespace

void outlineAttention(func::FuncOp function, const AttentionOptions &options) {
  SmallVector<ExpOp> candidates;
  function.walk([&](ExpOp shares) {
    // What its author has split is one device's as it is.
    if (!shares->getParentOfType<ManualOp>()) {
      candidates.push_back(shares);
    }
  });
  llvm::DenseSet<Operation *> erased;
  for (ExpOp shares : candidates) {
    std::unique_ptr<AttentionPattern> pattern =
        erased.contains(shares) ? nullptr
                                : findAttention(shares, options.fewestKeys);
    if (!pattern) {
      continue;
    }
    SmallVector<DotGeneralOp, 4> replaced = pattern->getReplaced();
    Location loc = pattern->products.getLoc();
    int64_t numKeys = pattern->dims.shape[pattern->dims.key];
    if (AttentionWriter(*pattern, options.blockBytes).write()) {
      emitRemark(loc) << "attention over " << numKeys
                      << " keys is computed in blocks of keys; where its "
                         "sequence is split, keys and values go around";
      // Its random bits use what is dead without them.
      pattern.reset();
      eraseDead(replaced, erased);
    }
  }
}

void inlineAttention(ModuleOp module) {
  /// One device has nothing to send.
  struct OneDevice final : LocalCollectives {
    Value emitOffset(ArrayRef<unsigned>, int64_t, Type) override { return {}; }
    Value emitGather(Value, int64_t, ArrayRef<unsigned>) override { return {}; }
    Value emitShift(Value, int64_t, ArrayRef<unsigned>) override { return {}; }
    Value emitRotation(Value, ArrayRef<unsigned>) override { return {}; }
    Value emitPermutation(Value, ArrayRef<int64_t>,
                          ArrayRef<unsigned>) override {
      return {};
    }
    Value emitDeal(Value, ArrayRef<unsigned>) override { return {}; }
  } collectives;
  SmallVector<Operation *> found;
  module.walk([&](Operation *op) {
    if (isa<AttentionOp, AttentionGradientOp>(op)) {
      found.push_back(op);
    }
  });
  for (Operation *op : found) {
    OpBuilder builder(op);
    ShardingRule rule = *getShardingRule(op);
    SmallVector<SmallVector<unsigned, 2>> axes(rule.factors.size());
    SmallVector<int64_t> shards(rule.factors.size(), 1);
    LocalContext context(builder, rule, axes, shards, op->getOperands(),
                         op->getResultTypes(), collectives);
    op->replaceAllUsesWith(*localize(op, context));
    op->erase();
  }
}

} // namespace mlir::alpa
