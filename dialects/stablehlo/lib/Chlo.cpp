//===- Chlo.cpp - the CHLO dialect ----------------------------------------===//

#include "stablehlo/dialect/ChloOps.h"

#include "DialectHooks.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/AssemblyFormat.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::chlo;

#include "stablehlo/dialect/ChloDialect.cpp.inc"
#include "stablehlo/dialect/ChloEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "stablehlo/dialect/ChloAttrs.cpp.inc"

#define GET_OP_CLASSES
#include "stablehlo/dialect/ChloOps.cpp.inc"

void ChloDialect::initialize() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/ChloOps.cpp.inc"
      >();
  registerAttributes();
  addInterfaces<stablehlo::InlineAnywhere>();
  // Operations without a definition here pass through.
  allowUnknownOperations();
}

void ChloDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "stablehlo/dialect/ChloAttrs.cpp.inc"
      >();
}

Attribute ChloDialect::parseAttribute(DialectAsmParser &parser,
                                      Type type) const {
  StringRef mnemonic;
  Attribute attr;
  OptionalParseResult result =
      generatedAttributeParser(parser, &mnemonic, type, attr);
  if (result.has_value()) {
    return succeeded(*result) ? attr : Attribute();
  }
  return stablehlo::keepText(parser, *this, type);
}

void ChloDialect::printAttribute(Attribute attr,
                                 DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attr, printer);
}

void TopKOp::getAsmResultNames(function_ref<void(Value, StringRef)> setNameFn) {
  setNameFn(getValues(), "values");
  setNameFn(getIndices(), "indices");
}

LogicalResult TopKOp::verify() {
  auto operand = cast<RankedTensorType>(getOperand().getType());
  auto values = cast<RankedTensorType>(getValues().getType());
  auto indices = cast<RankedTensorType>(getIndices().getType());
  int64_t rank = operand.getRank();
  if (rank < 1) {
    return emitOpError("needs an operand of rank at least 1, but got rank 0");
  }
  if (static_cast<int64_t>(getK()) < 0) {
    return emitOpError() << "k = " << static_cast<int64_t>(getK())
                         << " must not be negative";
  }
  SmallVector<int64_t> expected(operand.getShape());
  if (expected.back() != ShapedType::kDynamic &&
      static_cast<int64_t>(getK()) > expected.back()) {
    return emitOpError() << "k = " << getK()
                         << " is more than the last dimension's size "
                         << expected.back();
  }
  expected.back() = static_cast<int64_t>(getK());
  for (RankedTensorType type : {values, indices}) {
    if (failed(mlir::verifyCompatibleShape(type.getShape(), expected))) {
      return emitOpError() << "results must have the operand's shape with k = "
                           << getK() << " last, but got " << type;
    }
  }
  return success();
}

LogicalResult RaggedDotOp::verify() {
  RaggedDotDimensionNumbersAttr dims = getRaggedDotDimensionNumbers();
  auto check = [&](ArrayRef<int64_t> list, Value operand,
                   StringRef name) -> LogicalResult {
    int64_t rank = cast<RankedTensorType>(operand.getType()).getRank();
    for (int64_t dim : list) {
      if (dim < 0 || dim >= rank) {
        return emitOpError() << name << " dimension " << dim
                             << " is not in [0, " << rank << ")";
      }
    }
    return success();
  };
  return success(
      succeeded(
          check(dims.getLhsBatchingDimensions(), getLhs(), "lhs batching")) &&
      succeeded(
          check(dims.getRhsBatchingDimensions(), getRhs(), "rhs batching")) &&
      succeeded(check(dims.getLhsContractingDimensions(), getLhs(),
                      "lhs contracting")) &&
      succeeded(check(dims.getRhsContractingDimensions(), getRhs(),
                      "rhs contracting")) &&
      succeeded(check(dims.getLhsRaggedDimensions(), getLhs(), "lhs ragged")) &&
      succeeded(check(dims.getRhsGroupDimensions(), getRhs(), "rhs group")));
}
