//===- LayerScopes.cpp - What name scopes say of layers -------------------===//

#include "cpp/transforms/LayerScopes.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::alpa {

/// The scope that the front end opens around a layer.
static constexpr StringLiteral kLayerScope = "alpa_layer_";
/// JAX's names for what reverse-mode differentiation makes: backward, and
/// forward beside it.
static constexpr StringLiteral kTransposeScope = "transpose(jvp(";
static constexpr StringLiteral kLinearizedScope = "jvp(";

/// The outermost differentiation is that of the step. In its forward part there
/// may be gradients that the loss is made from:
///   jit(step)/jvp(alpa_layer_0)/transpose(jvp(critic))/mul       forward
///   jit(step)/transpose(jvp(alpa_layer_0))/jvp(critic)/mul       backward
/// What is transposed and not differentiated is a linear function:
///   jit(step)/alpa_layer_0/transpose()/mul                       forward
bool isBackwardScope(StringRef scope) {
  return scope.find(kTransposeScope) < scope.find(kLinearizedScope);
}

/// The digits behind the first `alpa_layer_` of a scope; none if there is none.
static StringRef getLayerDigits(StringRef scope) {
  size_t start = scope.find(kLayerScope);
  if (start == StringRef::npos) {
    return {};
  }
  return scope.substr(start + kLayerScope.size()).take_while([](char c) {
    return llvm::isDigit(c);
  });
}

std::optional<int64_t> getScopeLayer(StringRef scope) {
  int64_t layer = 0;
  if (getLayerDigits(scope).getAsInteger(10, layer)) {
    return std::nullopt;
  }
  return layer;
}

std::string withScopeLayer(StringRef scope, int64_t layer) {
  StringRef digits = getLayerDigits(scope);
  size_t start = digits.data() - scope.data();
  return (scope.take_front(start) + std::to_string(layer) +
          scope.drop_front(start + digits.size()))
      .str();
}

} // namespace mlir::alpa
