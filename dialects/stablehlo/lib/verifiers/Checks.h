//===- Checks.h - What the verifiers of the operations share ----*- C++ -*-===//
//
// Each check emits its own error. Sizes may be dynamic, which fits anything;
// numbers come from text and may be as large or as small as an int64.
//
//===----------------------------------------------------------------------===//

#ifndef STABLEHLO_LIB_VERIFIERS_CHECKS_H
#define STABLEHLO_LIB_VERIFIERS_CHECKS_H

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::stablehlo::verifiers {

inline RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// True if any failed. All are evaluated: use it for checks that do not rely on
/// one another.
template <typename... Results> bool anyFailed(Results... results) {
  return (results.failed() || ...);
}

/// `dim` is in [0, rank).
LogicalResult verifyDim(Operation *op, StringRef name, int64_t dim,
                        int64_t rank);

/// `dims` are distinct and in [0, rank).
LogicalResult verifyDims(Operation *op, StringRef name, ArrayRef<int64_t> dims,
                         int64_t rank);

/// `dims` are distinct, ascending and in [0, rank).
LogicalResult verifySortedDims(Operation *op, StringRef name,
                               ArrayRef<int64_t> dims, int64_t rank);

LogicalResult verifyCount(Operation *op, StringRef name, int64_t count,
                          int64_t expected);

/// Both sizes are equal, or one is dynamic.
LogicalResult verifySize(Operation *op, StringRef name, int64_t size,
                         int64_t expected);

/// Rank and sizes agree.
LogicalResult verifyShape(Operation *op, StringRef name,
                          ArrayRef<int64_t> shape, ArrayRef<int64_t> expected);

LogicalResult verifyElementType(Operation *op, StringRef name, Value value,
                                Value expected);

LogicalResult verifyRank(Operation *op, StringRef name, Value value,
                         int64_t rank);

/// 0 <= sizes[i] <= bounds[i]; both lists are of one length.
LogicalResult verifyAtMost(Operation *op, StringRef name,
                           ArrayRef<int64_t> sizes, ArrayRef<int64_t> bounds);

/// The only block of a region ends in a return of `numResults` values.
/// `numResults` < 0: of any number.
LogicalResult verifyReturn(Operation *op, StringRef name, Region &region,
                           int64_t numResults);

/// The operation that ends a region of which verifyReturn holds.
inline Operation *getReturn(Region &region) { return &region.front().back(); }

/// A region that folds inputs, each into an accumulator that begins as an
/// initial value: takes the accumulators and then as many elements, returns the
/// accumulators. Elements may be of `dims`, in their order, as far as the
/// region takes tensors.
LogicalResult verifyReducer(Operation *op, StringRef name, Region &region,
                            ArrayRef<RankedTensorType> inputs,
                            ArrayRef<RankedTensorType> inits,
                            ArrayRef<int64_t> dims = {});

/// The elements of a value are those that a region of which verifyReducer holds
/// accumulates.
LogicalResult verifyAccumulated(Operation *op, StringRef name, Value value,
                                Region &region, int64_t index = 0);

/// The only value that a region returns is one boolean.
LogicalResult verifyReturnsPred(Operation *op, StringRef name, Region &region);

/// A tensor without dimensions, of the elements of another.
inline RankedTensorType scalarOf(RankedTensorType type) {
  return RankedTensorType::get({}, type.getElementType());
}

/// The actual type is compatible with the type that it should be.
LogicalResult verifyType(Operation *op, StringRef name, Type actual,
                         Type expected);

/// What a constant operand says of a shape fits the type of the result.
LogicalResult verifyShapeOperand(Operation *op, Value sizes,
                                 RankedTensorType result);

/// At most one precision for each operand.
LogicalResult verifyPrecisions(Operation *op, std::optional<ArrayAttr> config);

/// A window along one dimension.
struct WindowDim {
  int64_t size = 1;
  int64_t stride = 1;
  int64_t low = 0;
  int64_t high = 0;
  int64_t baseDilation = 1;
  int64_t windowDilation = 1;
};

/// The windows that an operation gives as lists of `rank` entries; absent lists
/// have their defaults. Fails with an error where an entry is out of range.
FailureOr<SmallVector<WindowDim>>
getWindow(Operation *op, ArrayRef<int64_t> sizes,
          std::optional<ArrayRef<int64_t>> strides,
          std::optional<DenseIntElementsAttr> padding,
          std::optional<ArrayRef<int64_t>> baseDilations,
          std::optional<ArrayRef<int64_t>> windowDilations);

/// How many places a window takes along a dimension of some size; dynamic if
/// the size is.
int64_t getNumPlaces(const WindowDim &window, int64_t size);

} // namespace mlir::stablehlo::verifiers

#endif // STABLEHLO_LIB_VERIFIERS_CHECKS_H
