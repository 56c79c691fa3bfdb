//===- Entry.h - The function that is planned -------------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_ENTRY_H
#define CPP_ANALYSIS_ENTRY_H

#include "dialects/alpa/Alpa.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::alpa {

/// The one public function with a body and a single block. Emits an error and
/// fails if there is none or more than one.
FailureOr<func::FuncOp> getEntryFunction(ModuleOp module);

/// The mesh of a module that has shardings. Emits an error and fails if it has
/// none.
FailureOr<MeshAttr> getPlannedMesh(ModuleOp module);

/// Reads `x:2`, `y:4` into a mesh; errors go to `emitError`.
FailureOr<MeshAttr> parseMesh(MLIRContext *context, ArrayRef<std::string> axes,
                              function_ref<InFlightDiagnostic()> emitError);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_ENTRY_H
