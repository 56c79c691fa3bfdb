//===- stablehlo-alpa-opt.cpp - pass driver -------------------------------===//
//
// `mlir-opt` with the dialects and passes of this project.
//
//===----------------------------------------------------------------------===//

#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  mlir::alpa::registerAlpaDialects(registry);
  mlir::alpa::registerAlpaPasses();
  mlir::alpa::registerAlpaPipelines();
  mlir::registerTransformsPasses();
  return mlir::asMainReturnCode(mlir::MlirOptMain(
      argc, argv, "stablehlo_alpa optimizer driver\n", registry));
}
