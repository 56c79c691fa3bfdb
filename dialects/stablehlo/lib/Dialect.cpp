//===- Dialect.cpp - the StableHLO dialect --------------------------------===//

#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;

#include "stablehlo/dialect/StablehloDialect.cpp.inc"

namespace {
/// Any operation may move into the place of a call.
struct StablehloInlinerInterface : public DialectInlinerInterface {
  using DialectInlinerInterface::DialectInlinerInterface;
  bool isLegalToInline(Operation *, Operation *, bool) const final {
    return true;
  }
  bool isLegalToInline(Region *, Region *, bool, IRMapping &) const final {
    return true;
  }
  bool isLegalToInline(Operation *, Region *, bool, IRMapping &) const final {
    return true;
  }
};
} // namespace

void StablehloDialect::initialize() {
  registerElementwiseOps();
  registerDataMovementOps();
  registerReductionOps();
  registerControlFlowOps();
  registerLinearAlgebraOps();
  registerCollectiveOps();
  registerCustomCallOps();
  registerAttributes();
  registerTypes();
  addInterfaces<StablehloInlinerInterface>();
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
