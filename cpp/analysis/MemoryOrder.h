//===- MemoryOrder.h - In which order a tensor lies in memory ---*- C++ -*-===//
//
// XLA for GPU lays out what a collective gathers or scatters with that
// dimension first, so that each device's part is one piece of memory
// (`GpuLayoutAssignment`). Most readers take the order as it is; some need the
// order of rows, for which the value is copied.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_MEMORYORDER_H
#define CPP_ANALYSIS_MEMORYORDER_H

#include "mlir/IR/Operation.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// True if what an operator makes lies in the order of its operands of the same
/// shape.
bool keepsOrder(Operation *op);

/// What a value is reshaped from, if that has the same elements but for
/// dimensions of one; else itself.
Value getReshaped(Value value);

/// The values of a block that lie in the order of some, as they are computed
/// elementwise with each other. Beside these, `isPart` says which values may be
/// among them.
llvm::SetVector<Value> findAlike(ArrayRef<Value> some,
                                 function_ref<bool(Value)> isPart);

/// True for an all-gather or a reduce-scatter of another dimension than the
/// first with more than one element.
bool movesDimension(Operation *collective);

/// True for a collective that sends what it takes with another dimension than
/// the first in front: the above, and an exchange by the dimension that it
/// splits.
bool sendsMoved(Operation *collective);

/// True if an operator reads a copy of what a collective that moves a dimension
/// has gathered.
///
/// Loops, other collectives and the function's results take rows. A product
/// takes any order in which the dimensions that are one of its matrix follow
/// each other; whatever is computed elementwise reads as it is.
///
/// \param gathered what `operand` is, perhaps in another shape.
bool readsCopy(OpOperand &operand, Value gathered);

/// True if a product reads a copy of what a kernel has made, in rows.
///
/// \param made what `operand` is, perhaps in another shape.
bool multipliesCopy(OpOperand &operand, Value made);

/// True if what a collective that moves a dimension sends is copied for it:
/// arguments, what loops make, and products of which the dimension is no row or
/// column by itself.
bool sendsCopy(Operation *collective, Value sent);

/// True for a product that sums over several dimensions which lie in one order
/// in the memory of one operand, and in another in that of the other: examples
/// and times of what a loop stacks time by time. XLA for TPU computes neither
/// operand in its kernel then.
bool sumsInTwoOrders(Operation *op);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_MEMORYORDER_H
