//===- ReturnedOrders.h - What is made again to be returned -----*- C++ -*-===//
//
// What a collective gathers or scatters along another dimension than the first
// lies with that dimension first (see MemoryOrder.h), and so does all that is
// computed elementwise with it, and with the constants that it is computed
// with. What is returned lies in rows: XLA for GPU computes it again in these,
// behind all else, from what it was made of.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_RETURNEDORDERS_H
#define CPP_ANALYSIS_RETURNEDORDERS_H

#include "cpp/analysis/FusionRole.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

/// The values of a per-device program that are returned, that kernels read in
/// another order than that of rows, and that are computed for them elementwise.
llvm::DenseSet<Value> findMadeAgain(Block &block, FusionRoles &roles);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_RETURNEDORDERS_H
