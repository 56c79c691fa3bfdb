//===- MergedProducts.h - Products that are computed as one -----*- C++ -*-===//
//
// XLA for GPU computes small products of one value with several parameters,
// such as queries, keys and values, as one, with the parameters side by side
// (`DotMerger`). Their results are slices of one value, which lies in memory as
// long as any of them is read, and no product reads a slice but in a copy, in
// the order of its own dimensions.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_MERGEDPRODUCTS_H
#define CPP_ANALYSIS_MERGEDPRODUCTS_H

#include "cpp/analysis/FusionRole.h"
#include "mlir/IR/Block.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::alpa {

/// Products of a block of a per-device program that are computed as one, in
/// order, by the first of them. Those that a collective sends the result of, or
/// that the block returns, are left out: these take it as it is.
llvm::MapVector<Operation *, SmallVector<Operation *>>
findMergedProducts(Block &block, FusionRoles &roles);

/// The product whose result a value is, perhaps in another shape; null if there
/// is none. `order` gets the dimensions of the result in the order in which
/// `operand`, which reads the value, takes them; nothing if they are not told.
Operation *getSlicedProduct(OpOperand &operand, SmallVector<int64_t> &order);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_MERGEDPRODUCTS_H
