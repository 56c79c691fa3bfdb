//===- StablehloOps.h - the StableHLO dialect -------------------*- C++ -*-===//

#ifndef STABLEHLO_DIALECT_STABLEHLO_OPS_H
#define STABLEHLO_DIALECT_STABLEHLO_OPS_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/IR/TensorEncoding.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "stablehlo/dialect/Base.h"

#include "stablehlo/dialect/StablehloDialect.h.inc"
#include "stablehlo/dialect/StablehloEnums.h.inc"

#define GET_TYPEDEF_CLASSES
#include "stablehlo/dialect/StablehloTypes.h.inc"

#define GET_ATTRDEF_CLASSES
#include "stablehlo/dialect/StablehloAttrs.h.inc"

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloOps.h.inc"

#endif // STABLEHLO_DIALECT_STABLEHLO_OPS_H
