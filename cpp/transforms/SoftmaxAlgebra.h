//===- SoftmaxAlgebra.h - Softmax and its gradient, recognised --*- C++ -*-===//
//
// A softmax and its gradient are written in many ways: with a division or with
// the inverse, by its own rule of differentiation or by that of every operator.
// In terms of
//
//   e = exp(x - max x),  l = sum_s e,  g: gradient of what weights become,
//   k: one where a weight is kept and zero where it is dropped,
//   d = sum_s k g e
//
// each is a sum of products of powers of these, and equal forms are equal sums:
// with c the number that kept weights are multiplied by, weights become
// c k e / l, and the gradient of x is c (k e g / l - e d / l^2).
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_SOFTMAXALGEBRA_H
#define CPP_TRANSFORMS_SOFTMAXALGEBRA_H

#include "cpp/transforms/ScoreLabels.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <array>
#include <map>

namespace mlir::alpa {

/// Which weights are kept, if not all: a mask with the labels of its
/// dimensions.
struct KeptWeights {
  Value mask;
  Labels labels;
  /// Where the mask is true; where it is false otherwise.
  bool isWhenTrue = true;
  /// By a product with the mask, in which what is no number stays that.
  bool isProduct = false;

  bool operator==(const KeptWeights &other) const {
    return mask == other.mask && labels == other.labels &&
           isWhenTrue == other.isWhenTrue && isProduct == other.isProduct;
  }
};

/// What weights are multiplied by.
struct WeightFactor {
  double scale = 1;
  /// All of them say so of a weight that is kept.
  std::vector<KeptWeights> kept;

  bool operator==(const WeightFactor &other) const {
    return scale == other.scale && kept == other.kept;
  }
  bool operator!=(const WeightFactor &other) const { return !(*this == other); }
};

class SoftmaxAlgebra {
public:
  /// Exponents of e, g, l and d, and a bit for every mask.
  using Monomial = std::array<int, 5>;
  /// Coefficients by monomial.
  using Sum = std::map<Monomial, double>;

  /// \param shares e, of which `dims` are the dimensions.
  SoftmaxAlgebra(Value shares, const ScoreDims &dims)
      : shares(shares), dims(dims) {}

  /// What a value is weights times; none if it is something else.
  std::optional<WeightFactor> getWeightFactor(Value value,
                                              const Labels &labels);
  /// Whether a value is the gradient of scores of such weights.
  bool isScoreGradient(Value value, const Labels &labels,
                       const WeightFactor &factor);

  /// The product that is g, and the labels of its dimensions; null before a
  /// gradient was seen.
  stablehlo::DotGeneralOp getWeightGradient() const { return gradient; }
  const Labels &getWeightGradientLabels() const { return gradientLabels; }

private:
  std::optional<Sum> evaluate(Value value, const Labels &labels);
  std::optional<Sum> evaluateNew(Value value, const Labels &labels);
  std::optional<Sum> evaluateElementwise(Operation *op, const Labels &labels);
  std::optional<Sum> evaluateSelect(stablehlo::SelectOp select,
                                    const Labels &labels);
  /// One where a mask is as said, zero elsewhere.
  std::optional<Sum> evaluateMask(OpOperand &mask, const Labels &labels,
                                  bool isWhenTrue, bool isProduct);
  std::optional<Sum> sumRow(const Sum &sum);
  std::optional<Sum> evaluateProduct(stablehlo::DotGeneralOp dot,
                                     const Labels &labels);
  std::optional<Sum> evaluateReduction(stablehlo::ReduceOp reduce,
                                       const Labels &labels);
  std::optional<Sum> evaluateOperand(Operation *op, unsigned index,
                                     const Labels &labels);

  Value shares;
  const ScoreDims &dims;
  stablehlo::DotGeneralOp gradient;
  Labels gradientLabels;
  std::vector<KeptWeights> masks;
  /// The masks of the terms that d has summed up.
  std::optional<int> alongMasks;
  std::map<std::pair<void *, std::vector<int>>, std::optional<Sum>> known;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SOFTMAXALGEBRA_H
