//===- SoftmaxAlgebra.cpp - Softmax and its gradient, recognised ----------===//

#include "cpp/transforms/SoftmaxAlgebra.h"

#include "cpp/analysis/FusionRole.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

using stablehlo::DotGeneralOp;
using stablehlo::ReduceOp;
using Sum = SoftmaxAlgebra::Sum;
using Monomial = SoftmaxAlgebra::Monomial;

namespace {

/// A softmax has few terms; what has more is something else.
constexpr size_t kMostTerms = 8;

/// Masks beyond are something else.
constexpr size_t kMostMasks = 8;

enum Symbol { Shares, Gradient, Total, Along, Masks };

Sum scale(const Sum &sum, const Monomial &by, int power, double factor) {
  Sum scaled;
  for (auto [monomial, coefficient] : sum) {
    Monomial product = monomial;
    for (Symbol symbol : {Shares, Gradient, Total, Along}) {
      product[symbol] += power * by[symbol];
    }
    // Zeros and ones, multiplied by themselves, are what they were.
    product[Masks] |= by[Masks];
    scaled[product] = coefficient * factor;
  }
  return scaled;
}

Sum add(Sum sum, const Sum &other, double factor) {
  for (auto [monomial, coefficient] : other) {
    double &entry = sum[monomial];
    entry += factor * coefficient;
    if (entry == 0) {
      sum.erase(monomial);
    }
  }
  return sum;
}

std::optional<Sum> multiply(const Sum &lhs, const Sum &rhs) {
  Sum product;
  for (auto [monomial, coefficient] : rhs) {
    product = add(product, scale(lhs, monomial, 1, coefficient), 1);
  }
  return product.size() <= kMostTerms ? std::optional(product) : std::nullopt;
}

std::optional<Sum> divide(const Sum &lhs, const Sum &rhs) {
  if (rhs.size() != 1 || rhs.begin()->first[Masks] != 0) {
    return std::nullopt;
  }
  return scale(lhs, rhs.begin()->first, -1, 1 / rhs.begin()->second);
}

/// Narrower types are chosen for what they round.
bool isFloat(Value value) {
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  return type && type.getWidth() >= 16;
}

/// What a loop hands from turn to turn as it came: JAX hands constants so.
Value getInitial(Value value) {
  while (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *loop = argument.getOwner()->getParentOp();
    Value initial = isa_and_nonnull<stablehlo::WhileOp>(loop)
                        ? getUnchangedOperand(loop, argument.getArgNumber())
                        : Value();
    if (!initial) {
      break;
    }
    value = initial;
  }
  return value;
}

} // namespace

/// Of a row: every term is l or d times what all scores of the row share.
std::optional<Sum> SoftmaxAlgebra::sumRow(const Sum &sum) {
  Sum total;
  for (auto [monomial, coefficient] : sum) {
    Monomial shared = monomial;
    bool isAlong = monomial[Gradient] == 1;
    if (monomial[Shares] != 1 || (!isAlong && monomial[Gradient] != 0) ||
        (!isAlong && monomial[Masks] != 0) ||
        (isAlong && alongMasks.value_or(monomial[Masks]) != monomial[Masks])) {
      return std::nullopt;
    }
    if (isAlong) {
      alongMasks = monomial[Masks];
    }
    ++shared[isAlong ? Along : Total];
    shared[Shares] = shared[Gradient] = shared[Masks] = 0;
    total = add(total, {{shared, coefficient}}, 1);
  }
  return total;
}

std::optional<WeightFactor>
SoftmaxAlgebra::getWeightFactor(Value value, const Labels &labels) {
  std::optional<Sum> found = evaluate(value, labels);
  if (!found || found->size() != 1) {
    return std::nullopt;
  }
  auto [monomial, scale] = *found->begin();
  int bits = monomial[Masks];
  if (monomial != Monomial{1, 0, -1, 0, bits}) {
    return std::nullopt;
  }
  WeightFactor factor{scale, {}};
  for (auto [index, mask] : llvm::enumerate(masks)) {
    if (bits >> index & 1) {
      factor.kept.push_back(mask);
    }
  }
  return factor;
}

bool SoftmaxAlgebra::isScoreGradient(Value value, const Labels &labels,
                                     const WeightFactor &factor) {
  std::optional<Sum> found = evaluate(value, labels);
  int bits = 0;
  for (const KeptWeights &kept : factor.kept) {
    bits |= 1 << std::distance(masks.begin(), llvm::find(masks, kept));
  }
  return found && alongMasks == bits &&
         *found == Sum{{{1, 1, -1, 0, bits}, factor.scale},
                       {{1, 0, -2, 1, 0}, -factor.scale}};
}

std::optional<Sum> SoftmaxAlgebra::evaluate(Value value, const Labels &labels) {
  std::pair<void *, std::vector<int>> entry{
      value.getAsOpaquePointer(),
      std::vector<int>(labels.begin(), labels.end())};
  auto it = known.find(entry);
  if (it == known.end()) {
    it = known.emplace(entry, evaluateNew(value, labels)).first;
  }
  return it->second;
}

std::optional<Sum> SoftmaxAlgebra::evaluateOperand(Operation *op,
                                                   unsigned index,
                                                   const Labels &labels) {
  std::optional<Labels> own = getOperandLabels(op->getOpOperand(index), labels);
  return own ? evaluate(op->getOperand(index), *own) : std::nullopt;
}

std::optional<Sum> SoftmaxAlgebra::evaluateNew(Value value,
                                               const Labels &labels) {
  if (value == shares) {
    return labels == getOwnLabels(dims.shape)
               ? std::optional(Sum{{{1, 0, 0, 0, 0}, 1}})
               : std::nullopt;
  }
  value = getInitial(value);
  Operation *op = value.getDefiningOp();
  if (!op || !isFloat(value)) {
    return std::nullopt;
  }
  if (std::optional<double> number = stablehlo::getKnownSplat(value)) {
    return *number == 0 ? Sum() : Sum{{{0, 0, 0, 0, 0}, *number}};
  }
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    return evaluateProduct(dot, labels);
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    return evaluateReduction(reduce, labels);
  }
  return isMovement(op) || isElementwise(op) ? evaluateElementwise(op, labels)
                                             : std::nullopt;
}

std::optional<Sum> SoftmaxAlgebra::evaluateElementwise(Operation *op,
                                                       const Labels &labels) {
  if (auto select = dyn_cast<stablehlo::SelectOp>(op)) {
    return evaluateSelect(select, labels);
  }
  if (isa<stablehlo::ConvertOp>(op) &&
      getElementTypeOrSelf(op->getOperand(0).getType()).isInteger(1)) {
    return evaluateMask(op->getOpOperand(0), labels, true, true);
  }
  if (!llvm::all_of(op->getOperands(), isFloat)) {
    return std::nullopt;
  }
  bool isBinary = isa<stablehlo::AddOp, stablehlo::SubtractOp, stablehlo::MulOp,
                      stablehlo::DivOp>(op);
  if (!isBinary && !isMovement(op) &&
      !isa<stablehlo::ConvertOp, stablehlo::NegOp>(op)) {
    return std::nullopt;
  }
  std::optional<Sum> lhs = evaluateOperand(op, 0, labels);
  std::optional<Sum> rhs =
      lhs && isBinary ? evaluateOperand(op, 1, labels) : std::nullopt;
  if (!lhs || (isBinary && !rhs)) {
    return std::nullopt;
  }
  if (isa<stablehlo::AddOp, stablehlo::SubtractOp>(op)) {
    return add(*lhs, *rhs, isa<stablehlo::AddOp>(op) ? 1 : -1);
  }
  if (isa<stablehlo::MulOp>(op)) {
    return multiply(*lhs, *rhs);
  }
  if (isa<stablehlo::DivOp>(op)) {
    return divide(*lhs, *rhs);
  }
  return isa<stablehlo::NegOp>(op) ? scale(*lhs, {}, 0, -1) : *lhs;
}

std::optional<Sum> SoftmaxAlgebra::evaluateSelect(stablehlo::SelectOp select,
                                                  const Labels &labels) {
  for (unsigned zero : {2, 1}) {
    std::optional<Sum> other = evaluateOperand(select, zero, labels);
    if (!other || !other->empty()) {
      continue;
    }
    std::optional<Sum> kept = evaluateOperand(select, 3 - zero, labels);
    std::optional<Sum> mask =
        evaluateMask(select->getOpOperand(0), labels, zero == 2, false);
    return kept && mask ? multiply(*kept, *mask) : std::nullopt;
  }
  return std::nullopt;
}

std::optional<Sum> SoftmaxAlgebra::evaluateMask(OpOperand &mask,
                                                const Labels &labels,
                                                bool isWhenTrue,
                                                bool isProduct) {
  std::optional<Labels> own = getOperandLabels(mask, labels);
  if (!own) {
    return std::nullopt;
  }
  KeptWeights kept{mask.get(), *own, isWhenTrue, isProduct};
  while (Operation *op = kept.mask.getDefiningOp()) {
    bool isNot = isa<stablehlo::NotOp>(op);
    if (!isNot && !isMovement(op)) {
      break;
    }
    own = getOperandLabels(op->getOpOperand(0), kept.labels);
    if (!own) {
      break;
    }
    kept = {op->getOperand(0), *own, kept.isWhenTrue != isNot, isProduct};
  }
  auto it = llvm::find(masks, kept);
  int64_t index = std::distance(masks.begin(), it);
  if (it == masks.end()) {
    if (masks.size() == kMostMasks) {
      return std::nullopt;
    }
    masks.push_back(kept);
  }
  return Sum{{{0, 0, 0, 0, 1 << index}, 1}};
}

/// The only product that a softmax's gradient knows is that of the weights.
std::optional<Sum> SoftmaxAlgebra::evaluateProduct(DotGeneralOp dot,
                                                   const Labels &labels) {
  if (!dims.isWhole(labels) || (gradient && gradient != dot) ||
      (gradient && gradientLabels != labels)) {
    return std::nullopt;
  }
  gradient = dot;
  gradientLabels = labels;
  return Sum{{{0, 1, 0, 0, 0}, 1}};
}

std::optional<Sum> SoftmaxAlgebra::evaluateReduction(ReduceOp reduce,
                                                     const Labels &labels) {
  if (reduce.getInputs().size() != 1 || reduce->getNumResults() != 1 ||
      stablehlo::getReductionKind(reduce.getBody()) != ReductionKind::Sum ||
      stablehlo::getKnownSplat(reduce.getInitValues().front()) != 0.0) {
    return std::nullopt;
  }
  Value operand = reduce.getInputs().front();
  std::optional<ArrayRef<int64_t>> shape = getStaticShape(operand);
  if (!shape) {
    return std::nullopt;
  }
  Labels own;
  bool isOfRow = false;
  size_t next = 0;
  for (auto [dim, size] : llvm::enumerate(*shape)) {
    if (!llvm::is_contained(reduce.getDimensions(),
                            static_cast<int64_t>(dim))) {
      own.push_back(labels[next++]);
    } else if (size == 1) {
      own.push_back(kUnit);
    } else if (!isOfRow && size == dims.shape[dims.key] &&
               !llvm::is_contained(labels, dims.key)) {
      own.push_back(dims.key);
      isOfRow = true;
    } else {
      return std::nullopt;
    }
  }
  std::optional<Sum> sum = evaluate(operand, own);
  return sum && isOfRow ? sumRow(*sum) : sum;
}

} // namespace mlir::alpa
