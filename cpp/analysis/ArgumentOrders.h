//===- ArgumentOrders.h - Arguments that are read in another order -*- C++ -*-//
//
// XLA for TPU makes a product as a matrix, and computes elementwise what lies
// in one order. Where a product is transposed so that its rows or columns no
// longer follow each other, it leaves it as it lies: an argument that is
// computed with it, such as what one program of a pipeline hands on to another,
// is copied into that order, before all else.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_ARGUMENTORDERS_H
#define CPP_ANALYSIS_ARGUMENTORDERS_H

#include "mlir/IR/Block.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::alpa {

/// The arguments of a block that are copied so.
SmallVector<BlockArgument> findReorderedArguments(Block &block);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_ARGUMENTORDERS_H
