//===- Passes.h - Passes of the planner -------------------------*- C++ -*-===//

#ifndef PASSES_PASSES_H
#define PASSES_PASSES_H

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DECL
#include "passes/Passes.h.inc"

#define GEN_PASS_REGISTRATION
#include "passes/Passes.h.inc"

/// Adds what makes of a step the one of a micro-batch; see the options of
/// `alpa-split-micro-batches`.
void addMicroBatches(OpPassManager &manager, int64_t count,
                     ArrayRef<int64_t> batch);

/// Registers the pipelines of Pipelines.cpp.
void registerAlpaPipelines();

/// Dialects, rules and inliner interfaces that the passes rely on.
void registerAlpaDialects(DialectRegistry &registry);

} // namespace mlir::alpa

#endif // PASSES_PASSES_H
