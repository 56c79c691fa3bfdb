//===- ChloOps.h - the CHLO dialect -----------------------------*- C++ -*-===//

#ifndef STABLEHLO_DIALECT_CHLO_OPS_H
#define STABLEHLO_DIALECT_CHLO_OPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "stablehlo/dialect/Base.h"

namespace mlir::chlo {
namespace detail {
LogicalResult verifyBroadcast(Operation *op);
} // namespace detail

namespace OpTrait {
/// The result has the shape to which the operands are broadcast, where that is
/// known.
template <typename ConcreteType>
class Broadcasting
    : public mlir::OpTrait::TraitBase<ConcreteType, Broadcasting> {
public:
  static LogicalResult verifyTrait(Operation *op) {
    return detail::verifyBroadcast(op);
  }
};
} // namespace OpTrait
} // namespace mlir::chlo

#include "stablehlo/dialect/ChloDialect.h.inc"
#include "stablehlo/dialect/ChloEnums.h.inc"

#define GET_ATTRDEF_CLASSES
#include "stablehlo/dialect/ChloAttrs.h.inc"

#define GET_OP_CLASSES
#include "stablehlo/dialect/ChloOps.h.inc"

#endif // STABLEHLO_DIALECT_CHLO_OPS_H
