//===- stablehlo-alpa-opt.cpp - pass driver -------------------------------===//
//
// `mlir-opt` with the dialects and passes of this project, that refuses text on
// which MLIR's parser would take all memory.
//
//===----------------------------------------------------------------------===//

#include "cpp/analysis/Guards.h"
#include "dialects/scf/ScfDataFlow.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/ToolOutputFile.h"
#include "llvm/Support/raw_ostream.h"

static int fail(llvm::StringRef input, const llvm::Twine &reason) {
  llvm::errs() << input << ": " << reason << "\n";
  return EXIT_FAILURE;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::DialectRegistry registry;
  mlir::alpa::registerAlpaDialects(registry);
  // The dialects of other people's loops, as an embedding compiler has them.
  registry.insert<mlir::arith::ArithDialect, mlir::scf::SCFDialect,
                  mlir::tensor::TensorDialect>();
  mlir::alpa::registerScfDataFlow(registry);
  mlir::alpa::registerAlpaPasses();
  mlir::alpa::registerAlpaPipelines();
  mlir::registerTransformsPasses();
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "stablehlo_alpa optimizer driver\n", registry);
  auto config = mlir::MlirOptMainConfig::createFromCLOptions();
  if (config.shouldShowDialects()) {
    return mlir::asMainReturnCode(
        mlir::MlirOptMain(argc, argv, input, output, registry));
  }
  std::string error;
  std::unique_ptr<llvm::MemoryBuffer> buffer =
      mlir::openInputFile(input, &error);
  if (!buffer) {
    return fail(input, error);
  }
  if (std::string reason = mlir::alpa::getReasonToRefuse(buffer->getBuffer());
      !reason.empty()) {
    return fail(input, reason);
  }
  std::unique_ptr<llvm::ToolOutputFile> file =
      mlir::openOutputFile(output, &error);
  if (!file) {
    return fail(output, error);
  }
  if (mlir::MlirOptMain(file->os(), std::move(buffer), registry, config)
          .failed()) {
    return EXIT_FAILURE;
  }
  file->keep();
  return EXIT_SUCCESS;
}
