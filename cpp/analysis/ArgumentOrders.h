//===- ArgumentOrders.h - Arguments that are read in another order -*- C++ -*-//
//
// XLA for TPU leaves what products make as it lies, where it is transposed, and
// computes elementwise what lies in one order: an argument that is computed
// with the transpose of a product, such as what one program of a pipeline hands
// on to another, is copied into that order, before all else.
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
