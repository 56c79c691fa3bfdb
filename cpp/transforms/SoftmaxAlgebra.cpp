//===- SoftmaxAlgebra.cpp - Softmax and its gradient, recognised ----------===//

#include "cpp/transforms/SoftmaxAlgebra.h"

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

enum Symbol { Shares, Gradient, Total, Along };

Sum scale(const Sum &sum, const Monomial &by, int power, double factor) {
  Sum scaled;
  for (auto [monomial, coefficient] : sum) {
    Monomial product = monomial;
    for (auto [exponent, other] : llvm::zip(product, by)) {
      exponent += power * other;
    }
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
  if (rhs.size() != 1) {
    return std::nullopt;
  }
  return scale(lhs, rhs.begin()->first, -1, 1 / rhs.begin()->second);
}

/// Of a row: every term is l or d times what all scores of the row share.
std::optional<Sum> sumRow(const Sum &sum) {
  Sum total;
  for (auto [monomial, coefficient] : sum) {
    Monomial shared = monomial;
    if (monomial[Shares] != 1 || monomial[Gradient] < 0 ||
        monomial[Gradient] > 1) {
      return std::nullopt;
    }
    ++shared[monomial[Gradient] == 0 ? Total : Along];
    shared[Shares] = shared[Gradient] = 0;
    total = add(total, {{shared, coefficient}}, 1);
  }
  return total;
}

/// Narrower types are chosen for what they round.
bool isFloat(Value value) {
  auto type = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  return type && type.getWidth() >= 16;
}

} // namespace

bool SoftmaxAlgebra::isEqual(Value value, const Labels &labels,
                             const Sum &expected) {
  std::optional<Sum> found = evaluate(value, labels);
  return found && *found == expected;
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
               ? std::optional(Sum{{{1, 0, 0, 0}, 1}})
               : std::nullopt;
  }
  Operation *op = value.getDefiningOp();
  if (!op || !isFloat(value)) {
    return std::nullopt;
  }
  if (std::optional<double> number = stablehlo::getKnownSplat(value)) {
    return *number == 0 ? Sum() : Sum{{{0, 0, 0, 0}, *number}};
  }
  if (auto dot = dyn_cast<DotGeneralOp>(op)) {
    return evaluateProduct(dot, labels);
  }
  if (auto reduce = dyn_cast<ReduceOp>(op)) {
    return evaluateReduction(reduce, labels);
  }
  if (!(isMovement(op) || isElementwise(op)) ||
      !llvm::all_of(op->getOperands(), isFloat)) {
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

/// The only product that a softmax's gradient knows is that of the weights.
std::optional<Sum> SoftmaxAlgebra::evaluateProduct(DotGeneralOp dot,
                                                   const Labels &labels) {
  if (!dims.isWhole(labels) || (gradient && gradient != dot) ||
      (gradient && gradientLabels != labels)) {
    return std::nullopt;
  }
  gradient = dot;
  gradientLabels = labels;
  return Sum{{{0, 1, 0, 0}, 1}};
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
