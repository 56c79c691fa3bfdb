//===- SortedIndices.h - Numbers of sorted rows -----------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SORTEDINDICES_H
#define CPP_TRANSFORMS_SORTEDINDICES_H

#include "mlir/IR/Value.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseMap.h"
#include <optional>
#include <vector>

namespace mlir::alpa {

/// Integers that are computed element by element of one tensor and constants:
/// what they are where that tensor is 0, 1, 2, ...
class NumbersOf {
public:
  explicit NumbersOf(Value base);

  /// One per element of the base, or one for all; null if a value is made of
  /// anything else.
  const std::vector<int64_t> *get(Value value);

private:
  std::optional<std::vector<int64_t>> make(Value value);
  std::optional<std::vector<int64_t>> makeElementwise(Operation *op);

  Value base;
  size_t size;
  llvm::DenseMap<Value, std::optional<std::vector<int64_t>>> known;
};

/// Whether indices, of which each has one component, say a different one of
/// `size` places each: constants, and what is computed of the positions of
/// sorted rows.
bool areDistinct(Value indices, int64_t size);

/// The positions along a dimension that a value is, if it is; else null.
stablehlo::IotaOp getIota(Value value);

/// Whether the elements of a tensor are integers, or booleans.
bool isInteger(Value value);

/// The integer that a constant has everywhere.
std::optional<int64_t> getSplat(Value value);

/// Whether a conversion of integers keeps all of them.
bool isWidening(stablehlo::ConvertOp op);

/// Without changes of shape that leave elements in their order, conversions of
/// integers that keep their values, and barriers.
Value stripShape(Value value);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SORTEDINDICES_H
