//===- ReferencedFunctions.h - Functions that operators name ----*- C++ -*-===//

#ifndef CPP_TRANSFORMS_REFERENCEDFUNCTIONS_H
#define CPP_TRANSFORMS_REFERENCEDFUNCTIONS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::alpa {

/// Copies the functions that operators of `target` name, comparators of custom
/// calls for example, and those that these name, out of `source`, unless
/// `target` has them already.
void copyReferencedFunctions(ModuleOp source, ModuleOp target);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_REFERENCEDFUNCTIONS_H
