//===- ScanFormat.cpp - text of chlo.scan ---------------------------------===//

#include "stablehlo/dialect/ChloOps.h"

using namespace mlir;
using namespace mlir::chlo;

void ScanOp::getAsmBlockArgumentNames(Region &region,
                                      OpAsmSetValueNameFn setNameFn) {
  for (BlockArgument argument : region.getArguments()) {
    setNameFn(argument,
              argument.getArgNumber() < getInputs().size() ? "input" : "carry");
  }
}

/// `(%inputs) inits (%inits) dimension=0 attributes {...} {body} : type`. There
/// are as many carries, the last results, as there are inits.
ParseResult ScanOp::parse(OpAsmParser &parser, OperationState &state) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands, inits;
  int64_t dimension;
  FunctionType type;
  if (parser.parseOperandList(operands, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("inits") ||
      parser.parseOperandList(inits, OpAsmParser::Delimiter::Paren) ||
      parser.parseKeyword("dimension") || parser.parseEqual() ||
      parser.parseInteger(dimension) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes) ||
      parser.parseRegion(*state.addRegion()) || parser.parseColonType(type)) {
    return failure();
  }
  auto numInputs = static_cast<int32_t>(operands.size());
  auto numCarries = static_cast<int32_t>(inits.size());
  auto numOutputs = static_cast<int32_t>(type.getNumResults()) - numCarries;
  if (numOutputs < 0) {
    return parser.emitError(loc)
           << numCarries << " inits need as many carries "
           << "among the results, but there are " << type.getNumResults();
  }
  auto &properties = state.getOrAddProperties<Properties>();
  properties.dimension = parser.getBuilder().getI64IntegerAttr(dimension);
  properties.operandSegmentSizes = {numInputs, numCarries};
  properties.resultSegmentSizes = {numOutputs, numCarries};
  operands.append(inits);
  state.addTypes(type.getResults());
  return parser.resolveOperands(operands, type.getInputs(), loc,
                                state.operands);
}

void ScanOp::print(OpAsmPrinter &printer) {
  printer << '(' << getInputs() << ") inits (" << getInits()
          << ") dimension=" << getDimension() << ' ';
  printer.printOptionalAttrDictWithKeyword(
      (*this)->getAttrs(),
      {"dimension", "operandSegmentSizes", "resultSegmentSizes"});
  printer << ' ';
  printer.printRegion(getBody());
  printer << " : ";
  printer.printFunctionalType(*this);
}
