//===- SpreadValues.h - What spreads numbers over tensors -------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_SPREADVALUES_H
#define CPP_TRANSFORMS_SPREADVALUES_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

/// Finds what is computed in a few elementwise steps of numbers and constants,
/// at least one number among them: the places of a batch's examples, which the
/// number of the micro-batch is added to. Such values are made again wherever
/// they are read, as fusions do, in place of being sent or kept. Random bits of
/// a key take more steps.
llvm::DenseSet<Value> findSpreadValues(Block &block);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_SPREADVALUES_H
