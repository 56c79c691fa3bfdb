//===- AttentionPattern.cpp - Attention as JAX writes it ------------------===//

#include "cpp/transforms/AttentionPattern.h"

#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallPtrSet.h"

namespace mlir::alpa {

using stablehlo::DotGeneralOp;
using stablehlo::ExpOp;
using stablehlo::MaxOp;
using stablehlo::ReduceOp;
using stablehlo::SubtractOp;
using stablehlo::TransposeOp;

SmallVector<DotGeneralOp, 4> AttentionPattern::getReplaced() const {
  SmallVector<DotGeneralOp, 4> replaced;
  for (const auto *product : {&out, &ofQuery, &ofKey, &ofValue}) {
    if (*product) {
      replaced.push_back((*product)->dot);
    }
  }
  return replaced;
}

namespace {

class AttentionMatcher {
public:
  AttentionMatcher(ExpOp shares, int64_t fewestKeys)
      : shares(shares), fewestKeys(fewestKeys),
        found(std::make_unique<AttentionPattern>()), dims(found->dims),
        algebra(shares, dims) {}

  std::unique_ptr<AttentionPattern> match() {
    if (!matchMaximum() || !matchProducts() || !writeScores() || !matchUses() ||
        !writeFactor() || !matchGradient() || !isAllOfIt()) {
      return nullptr;
    }
    return std::move(found);
  }

private:
  /// e = exp(x - max x along the keys).
  bool matchMaximum() {
    auto difference = shares.getOperand().getDefiningOp<SubtractOp>();
    std::optional<ArrayRef<int64_t>> shape = getStaticShape(shares);
    if (!difference || !shape || !isa<FloatType>(getElementType(shares))) {
      return false;
    }
    scores = difference.getLhs();
    dims.shape.assign(shape->begin(), shape->end());
    Value most = difference.getRhs();
    Labels labels = getOwnLabels(*shape);
    while (Operation *op = most.getDefiningOp()) {
      unsigned next = 0;
      if (auto maximum = dyn_cast<MaxOp>(op)) {
        // What has no elements has this maximum.
        next = isLowest(maximum.getLhs()) ? 1 : 0;
        if (!isLowest(maximum.getOperand(1 - next))) {
          return false;
        }
      } else if (!isMovement(op)) {
        break;
      }
      std::optional<Labels> own =
          getOperandLabels(op->getOpOperand(next), labels);
      if (!own) {
        return false;
      }
      labels = *own;
      most = op->getOperand(next);
    }
    return matchReduction(most.getDefiningOp<ReduceOp>(), labels);
  }

  static Type getElementType(Value value) {
    return getElementTypeOrSelf(value.getType());
  }

  static bool isLowest(Value value) {
    std::optional<double> number = stablehlo::getKnownSplat(value);
    return number && *number == -std::numeric_limits<double>::infinity();
  }

  /// \param labels of the result of the reduction.
  bool matchReduction(ReduceOp reduce, const Labels &labels) {
    if (!reduce || reduce.getInputs().size() != 1 ||
        reduce.getDimensions().size() != 1 ||
        stablehlo::getReductionKind(reduce.getBody()) != ReductionKind::Max ||
        !isLowest(reduce.getInitValues().front())) {
      return false;
    }
    // Of the same scores, perhaps in another order.
    constexpr int kReduced = -2;
    Labels own = labels;
    own.insert(own.begin() + reduce.getDimensions().front(), kReduced);
    auto [reduced, reducedLabels] = strip(reduce.getInputs().front(), own);
    auto [base, baseLabels] = strip(scores, getOwnLabels(dims.shape));
    if (reduced != base) {
      return false;
    }
    dims.key = kUnit;
    for (auto [label, expected] : llvm::zip_equal(reducedLabels, baseLabels)) {
      if (label == kReduced) {
        dims.key = expected;
      } else if (label != expected) {
        return false;
      }
    }
    return dims.key != kUnit && dims.shape[dims.key] >= fewestKeys;
  }

  /// What a value is in another shape of, and labels of that.
  static std::pair<Value, Labels> strip(Value value, Labels labels) {
    Operation *op = value.getDefiningOp();
    while (op && isa<TransposeOp, stablehlo::ReshapeOp>(op)) {
      std::optional<Labels> own = getOperandLabels(op->getOpOperand(0), labels);
      if (!own) {
        break;
      }
      labels = *own;
      value = op->getOperand(0);
      op = value.getDefiningOp();
    }
    return {value, labels};
  }

  /// The one product that the scores are a function of, and what is in it.
  bool matchProducts() {
    llvm::SmallSetVector<Value, 16> seen;
    std::map<void *, Labels> labels;
    seen.insert(scores);
    labels[scores.getAsOpaquePointer()] = getOwnLabels(dims.shape);
    for (size_t next = 0; next < seen.size(); ++next) {
      Operation *op = seen[next].getDefiningOp();
      Labels own = labels[seen[next].getAsOpaquePointer()];
      if (!op || !dims.isWhole(own)) {
        continue;
      }
      if (auto dot = dyn_cast<DotGeneralOp>(op)) {
        if (found->products && found->products != dot) {
          return false;
        }
        found->products = dot;
        found->productLabels = own;
      } else if (isMovement(op) || isElementwise(op)) {
        for (OpOperand &operand : op->getOpOperands()) {
          std::optional<Labels> inner = getOperandLabels(operand, own);
          if (inner && seen.insert(operand.get())) {
            labels[operand.get().getAsOpaquePointer()] = *inner;
          }
        }
      }
    }
    return found->products && matchProductDims();
  }

  /// Which dimensions of the scores are of the batch, and which are rows.
  bool matchProductDims() {
    DotGeneralOp dot = found->products;
    ProductSide lhs(dot, 0), rhs(dot, 1);
    int64_t numBatch = lhs.batch.size(), numLhs = lhs.free.size();
    // Dimensions of one element are what is left, in order.
    Labels all = found->productLabels;
    if (all.size() != dims.shape.size()) {
      return false;
    }
    int unit = 0;
    for (int &label : all) {
      while (unit < static_cast<int>(dims.shape.size()) &&
             dims.shape[unit] != 1) {
        ++unit;
      }
      if (label == kUnit) {
        label = unit++;
      }
    }
    ArrayRef<int> labels(all);
    ArrayRef<int> ofLhs = labels.slice(numBatch, numLhs),
                  ofRhs = labels.drop_front(numBatch + numLhs);
    bool isKeyLeft = llvm::is_contained(ofLhs, dims.key);
    const ProductSide &keys = isKeyLeft ? lhs : rhs,
                      &queries = isKeyLeft ? rhs : lhs;
    ArrayRef<int> rows = isKeyLeft ? ofRhs : ofLhs;
    dims.batch.assign(labels.take_front(numBatch));
    dims.rows.assign(rows.begin(), rows.end());
    if (keys.free.size() != 1 || keys.summed.size() != 1 || rows.empty() ||
        (isKeyLeft ? ofLhs : ofRhs) != ArrayRef<int>(dims.key)) {
      return false;
    }
    auto order = [](const ProductSide &side) {
      Ordered ordered{side.value, side.batch};
      llvm::append_range(ordered.order, side.free);
      llvm::append_range(ordered.order, side.summed);
      return ordered;
    };
    found->query = order(queries);
    found->key = order(keys);
    return true;
  }

  Value isProducts(Value value, const Labels &labels, Value argument) {
    return value == found->products.getResult() &&
                   labels == found->productLabels
               ? argument
               : Value();
  }

  bool writeScores() {
    found->accumulated = getElementType(shares).isF64()
                             ? getElementType(shares)
                             : Float32Type::get(shares.getContext());
    region.emplace(shares.getContext(), dims, found->extras, found->bits);
    products = region->addNumbers(found->products.getType());
    Value made = writeForward(scores, getOwnLabels(dims.shape));
    if (made) {
      yielded.push_back(region->convert(made, found->accumulated));
    }
    return made != nullptr;
  }

  Value writeForward(Value value, const Labels &labels) {
    return region->write(value, labels, [&](Value value, const Labels &labels) {
      return isProducts(value, labels, products);
    });
  }

  /// What weights are multiplied by, behind the scores.
  bool writeFactor() {
    if (double scale = found->factor.scale; scale != 1) {
      yielded.push_back(region->splat(found->accumulated, scale));
    }
    for (const KeptWeights &kept : found->factor.kept) {
      Value mask = writeForward(kept.mask, kept.labels);
      if (!mask) {
        return false;
      }
      mask = kept.isWhenTrue ? mask : region->negate(mask);
      yielded.push_back(
          kept.isProduct ? region->convert(mask, found->accumulated) : mask);
    }
    region->yield(yielded);
    found->scores = region->take();
    found->numScoreExtras = found->extras.size();
    return true;
  }

  /// Products that use what is made of the shares.
  bool matchUses() {
    std::map<void *, Labels> labels;
    SmallVector<Value> work{shares};
    labels[Value(shares).getAsOpaquePointer()] = getOwnLabels(dims.shape);
    while (!work.empty()) {
      Value value = work.pop_back_val();
      Labels own = labels[value.getAsOpaquePointer()];
      for (OpOperand &use : value.getUses()) {
        Operation *user = use.getOwner();
        if (user->getBlock() != shares->getBlock()) {
          return false;
        }
        if (auto dot = dyn_cast<DotGeneralOp>(user)) {
          if (!addUse(dot, use.getOperandNumber(), own)) {
            return false;
          }
        } else if (isMovement(user) || isElementwise(user)) {
          std::optional<Labels> result = getResultLabels(use, own);
          Value next = user->getResult(0);
          if (result &&
              labels.emplace(next.getAsOpaquePointer(), *result).second) {
            work.push_back(next);
          }
        }
      }
    }
    return found->out || found->ofQuery || found->ofKey || found->ofValue;
  }

  bool addUse(DotGeneralOp dot, unsigned operand, const Labels &labels) {
    if (!dims.isWhole(labels)) {
      return false;
    }
    ProductSide own(dot, operand), other(dot, 1 - operand);
    std::optional<Dims> batch =
        pick(dims.batch, labelsAt(own.batch, labels), dims.shape);
    std::optional<Dims> rows =
        pick(dims.rows, labelsAt(own.free, labels), dims.shape);
    bool isPerRow = rows.has_value();
    std::optional<Dims> summed =
        pick(isPerRow ? ArrayRef<int>(dims.key) : ArrayRef<int>(dims.rows),
             labelsAt(own.summed, labels), dims.shape);
    std::optional<Dims> kept =
        isPerRow ? rows
                 : pick(dims.key, labelsAt(own.free, labels), dims.shape);
    if (!batch || !summed || !kept || other.free.size() != 1) {
      return false;
    }
    AttentionProduct product{dot, {other.value, {}}, {}, own.value, labels};
    appendAt(product.other.order, other.batch, *batch);
    appendAt(product.other.order, other.summed, *summed);
    product.other.order.push_back(other.free.front());
    product.resultOrder =
        getResultOrder(*batch, *kept, operand == 0 ? 0 : other.free.size());
    std::optional<WeightFactor> factor =
        algebra.getWeightFactor(own.value, labels);
    std::optional<AttentionProduct> &place =
        factor ? (isPerRow ? found->out : found->ofValue)
               : (isPerRow ? found->ofQuery : found->ofKey);
    if (place || (factor && isFactorKnown && *factor != found->factor)) {
      return false;
    }
    if (factor) {
      found->factor = *factor;
      isFactorKnown = true;
    }
    place = std::move(product);
    return true;
  }

  /// What the products of the gradient are products of.
  bool matchGradient() {
    const AttentionProduct *any = found->ofQuery ? &*found->ofQuery
                                  : found->ofKey ? &*found->ofKey
                                                 : nullptr;
    if (!any) {
      // Values alone have a gradient that needs no scores' gradient.
      return found->out && !found->ofValue && takeValue(found->out->other);
    }
    if (!writeGradients(*any)) {
      return false;
    }
    found->ofWeights = algebra.getWeightGradient();
    if (!found->ofWeights ||
        found->ofWeights->getBlock() != shares->getBlock() ||
        !matchWeightGradient()) {
      return false;
    }
    auto fits = [](const std::optional<AttentionProduct> &product,
                   const Ordered &expected) {
      return !product || product->other == expected;
    };
    return fits(found->out, found->value) && fits(found->ofQuery, found->key) &&
           fits(found->ofKey, found->query) &&
           fits(found->ofValue, found->gradient) && areOfOneGradient();
  }

  bool takeValue(const Ordered &value) {
    found->value = value;
    return true;
  }

  /// Both products are of one gradient of products.
  bool areOfOneGradient() {
    if (!found->ofQuery || !found->ofKey) {
      return true;
    }
    auto order = [&](const AttentionProduct &product) {
      Ordered scores{product.scores, {}};
      SmallVector<int> wanted = dims.getOrder();
      std::optional<Dims> picked = pick(wanted, product.labels, dims.shape);
      scores.order = picked ? *picked : Dims();
      return scores;
    };
    return order(*found->ofQuery) == order(*found->ofKey);
  }

  bool writeGradients(const AttentionProduct &product) {
    ScoreRegion region(shares.getContext(), dims, found->extras, found->bits);
    Value gradient = region.addNumbers(found->accumulated);
    Value products = region.addNumbers(found->products.getType());
    auto find = [&](Value value, const Labels &labels) {
      if (dims.isWhole(labels) &&
          algebra.isScoreGradient(value, labels, found->factor)) {
        return region.convert(gradient, getElementType(value));
      }
      return isProducts(value, labels, products);
    };
    Value made = region.write(product.scores, product.labels, find);
    if (!made) {
      return false;
    }
    region.yield(region.convert(made, getElementType(product.scores)));
    found->gradients = region.take();
    return true;
  }

  /// g value: the sides of the product.
  bool matchWeightGradient() {
    DotGeneralOp dot = found->ofWeights;
    ProductSide lhs(dot, 0), rhs(dot, 1);
    Labels labels = algebra.getWeightGradientLabels();
    int64_t numBatch = lhs.batch.size(), numLhs = lhs.free.size();
    ArrayRef<int> all(labels);
    ArrayRef<int> ofLhs = all.slice(numBatch, numLhs),
                  ofRhs = all.drop_front(numBatch + numLhs);
    bool isKeyLeft = llvm::is_contained(ofLhs, dims.key);
    const ProductSide &keys = isKeyLeft ? lhs : rhs,
                      &rows = isKeyLeft ? rhs : lhs;
    std::optional<Dims> batch =
        pick(dims.batch, all.take_front(numBatch), dims.shape);
    std::optional<Dims> free =
        pick(dims.rows, isKeyLeft ? ofRhs : ofLhs, dims.shape);
    if (!batch || !free || keys.free.size() != 1 || keys.summed.size() != 1 ||
        (isKeyLeft ? ofLhs : ofRhs) != ArrayRef<int>(dims.key)) {
      return false;
    }
    found->value = {keys.value, {}};
    appendAt(found->value.order, keys.batch, *batch);
    found->value.order.push_back(keys.free.front());
    found->value.order.push_back(keys.summed.front());
    found->gradient = {rows.value, {}};
    appendAt(found->gradient.order, rows.batch, *batch);
    appendAt(found->gradient.order, rows.free, *free);
    found->gradient.order.push_back(rows.summed.front());
    return true;
  }

  /// Nothing but the products that are replaced needs the scores.
  bool isAllOfIt() {
    llvm::SmallSetVector<Operation *, 32> dead;
    for (DotGeneralOp dot : found->getReplaced()) {
      dead.insert(dot);
    }
    // What is made of the scores for a row, such as their maximum, needs them;
    // and scores that are made again may differ from it by their rounding.
    llvm::SmallPtrSet<Operation *, 8> read;
    for (const ScoreExtra &extra : found->extras) {
      read.insert(extra.value.getDefiningOp());
    }
    auto isDead = [&](Operation *op) {
      return isMemoryEffectFree(op) && !read.contains(op) &&
             llvm::all_of(op->getUsers(),
                          [&](Operation *user) { return dead.contains(user); });
    };
    for (size_t next = 0; next < dead.size(); ++next) {
      for (Value operand : dead[next]->getOperands()) {
        Operation *op = operand.getDefiningOp();
        if (op && op->getBlock() == shares->getBlock() && isDead(op)) {
          dead.insert(op);
        }
      }
    }
    return dead.contains(shares) && dead.contains(found->products) &&
           (!found->ofWeights || dead.contains(found->ofWeights));
  }

  ExpOp shares;
  int64_t fewestKeys;
  std::unique_ptr<AttentionPattern> found;
  ScoreDims &dims;
  SoftmaxAlgebra algebra;
  bool isFactorKnown = false;
  Value scores;
  /// Of the scores, with what they are a function of and what it yields.
  std::optional<ScoreRegion> region;
  Value products;
  SmallVector<Value> yielded;
};

} // namespace

std::unique_ptr<AttentionPattern> findAttention(ExpOp shares,
                                                int64_t fewestKeys) {
  return AttentionMatcher(shares, fewestKeys).match();
}

} // namespace mlir::alpa
