//===- Phases.cpp - When the operators of a step run ----------------------===//

#include "cpp/transforms/Phases.h"

#include "dialects/alpa/Alpa.h"

namespace mlir::alpa {

void setPhase(Operation *op, int64_t phase) {
  op->setAttr(kPhaseAttrName,
              IntegerAttr::get(IntegerType::get(op->getContext(), 64), phase));
}

} // namespace mlir::alpa
