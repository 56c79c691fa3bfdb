//===- ImportManual.h - What is split by hand already -----------*- C++ -*-===//

#ifndef PASSES_IMPORTMANUAL_H
#define PASSES_IMPORTMANUAL_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::alpa {

/// Makes every `sdy.manual_computation` an `alpa.manual`. Fails, with a
/// diagnostic, on one that cannot be planned; leaves what only has its name.
LogicalResult importManual(ModuleOp module);

} // namespace mlir::alpa

#endif // PASSES_IMPORTMANUAL_H
