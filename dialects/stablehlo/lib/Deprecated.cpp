//===- Deprecated.cpp - registration of a family of operations ------------===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloDeprecated.cpp.inc"

void StablehloDialect::registerDeprecatedOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloDeprecated.cpp.inc"
      >();
}
