//===- AttentionPattern.h - Attention as JAX writes it ----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_ATTENTIONPATTERN_H
#define CPP_TRANSFORMS_ATTENTIONPATTERN_H

#include "cpp/transforms/ScoreProducts.h"
#include "cpp/transforms/ScoreRegion.h"
#include "cpp/transforms/SoftmaxAlgebra.h"

namespace mlir::alpa {

/// A product of the scores' side of attention with something else, which takes
/// its place.
struct AttentionProduct {
  stablehlo::DotGeneralOp dot;
  /// The other operand: batch; rows or keys; features.
  Ordered other;
  /// What makes its result from one with these dimensions in order: batch; keys
  /// or rows; features.
  SmallVector<int64_t> resultOrder;
  /// The operand of scores, with its labels.
  Value scores;
  Labels labels;
};

/// Attention, or its gradient, as far as it is in one block of a program.
///
///   products = query key,  x = function of products,  e = exp(x - max x)
///   out = (c k e / sum e) value,  k: which weights are kept, c: a number
///
/// and, where the gradient is there, what `alpa.attention_gradient` says.
struct AttentionPattern {
  /// What extras may be made by; it goes last.
  RandomBits bits;
  ScoreDims dims;
  stablehlo::DotGeneralOp products;
  Labels productLabels;
  /// The result is wanted, or only what the gradient needs of it.
  std::optional<AttentionProduct> out;
  std::optional<AttentionProduct> ofQuery, ofKey, ofValue;
  /// The product that is the gradient of the weights.
  stablehlo::DotGeneralOp ofWeights;
  Ordered query, key, value, gradient;

  /// Functions of scores, and of their gradients; see `alpa.attention`.
  std::unique_ptr<Region> scores, gradients;
  /// What the first of them needs, and what both do.
  size_t numScoreExtras = 0;
  std::vector<ScoreExtra> extras;
  /// What weights are multiplied by.
  WeightFactor factor;
  /// In which sums are added up.
  Type accumulated;

  bool hasGradient() const { return ofWeights != nullptr; }
  /// What the operators take the place of.
  SmallVector<stablehlo::DotGeneralOp, 4> getReplaced() const;
};

/// The attention around an exponential, where nothing else needs what it is
/// made of; null where it is none, or where keys are fewer.
std::unique_ptr<AttentionPattern> findAttention(stablehlo::ExpOp shares,
                                                int64_t fewestKeys);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_ATTENTIONPATTERN_H
