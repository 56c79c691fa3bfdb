//===- CallbackForm.h - Callbacks as custom calls ---------------*- C++ -*-===//
//
// A front end writes a callback as
//   stablehlo.custom_call @alpa_callback(...) {has_side_effect = true,
//     backend_config = {index = 0 : i64, name = "sin", ordered = false}}
// and the program of a device has it in the same form, an ordered one with its
// tokens. A pure one has no side effect.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_CALLBACKFORM_H
#define PASSES_CALLBACKFORM_H

#include "dialects/alpa/Alpa.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <optional>

namespace mlir::alpa {

/// What the custom call of a callback says.
struct CallbackConfig {
  IntegerAttr index;
  StringAttr name;
  bool isOrdered;
};

bool isCallbackCall(Operation *op);

/// None, with a diagnostic, where the call does not say all of it.
std::optional<CallbackConfig> readCallbackConfig(stablehlo::CustomCallOp call);

/// The callback as a custom call of `operands`.
stablehlo::CustomCallOp
emitCallbackCall(OpBuilder &builder, CallbackOp callback, ValueRange operands);

} // namespace mlir::alpa

#endif // PASSES_CALLBACKFORM_H
