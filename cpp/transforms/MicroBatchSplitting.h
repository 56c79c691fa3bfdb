//===- MicroBatchSplitting.h - The step of one micro-batch ------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_MICROBATCHSPLITTING_H
#define CPP_TRANSFORMS_MICROBATCHSPLITTING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// How results of independent micro-batches are joined: their mean, their sum,
/// or their mean weighted by one of them, which itself is added up.
enum class Reduction { kMean, kSum, kWeighted };

/// How a step is cut into micro-batches.
struct MicroBatchOptions {
  int64_t numMicroBatches = 1;
  /// Arguments that have to be cut; when empty, every argument that is no state
  /// may be, and what divides the most work is.
  SmallVector<int64_t> batch;
  /// The function is that of one micro-batch already: `batch` has its parts.
  bool isIndependent = false;
  /// How its results are joined.
  Reduction reduction = Reduction::kMean;
  /// With `kWeighted` the result that is the weight.
  int64_t weight = -1;
  /// Whether all gradients are to be taken in one way through the batch.
  bool isOnePass = false;
};

/// Puts a step on a mesh with the axis `time`, whose positions are the
/// micro-batches. Shardings say what each of them has: a part of a value, a
/// summand, or all of it; `alpa.accumulate` stands where values leave the
/// micro-batches. With one micro-batch there is no mesh.
///
/// Fails where an operator with floating-point work would need more than one
/// micro-batch, or where no argument can be cut.
///
/// \param goOverAgain makes a step that would be refused into one that goes
/// through the batch twice, where it can.
LogicalResult splitMicroBatches(func::FuncOp function,
                                const MicroBatchOptions &options,
                                function_ref<LogicalResult()> goOverAgain);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MICROBATCHSPLITTING_H
