//===- CustomCall.cpp - registration and behaviour of a family of operations
//---===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloCustomCall.cpp.inc"

void StablehloDialect::registerCustomCallOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloCustomCall.cpp.inc"
      >();
}

void CustomCallOp::getEffects(
    SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>>
        &effects) {
  if (getHasSideEffect()) {
    effects.emplace_back(MemoryEffects::Read::get());
    effects.emplace_back(MemoryEffects::Write::get());
  }
}
