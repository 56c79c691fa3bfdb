//===- LayerMarking.h - Layers and phases of a step -------------*- C++ -*-===//
//
// Name scopes say which layer of the model an operator belongs to and whether
// differentiation made it; joins say where micro-batches end. This turns both
// into attributes.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_LAYERMARKING_H
#define CPP_TRANSFORMS_LAYERMARKING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Writes `alpa.layer` and `alpa.phase` on the operators of a step. What joins
/// (`alpa.accumulate`, `alpa.collect`) use runs once per micro-batch, the rest
/// once per step.
///
/// Operators that depend on constants alone belong to no layer. What spreads
/// numbers (see SpreadValues.h) is made again by each layer and phase.
///
/// Fails if something behind the joins looks at one micro-batch.
LogicalResult markLayers(func::FuncOp function, int64_t numMicroBatches);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_LAYERMARKING_H
