//===- IndependentMicroBatches.h - Batches of their own ---------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_INDEPENDENTMICROBATCHES_H
#define CPP_TRANSFORMS_INDEPENDENTMICROBATCHES_H

#include "cpp/transforms/MicroBatchSplitting.h"

namespace mlir::alpa {

/// Joins what leaves the differentiated function, which was traced for one
/// micro-batch; see `splitMicroBatches`. Where it asks for the number of the
/// micro-batch, a custom call `alpa.micro_batch`, an argument is.
LogicalResult joinIndependent(func::FuncOp function,
                              const MicroBatchOptions &options);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_INDEPENDENTMICROBATCHES_H
