//===- Dynamism.cpp - registration of a family of operations --------------===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloDynamism.cpp.inc"

void StablehloDialect::registerDynamismOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloDynamism.cpp.inc"
      >();
}
