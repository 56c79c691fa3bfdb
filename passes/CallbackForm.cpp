//===- CallbackForm.cpp - Callbacks as custom calls -----------------------===//

#include "passes/CallbackForm.h"

namespace mlir::alpa {

static constexpr StringRef kTarget = "alpa_callback";
static constexpr StringRef kIndex = "index";
static constexpr StringRef kName = "name";
static constexpr StringRef kOrdered = "ordered";

bool isCallbackCall(Operation *op) {
  auto call = dyn_cast<stablehlo::CustomCallOp>(op);
  return call && call.getCallTargetName() == kTarget;
}

std::optional<CallbackConfig> readCallbackConfig(stablehlo::CustomCallOp call) {
  auto config = dyn_cast_or_null<DictionaryAttr>(call.getBackendConfigAttr());
  auto index = config ? config.getAs<IntegerAttr>(kIndex) : nullptr;
  auto name = config ? config.getAs<StringAttr>(kName) : nullptr;
  auto ordered = config ? config.getAs<BoolAttr>(kOrdered) : nullptr;
  if (!index || !index.getType().isSignlessInteger(64) || index.getInt() < 0 ||
      !name || !ordered) {
    call.emitOpError() << "@" << kTarget << " needs a backend_config with "
                       << kIndex << ", " << kName << " and " << kOrdered;
    return std::nullopt;
  }
  return CallbackConfig{index, name, ordered.getValue()};
}

stablehlo::CustomCallOp
emitCallbackCall(OpBuilder &builder, CallbackOp callback, ValueRange operands) {
  NamedAttrList config;
  config.set(kIndex, callback.getIndexAttr());
  config.set(kName, callback.getNameAttr());
  config.set(kOrdered, builder.getBoolAttr(callback.getOrdered()));
  OperationState state(callback.getLoc(),
                       stablehlo::CustomCallOp::getOperationName());
  state.addOperands(operands);
  state.addTypes(callback.getResultTypes());
  state.addAttribute("call_target_name", builder.getStringAttr(kTarget));
  state.addAttribute("has_side_effect",
                     builder.getBoolAttr(!callback.getPure()));
  state.addAttribute("api_version", builder.getI32IntegerAttr(4));
  state.addAttribute("backend_config",
                     config.getDictionary(builder.getContext()));
  return cast<stablehlo::CustomCallOp>(builder.create(state));
}

} // namespace mlir::alpa
