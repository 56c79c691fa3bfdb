//===- OperatorMerging.h - Light operators follow ---------------*- C++ -*-===//
//
// Section 4.2 of the Alpa paper: computationally light operators take the
// sharding of their deepest operand, so that only the others have strategies.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_OPERATORMERGING_H
#define CPP_TRANSFORMS_OPERATORMERGING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Gives every operator of the function and of its loops and branches a role,
/// and inserts `alpa.resolve` behind results that can be partial sums but are
/// used by operators that need the sum itself.
///
/// Emits a remark for every operator that has no sharding rule.
LogicalResult mergeOperators(func::FuncOp function);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_OPERATORMERGING_H
