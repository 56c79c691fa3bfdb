//===- ScoreProducts.h - Dimensions of attention's products -----*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SCOREPRODUCTS_H
#define CPP_TRANSFORMS_SCOREPRODUCTS_H

#include "cpp/transforms/ScoreLabels.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

using Dims = SmallVector<int64_t>;

/// A value with its dimensions in another order.
struct Ordered {
  Value value;
  Dims order;

  /// The same, of what is no transposition any more.
  Ordered peel() const;
  bool operator==(const Ordered &other) const;
};

/// One operand of a product.
struct ProductSide {
  Value value;
  Dims batch, summed, free;

  ProductSide(stablehlo::DotGeneralOp dot, unsigned operand);
};

/// Of `available`, the positions of those with the labels of some dimensions of
/// the scores, in their order; none unless these are all.
std::optional<Dims> pick(ArrayRef<int> wanted, ArrayRef<int> available,
                         ArrayRef<int64_t> scoreShape);

SmallVector<int> labelsAt(ArrayRef<int64_t> dims, const Labels &labels);

void appendAt(Dims &to, ArrayRef<int64_t> dims, ArrayRef<int64_t> positions);

/// The permutation of a tensor of batch, kept dimensions and features that is
/// the result of a product.
///
/// \param batch,kept which of the product's is the first, the second, ...
/// \param keptFrom dimensions of the result between the batch and those kept:
///        the features, where they are the left side's.
Dims getResultOrder(ArrayRef<int64_t> batch, ArrayRef<int64_t> kept,
                    int64_t keptFrom);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SCOREPRODUCTS_H
