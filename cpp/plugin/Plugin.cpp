//===- Plugin.cpp - Dialects and passes for stock mlir-opt ----------------===//

#include "dialects/scf/ScfDataFlow.h"
#include "mlir/Tools/Plugins/DialectPlugin.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "passes/Passes.h"

static void registerPasses() {
  mlir::alpa::registerAlpaPasses();
  mlir::alpa::registerAlpaPipelines();
}

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::DialectPluginLibraryInfo
    mlirGetDialectPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "StablehloAlpa", "0.1",
          [](mlir::DialectRegistry *registry) {
            mlir::alpa::registerAlpaDialects(*registry);
            mlir::alpa::registerScfDataFlow(*registry);
          }};
}

extern "C" LLVM_ATTRIBUTE_WEAK
    LLVM_ATTRIBUTE_VISIBILITY_DEFAULT mlir::PassPluginLibraryInfo
    mlirGetPassPluginInfo() {
  return {MLIR_PLUGIN_API_VERSION, "StablehloAlpa", "0.1", registerPasses};
}
