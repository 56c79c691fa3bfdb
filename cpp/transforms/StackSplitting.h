//===- StackSplitting.h - Stacks of layers in parts -------------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_STACKSPLITTING_H
#define CPP_TRANSFORMS_STACKSPLITTING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

/// Makes several arguments of one that holds the parameters of all layers, and
/// several results of those that are its like: gradients, moments, the next
/// values. What is done to the whole is done to the parts.
///
/// Where a stack is cut is where the front end has cut it for the layers
/// (`alpa_stack` in the scope of a slice).
///
/// \param fixed arguments that stay whole.
/// \param aliases of arguments the results that are their next values: an
///        argument is cut if and only if that result is.
void splitStacks(func::FuncOp function, const llvm::DenseSet<unsigned> &fixed,
                 const DenseMap<unsigned, unsigned> &aliases);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_STACKSPLITTING_H
