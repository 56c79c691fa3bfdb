//===- RowParts.cpp - Rows as parts of as many ----------------------------===//

#include "cpp/transforms/RowParts.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

RankedTensorType splitRows(RankedTensorType type, int64_t dim,
                           int64_t numParts) {
  SmallVector<int64_t> shape(type.getShape());
  shape[dim] /= numParts;
  shape.insert(shape.begin() + dim, numParts);
  return type.clone(shape);
}

Value splitRows(OpBuilder &builder, Value value, int64_t dim,
                int64_t numParts) {
  auto type = cast<RankedTensorType>(value.getType());
  return stablehlo::ReshapeOp::create(builder, value.getLoc(),
                                      splitRows(type, dim, numParts), value);
}

} // namespace mlir::alpa
