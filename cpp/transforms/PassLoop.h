//===- PassLoop.h - A loop over micro-batches -------------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_PASSLOOP_H
#define CPP_TRANSFORMS_PASSLOOP_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Writes a function that is that of one micro-batch, with joins, as a program:
/// what is the same for all micro-batches, a loop over these that adds up or
/// collects what is joined, and what is behind the joins.
///
/// before, where `%x` is one of 4 parts of the batch:
/// ```mlir
/// %0 = stablehlo.dot_general %x, %w : (tensor<2x8xf32>, ...
/// %1 = alpa.accumulate %0
/// ```
/// after:
/// ```mlir
/// %xs = stablehlo.reshape %batch : (tensor<8x8xf32>) -> tensor<4x2x8xf32>
/// %1:4 = stablehlo.while(%i = %zero, %a = %xs, %b = %w, %sum = %zeros) ...
/// ```
///
/// \param given the whole of what its arguments are numbered by.
/// \returns the results of the function.
FailureOr<SmallVector<Value>> emitPassLoop(OpBuilder &builder,
                                           func::FuncOp function,
                                           ValueRange given,
                                           int64_t numMicroBatches);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PASSLOOP_H
