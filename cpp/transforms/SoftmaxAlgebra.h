//===- SoftmaxAlgebra.h - Softmax and its gradient, recognised --*- C++ -*-===//
//
// A softmax and its gradient are written in many ways: with a division or with
// the inverse, by its own rule of differentiation or by that of every operator.
// In terms of
//
//   e = exp(x - max x),  l = sum_s e,  g: gradient of the weights,
//   d = sum_s g e
//
// each is a sum of products of powers of these, and equal forms are equal sums:
// the weights are e / l and the gradient of x is e g / l - e d / l^2.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_SOFTMAXALGEBRA_H
#define CPP_TRANSFORMS_SOFTMAXALGEBRA_H

#include "cpp/transforms/ScoreLabels.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <array>
#include <map>

namespace mlir::alpa {

class SoftmaxAlgebra {
public:
  /// Exponents of e, g, l and d.
  using Monomial = std::array<int, 4>;
  /// Coefficients by monomial.
  using Sum = std::map<Monomial, double>;

  /// \param shares e, of which `dims` are the dimensions.
  SoftmaxAlgebra(Value shares, const ScoreDims &dims)
      : shares(shares), dims(dims) {}

  bool isWeights(Value value, const Labels &labels) {
    return isEqual(value, labels, {{{1, 0, -1, 0}, 1}});
  }
  bool isScoreGradient(Value value, const Labels &labels) {
    return isEqual(value, labels, {{{1, 1, -1, 0}, 1}, {{1, 0, -2, 1}, -1}});
  }

  /// The product that is g, and the labels of its dimensions; null before a
  /// gradient was seen.
  stablehlo::DotGeneralOp getWeightGradient() const { return gradient; }
  const Labels &getWeightGradientLabels() const { return gradientLabels; }

private:
  bool isEqual(Value value, const Labels &labels, const Sum &expected);
  std::optional<Sum> evaluate(Value value, const Labels &labels);
  std::optional<Sum> evaluateNew(Value value, const Labels &labels);
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
  std::map<std::pair<void *, std::vector<int>>, std::optional<Sum>> known;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SOFTMAXALGEBRA_H
