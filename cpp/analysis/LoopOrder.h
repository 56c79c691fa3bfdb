//===- LoopOrder.h - What loops read in another order -----------*- C++ -*-===//
//
// What a collective gathers along another dimension than the first, or splits
// and exchanges, lies with that dimension first (see MemoryOrder.h), and so
// does all that is computed elementwise with it, from one iteration of a loop
// to the next. XLA for GPU decides of a loop's body before the program around
// it: slices of what an earlier loop has put together are read in the order of
// what they are computed with, and the whole of it is copied into that order
// before the loop.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_LOOPORDER_H
#define CPP_ANALYSIS_LOOPORDER_H

#include "dialects/alpa/DataFlow.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

/// The operands of a loop of a per-device program that it reads copies of in
/// another order: results of another loop, slices of which its body computes
/// with in an order in which that loop does not write them, and which it reads
/// in no other way.
llvm::DenseSet<Value> findReorderedStacks(DataFlowOpInterface loop);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_LOOPORDER_H
