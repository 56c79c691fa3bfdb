//===- ControlFlow.cpp - registration and behaviour of a family of operations
//---===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloControlFlow.cpp.inc"

void StablehloDialect::registerControlFlowOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloControlFlow.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// WhileOp: `while(%iterArg = %x) : type cond {..} do {..}`
//===----------------------------------------------------------------------===//

void WhileOp::getAsmBlockArgumentNames(Region &region,
                                       OpAsmSetValueNameFn setNameFn) {
  for (BlockArgument argument : region.getArguments()) {
    setNameFn(argument, "iterArg");
  }
}

/// `(%iterArg = %x)`; without arguments, `(%x)`, where the regions have their
/// own.
static ParseResult
parseLoopValues(OpAsmParser &parser,
                SmallVectorImpl<OpAsmParser::Argument> &arguments,
                SmallVectorImpl<OpAsmParser::UnresolvedOperand> &operands) {
  SMLoc loc = parser.getCurrentLocation();
  auto parseValue = [&]() -> ParseResult {
    OpAsmParser::UnresolvedOperand value;
    if (parser.parseOperand(value)) {
      return failure();
    }
    if (failed(parser.parseOptionalEqual())) {
      operands.push_back(value);
      return success();
    }
    arguments.emplace_back().ssaName = value;
    return parser.parseOperand(operands.emplace_back());
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, parseValue)) {
    return failure();
  }
  if (!arguments.empty() && arguments.size() != operands.size()) {
    return parser.emitError(loc, "expected a name for all values or for none");
  }
  return success();
}

ParseResult WhileOp::parse(OpAsmParser &parser, OperationState &state) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> operands;
  SmallVector<OpAsmParser::Argument> arguments;
  SmallVector<Type> types;
  if (parseLoopValues(parser, arguments, operands) ||
      (!operands.empty() &&
       (parser.parseColon() || parser.parseTypeList(types)))) {
    return failure();
  }
  auto function = types.size() == 1 ? dyn_cast<FunctionType>(types.front())
                                    : FunctionType();
  if (function) {
    types = llvm::to_vector(function.getInputs());
  }
  if (parser.resolveOperands(operands, types, loc, state.operands) ||
      parser.parseOptionalAttrDictWithKeyword(state.attributes)) {
    return failure();
  }
  state.addTypes(function ? function.getResults() : ArrayRef<Type>(types));
  for (auto [argument, type] : llvm::zip(arguments, types)) {
    argument.type = type;
  }
  return failure(parser.parseKeyword("cond") ||
                 parser.parseRegion(*state.addRegion(), arguments) ||
                 parser.parseKeyword("do") ||
                 parser.parseRegion(*state.addRegion(), arguments));
}

void WhileOp::print(OpAsmPrinter &printer) {
  // Types may differ where sizes are unknown.
  bool isUniform = getResultTypes() == getOperandTypes() &&
                   getCond().getArgumentTypes() == getOperandTypes() &&
                   getBody().getArgumentTypes() == getOperandTypes();
  printer << '(';
  if (isUniform) {
    llvm::interleaveComma(llvm::zip(getCond().getArguments(), getOperands()),
                          printer, [&](auto pair) {
                            auto [argument, operand] = pair;
                            printer << argument << " = " << operand;
                          });
  } else {
    printer << getOperands();
  }
  printer << ')';
  if (getNumOperands() > 0) {
    printer << " : ";
    if (isUniform) {
      llvm::interleaveComma(getOperandTypes(), printer);
    } else {
      printer.printFunctionalType(*this);
    }
  }
  printer.printOptionalAttrDictWithKeyword((*this)->getAttrs());
  printer.printNewline();
  printer << "cond ";
  printer.printRegion(getCond(), /*printEntryBlockArgs=*/!isUniform);
  printer << " do ";
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/!isUniform);
}
