//===- LinearAlgebra.cpp - registration and behaviour of a family of operations
//---===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloLinearAlgebra.cpp.inc"

void StablehloDialect::registerLinearAlgebraOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloLinearAlgebra.cpp.inc"
      >();
}

void RngBitGeneratorOp::getAsmResultNames(
    function_ref<void(Value, StringRef)> setNameFn) {
  setNameFn(getOutputState(), "output_state");
  setNameFn(getOutput(), "output");
}
