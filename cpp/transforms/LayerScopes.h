//===- LayerScopes.h - What name scopes say of layers -----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_LAYERSCOPES_H
#define CPP_TRANSFORMS_LAYERSCOPES_H

#include "mlir/IR/Location.h"
#include <optional>

namespace mlir::alpa {

/// The scope that the front end opens around what cuts stacks of layers into
/// parts and puts them together.
inline constexpr StringLiteral kStackScope = "alpa_stack";

/// True if differentiation made an operator of that scope for the backward
/// phase of the step.
bool isBackwardScope(StringRef scope);

/// The layer that a scope is in; none if it is in no layer.
std::optional<int64_t> getScopeLayer(StringRef scope);

/// The same scope in another layer; it is in one.
std::string withScopeLayer(StringRef scope, int64_t layer);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_LAYERSCOPES_H
