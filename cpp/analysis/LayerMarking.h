//===- LayerMarking.h - Layers and phases of a train step -------*- C++ -*-===//
//
// Name scopes say which layer of the model an operator belongs to and whether
// differentiation made it; a barrier in the scope of gradients says where
// micro-batches end. This turns both into attributes.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_LAYERMARKING_H
#define CPP_ANALYSIS_LAYERMARKING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Writes `alpa.layer` and `alpa.phase` on the operators of a step and puts an
/// `alpa.accumulate` where a value leaves the micro-batches; its mean is what
/// later operators see.
///
/// Operators that depend on constants alone belong to no layer.
///
/// \param batch arguments that hold one micro-batch.
/// Fails if there is not exactly one barrier of gradients, if an integer would
/// have to be averaged, or if something behind the gradients looks at one
/// micro-batch.
LogicalResult markLayers(func::FuncOp function, ArrayRef<int64_t> batch,
                         int64_t numMicroBatches);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_LAYERMARKING_H
