//===- ReadPlaces.h - Elements that are read and written --------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_READPLACES_H
#define CPP_TRANSFORMS_READPLACES_H

#include "mlir/IR/Value.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// What an operator writes into elements of a value that are where its indices
/// say: `x.at[i].set(update)`, also under `jax.vmap`; null if it does anything
/// else.
Value getWritten(Value made, Value into);

/// Whether `read` is what a value has in those elements: `x[i]`. Written there,
/// it changes nothing: where an index is outside, nothing is.
bool isReadWhereWritten(Value read, Value made);

/// What is read where it was just written, each element in a place of its own:
/// the updates. Null for anything else.
Value getReread(stablehlo::GatherOp gather);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_READPLACES_H
