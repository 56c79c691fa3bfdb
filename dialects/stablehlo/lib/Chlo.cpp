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

/// The values of the body, of which the first `numSlices` are slices along
/// the dimension of those outside.
static LogicalResult verifyBody(ScanOp op, StringRef name, TypeRange outside,
                                TypeRange inside, size_t numSlices) {
  if (inside.size() != outside.size()) {
    return op.emitOpError() << "the body has " << inside.size() << " " << name
                            << "s, but the scan has " << outside.size();
  }
  int64_t dimension = op.getDimension();
  for (auto [index, pair] : llvm::enumerate(llvm::zip(outside, inside))) {
    auto type = cast<RankedTensorType>(std::get<0>(pair));
    SmallVector<int64_t> shape(type.getShape());
    if (index < numSlices) {
      if (dimension >= type.getRank()) {
        return op.emitOpError()
               << "dimension " << dimension << " is not one of " << name << " "
               << index << ", " << type;
      }
      shape.erase(shape.begin() + dimension);
    }
    auto taken = dyn_cast<RankedTensorType>(std::get<1>(pair));
    if (!taken || taken.getElementType() != type.getElementType() ||
        failed(verifyCompatibleShape(taken.getShape(), shape))) {
      return op.emitOpError()
             << name << " " << index << " of the body is of "
             << std::get<1>(pair) << ", expected " << type.clone(shape);
    }
  }
  return success();
}

LogicalResult ScanOp::verify() {
  if (getInputs().empty() && getOutputs().empty()) {
    return emitOpError("needs an input or an output");
  }
  std::optional<uint64_t> size = getScanDimSize();
  SmallVector<Type> wholes(getInputs().getTypes());
  llvm::append_range(wholes, getOutputs().getTypes());
  for (Type whole : wholes) {
    auto type = cast<RankedTensorType>(whole);
    if (getDimension() >= static_cast<uint64_t>(type.getRank()) ||
        type.isDynamicDim(getDimension())) {
      continue;
    }
    uint64_t own = type.getDimSize(getDimension());
    if (size && *size != own) {
      return emitOpError() << "runs through " << *size << " slices, but "
                           << type << " has " << own;
    }
    size = own;
  }
  Block &body = getBody().front();
  if (body.empty() || !body.back().hasTrait<OpTrait::IsTerminator>()) {
    return emitOpError("needs a body with a terminator");
  }
  return success(
      succeeded(verifyBody(*this, "argument", getOperandTypes(),
                           body.getArgumentTypes(), getInputs().size())) &&
      succeeded(verifyBody(*this, "result", getResultTypes(),
                           body.back().getOperandTypes(),
                           getOutputs().size())));
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
