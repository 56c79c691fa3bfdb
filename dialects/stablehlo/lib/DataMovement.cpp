//===- DataMovement.cpp - registration and behaviour of a family of operations
//---===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloDataMovement.cpp.inc"

void StablehloDialect::registerDataMovementOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloDataMovement.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// ConstantOp
//===----------------------------------------------------------------------===//

void ConstantOp::build(OpBuilder &builder, OperationState &state,
                       Attribute value) {
  auto elements = cast<ElementsAttr>(value);
  build(builder, state, elements.getType(), elements);
}

void ConstantOp::getAsmResultNames(
    function_ref<void(Value, StringRef)> setNameFn) {
  bool isInteger = isa<IntegerType>(getOutput().getType().getElementType());
  setNameFn(getOutput(), isInteger ? "c" : "cst");
}

/// `() {value = dense<1> : tensor<i8>} : () -> type`, behind the parenthesis.
static ParseResult parseWithType(OpAsmParser &parser, OperationState &state) {
  FunctionType type;
  if (parser.parseRParen()) {
    return failure();
  }
  if (succeeded(parser.parseOptionalLess()) &&
      (parser.parseAttribute(state.propertiesAttr) || parser.parseGreater())) {
    return failure();
  }
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(type)) {
    return failure();
  }
  if (type.getNumInputs() != 0 || type.getNumResults() != 1) {
    return parser.emitError(loc) << "expected one result and no operands, but "
                                    "got "
                                 << type;
  }
  state.addTypes(type.getResults());
  return success();
}

ParseResult ConstantOp::parse(OpAsmParser &parser, OperationState &state) {
  if (succeeded(parser.parseOptionalLParen())) {
    return parseWithType(parser, state);
  }
  SMLoc loc = parser.getCurrentLocation();
  ElementsAttr value;
  if (parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseAttribute(value)) {
    return failure();
  }
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type) {
    return parser.emitError(loc, "expected elements of a ranked tensor");
  }
  state.getOrAddProperties<Properties>().value = value;
  state.addTypes(type);
  return success();
}

void ConstantOp::print(OpAsmPrinter &printer) {
  // Quantized elements are given as they are stored.
  if (getValue().getType() != getType()) {
    printer.printGenericOp(*this, /*printOpName=*/false);
    return;
  }
  printer.printOptionalAttrDict((*this)->getAttrs(), {"value"});
  printer << ' ' << getValue();
}

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

//===----------------------------------------------------------------------===//
// Folders: exact rewrites of shapes, whatever the values
//===----------------------------------------------------------------------===//

static bool isIdentity(ArrayRef<int64_t> dims) {
  return llvm::equal(dims, llvm::seq<int64_t>(0, dims.size()));
}

/// A value of static type `type` is the result itself.
static bool isSame(Value operand, Type type) {
  return operand.getType() == type &&
         cast<RankedTensorType>(type).hasStaticShape();
}

OpFoldResult ReshapeOp::fold(FoldAdaptor) {
  if (isSame(getOperand(), getType())) {
    return getOperand();
  }
  if (auto inner = getOperand().getDefiningOp<ReshapeOp>();
      inner && inner != *this) {
    getOperandMutable().assign(inner.getOperand());
    return getResult();
  }
  return {};
}

OpFoldResult TransposeOp::fold(FoldAdaptor) {
  if (isIdentity(getPermutation()) && isSame(getOperand(), getType())) {
    return getOperand();
  }
  auto inner = getOperand().getDefiningOp<TransposeOp>();
  if (!inner || inner == *this ||
      inner.getPermutation().size() != getPermutation().size()) {
    return {};
  }
  SmallVector<int64_t> permutation;
  for (int64_t dim : getPermutation()) {
    permutation.push_back(inner.getPermutation()[dim]);
  }
  setPermutation(permutation);
  getOperandMutable().assign(inner.getOperand());
  return getResult();
}

OpFoldResult BroadcastInDimOp::fold(FoldAdaptor) {
  bool isNoOp =
      isIdentity(getBroadcastDimensions()) && isSame(getOperand(), getType());
  return isNoOp ? OpFoldResult(getOperand()) : OpFoldResult();
}

OpFoldResult SliceOp::fold(FoldAdaptor) {
  // A slice of the operand's own static shape starts at 0 with stride 1
  // wherever that matters.
  return isSame(getOperand(), getType()) ? OpFoldResult(getOperand())
                                         : OpFoldResult();
}
