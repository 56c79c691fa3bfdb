//===- Normalization.cpp - registration of a family of operations ---------===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloNormalization.cpp.inc"

void StablehloDialect::registerNormalizationOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloNormalization.cpp.inc"
      >();
}
