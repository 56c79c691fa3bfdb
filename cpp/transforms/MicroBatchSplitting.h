//===- MicroBatchSplitting.h - The step of one micro-batch ------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_MICROBATCHSPLITTING_H
#define CPP_TRANSFORMS_MICROBATCHSPLITTING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// How a step is cut into micro-batches.
struct MicroBatchOptions {
  int64_t numMicroBatches = 1;
  /// Arguments that have to be cut; when empty, every argument that is no state
  /// may be, and what divides the most work is.
  SmallVector<int64_t> batch;
  /// The function is that of one micro-batch already: `batch` has its parts.
  /// Floating-point results of the differentiated function are averaged, or
  /// all of them added up.
  bool isIndependent = false;
  bool isMean = true;
};

/// Puts a step on a mesh with the axis `time`, whose positions are the
/// micro-batches. Shardings say what each of them has: a part of a value, a
/// summand, or all of it; `alpa.accumulate` stands where values leave the
/// micro-batches. With one micro-batch there is no mesh.
///
/// Fails where an operator with floating-point work would need more than one
/// micro-batch, or where no argument can be cut.
LogicalResult splitMicroBatches(func::FuncOp function,
                                const MicroBatchOptions &options);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MICROBATCHSPLITTING_H
