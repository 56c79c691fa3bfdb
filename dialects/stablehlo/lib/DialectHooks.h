//===- DialectHooks.h - What StableHLO and CHLO do alike --------*- C++ -*-===//

#ifndef STABLEHLO_LIB_DIALECTHOOKS_H
#define STABLEHLO_LIB_DIALECTHOOKS_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/DialectImplementation.h"
#include "mlir/Transforms/InliningUtils.h"

namespace mlir::stablehlo {

/// Any operation may move into the place of a call.
struct InlineAnywhere : public DialectInlinerInterface {
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

/// An attribute without a definition: its text is kept as it is.
inline Attribute keepText(DialectAsmParser &parser, const Dialect &dialect,
                          Type type) {
  MLIRContext *context = dialect.getContext();
  return OpaqueAttr::get(StringAttr::get(context, dialect.getNamespace()),
                         parser.getFullSymbolSpec(),
                         type ? type : NoneType::get(context));
}

} // namespace mlir::stablehlo

#endif // STABLEHLO_LIB_DIALECTHOOKS_H
