//===- ScoreProducts.cpp - Dimensions of attention's products -------------===//

#include "cpp/transforms/ScoreProducts.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

namespace mlir::alpa {

using stablehlo::DotGeneralOp;
using stablehlo::TransposeOp;

Ordered Ordered::peel() const {
  Ordered peeled = *this;
  while (auto transpose = peeled.value.getDefiningOp<TransposeOp>()) {
    for (int64_t &dim : peeled.order) {
      dim = transpose.getPermutation()[dim];
    }
    peeled.value = transpose.getOperand();
  }
  return peeled;
}

bool Ordered::operator==(const Ordered &other) const {
  Ordered lhs = peel(), rhs = other.peel();
  return lhs.value == rhs.value && lhs.order == rhs.order;
}

ProductSide::ProductSide(DotGeneralOp dot, unsigned operand)
    : value(dot->getOperand(operand)) {
  auto numbers = dot.getDotDimensionNumbers();
  bool isLeft = operand == 0;
  batch.assign(isLeft ? numbers.getLhsBatchingDimensions()
                      : numbers.getRhsBatchingDimensions());
  summed.assign(isLeft ? numbers.getLhsContractingDimensions()
                       : numbers.getRhsContractingDimensions());
  auto type = cast<RankedTensorType>(value.getType());
  for (int64_t dim : llvm::seq(type.getRank())) {
    if (!llvm::is_contained(batch, dim) && !llvm::is_contained(summed, dim)) {
      free.push_back(dim);
    }
  }
}

std::optional<Dims> pick(ArrayRef<int> wanted, ArrayRef<int> available,
                         ArrayRef<int64_t> scoreShape) {
  if (wanted.size() != available.size()) {
    return std::nullopt;
  }
  Dims picked;
  for (int dim : wanted) {
    int label = scoreShape[dim] == 1 ? kUnit : dim;
    int64_t position = 0, size = available.size();
    while (position < size && (available[position] != label ||
                               llvm::is_contained(picked, position))) {
      ++position;
    }
    if (position == size) {
      return std::nullopt;
    }
    picked.push_back(position);
  }
  return picked;
}

SmallVector<int> labelsAt(ArrayRef<int64_t> dims, const Labels &labels) {
  return llvm::map_to_vector(dims, [&](int64_t dim) { return labels[dim]; });
}

void appendAt(Dims &to, ArrayRef<int64_t> dims, ArrayRef<int64_t> positions) {
  for (int64_t position : positions) {
    to.push_back(dims[position]);
  }
}

Dims getResultOrder(ArrayRef<int64_t> batch, ArrayRef<int64_t> kept,
                    int64_t keptFrom) {
  int64_t numBatch = batch.size(), numKept = kept.size();
  Dims order(numBatch + numKept + 1);
  for (auto [position, dim] : llvm::enumerate(batch)) {
    order[dim] = position;
  }
  for (auto [position, dim] : llvm::enumerate(kept)) {
    order[numBatch + keptFrom + dim] = numBatch + position;
  }
  order[keptFrom == 0 ? numBatch + numKept : numBatch] = numBatch + numKept;
  return order;
}

} // namespace mlir::alpa
