//===- Dialect.cpp - the StableHLO dialect --------------------------------===//

#include "DialectHooks.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;

#include "stablehlo/dialect/StablehloDialect.cpp.inc"

void StablehloDialect::initialize() {
  registerElementwiseOps();
  registerDataMovementOps();
  registerReductionOps();
  registerControlFlowOps();
  registerLinearAlgebraOps();
  registerCollectiveOps();
  registerCustomCallOps();
  registerDynamismOps();
  registerNormalizationOps();
  registerDeprecatedOps();
  registerTransferOps();
  registerAttributes();
  registerTypes();
  addInterfaces<InlineAnywhere>();
  // Operations without a definition here pass through.
  allowUnknownOperations();
}

Operation *StablehloDialect::materializeConstant(OpBuilder &builder,
                                                 Attribute value, Type type,
                                                 Location loc) {
  auto elements = dyn_cast<ElementsAttr>(value);
  if (!elements || elements.getType() != type || !isa<RankedTensorType>(type)) {
    return nullptr;
  }
  return ConstantOp::create(builder, loc, type, elements);
}
