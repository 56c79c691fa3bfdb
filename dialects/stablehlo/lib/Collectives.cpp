//===- Collectives.cpp - registration and behaviour of a family of operations
//---===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloCollectives.cpp.inc"

void StablehloDialect::registerCollectiveOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloCollectives.cpp.inc"
      >();
}
