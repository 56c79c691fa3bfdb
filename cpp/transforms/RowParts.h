//===- RowParts.h - Rows as parts of as many --------------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_ROWPARTS_H
#define CPP_TRANSFORMS_ROWPARTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

namespace mlir::alpa {

/// A type with parts, and rows of each, in place of a dimension of rows.
RankedTensorType splitRows(RankedTensorType type, int64_t dim,
                           int64_t numParts);

/// A value of that type.
Value splitRows(OpBuilder &builder, Value value, int64_t dim, int64_t numParts);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_ROWPARTS_H
