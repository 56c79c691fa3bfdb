//===- HostMoves.cpp - Between a device and the host ----------------------===//

#include "cpp/analysis/HostMoves.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

static constexpr llvm::StringLiteral kTarget = "annotate_device_placement";
static constexpr llvm::StringLiteral kFrontendAttrName =
    "mhlo.frontend_attributes";
static constexpr llvm::StringLiteral kPlacementAttrName =
    "_xla_buffer_placement";

/// The memory that an operator moves its operand to; empty if it moves nothing.
static StringRef getPlacement(Operation *op) {
  auto call = dyn_cast<stablehlo::CustomCallOp>(op);
  if (!call || call.getCallTargetName() != kTarget) {
    return {};
  }
  auto attributes = call->getAttrOfType<DictionaryAttr>(kFrontendAttrName);
  auto placement = attributes ? attributes.getAs<StringAttr>(kPlacementAttrName)
                              : StringAttr();
  return placement ? placement.getValue() : StringRef();
}

bool movesToHost(Operation *op) { return getPlacement(op).ends_with("host"); }

bool movesToDevice(Operation *op) { return getPlacement(op) == "device"; }

} // namespace mlir::alpa
