//===- Reductions.cpp - registration and behaviour of a family of operations
//---===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloReductions.cpp.inc"

void StablehloDialect::registerReductionOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloReductions.cpp.inc"
      >();
}

//===----------------------------------------------------------------------===//
// ReduceOp: `reduce(%x init: %i) applies stablehlo.add across dimensions = [0]`
//===----------------------------------------------------------------------===//

/// The one operation of a body that the compact form can name, or null.
static Operation *getCompactBody(ReduceOp op) {
  if (op.getInputs().size() != 1 || !llvm::hasSingleElement(op.getBody())) {
    return nullptr;
  }
  Block &block = op.getBody().front();
  if (block.getNumArguments() != 2 || block.getOperations().size() != 2) {
    return nullptr;
  }
  Operation *inner = &block.front();
  auto result = dyn_cast<ReturnOp>(&block.back());
  bool isBinary = inner->getNumOperands() == 2 && inner->getNumResults() == 1 &&
                  inner->getNumRegions() == 0 &&
                  inner->getAttrDictionary().empty() && inner->isRegistered() &&
                  inner->hasTrait<OpTrait::IsCommutative>() &&
                  isa<StablehloDialect>(inner->getDialect());
  if (!result || !isBinary || result->getNumOperands() != 1 ||
      result->getOperand(0) != inner->getResult(0) ||
      !result->getAttrDictionary().empty()) {
    return nullptr;
  }
  auto tensor = dyn_cast<RankedTensorType>(op.getInputs()[0].getType());
  Type type =
      tensor ? RankedTensorType::get({}, tensor.getElementType()) : Type();
  bool isPlain = inner->getOperand(0) == block.getArgument(0) &&
                 inner->getOperand(1) == block.getArgument(1) &&
                 llvm::all_of(block.getArgumentTypes(),
                              [&](Type t) { return t == type; }) &&
                 inner->getResult(0).getType() == type &&
                 inner->getLoc() == op.getLoc();
  return isPlain ? inner : nullptr;
}

/// The end of `applies stablehlo.add across ...`: a location, and the body that
/// is meant.
static ParseResult parseApplied(OpAsmParser &parser, OperationName inner,
                                SMLoc innerLoc, bool hasOneInput,
                                FunctionType type, OperationState &state) {
  auto tensor =
      hasOneInput ? dyn_cast<RankedTensorType>(type.getInput(0)) : nullptr;
  if (!tensor) {
    return parser.emitError(
        innerLoc, "the form `applies` takes one input of a ranked tensor type");
  }
  if (!inner.isRegistered() || !inner.hasTrait<OpTrait::IsCommutative>() ||
      !inner.hasTrait<OpTrait::NOperands<2>::Impl>()) {
    return parser.emitError(innerLoc)
           << "'" << inner << "' is no commutative operation of two "
           << "operands that `applies` could name";
  }
  Type element = RankedTensorType::get({}, tensor.getElementType());
  std::optional<Location> loc;
  if (parser.parseOptionalLocationSpecifier(loc)) {
    return failure();
  }
  state.location =
      loc.value_or(parser.getEncodedSourceLoc(parser.getNameLoc()));
  Block *block = new Block();
  state.regions.front()->push_back(block);
  block->addArguments({element, element}, {state.location, state.location});
  OpBuilder builder(parser.getContext());
  builder.setInsertionPointToEnd(block);
  OperationState innerState(state.location, inner);
  innerState.addOperands(block->getArguments());
  innerState.addTypes(element);
  Operation *operation = builder.create(innerState);
  ReturnOp::create(builder, state.location, operation->getResults());
  return success();
}

ParseResult ReduceOp::parse(OpAsmParser &parser, OperationState &state) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<OpAsmParser::UnresolvedOperand> inputs, inits;
  do {
    if (parser.parseLParen() || parser.parseOperand(inputs.emplace_back()) ||
        parser.parseKeyword("init") || parser.parseColon() ||
        parser.parseOperand(inits.emplace_back()) || parser.parseRParen()) {
      return failure();
    }
  } while (succeeded(parser.parseOptionalComma()));

  std::optional<OperationName> inner;
  SMLoc innerLoc = parser.getCurrentLocation();
  if (succeeded(parser.parseOptionalKeyword("applies"))) {
    innerLoc = parser.getCurrentLocation();
    FailureOr<OperationName> name = parser.parseCustomOperationName();
    if (failed(name)) {
      return failure();
    }
    inner = *name;
  }
  if (parser.parseKeyword("across") || parser.parseKeyword("dimensions") ||
      parser.parseEqual()) {
    return failure();
  }
  FailureOr<SmallVector<int64_t>> dims = parseDims(parser);
  FunctionType type;
  if (failed(dims) || parser.parseOptionalAttrDict(state.attributes) ||
      parser.parseColonType(type)) {
    return failure();
  }
  state.getOrAddProperties<Properties>().dimensions =
      parser.getBuilder().getDenseI64ArrayAttr(*dims);
  size_t count = inputs.size();
  inputs.append(inits);
  if (parser.resolveOperands(inputs, type.getInputs(), loc, state.operands)) {
    return failure();
  }
  state.addTypes(type.getResults());
  Region *body = state.addRegion();

  if (inner) {
    return parseApplied(parser, *inner, innerLoc, count == 1, type, state);
  }
  SmallVector<OpAsmParser::Argument> arguments(2 * count);
  if (parser.parseKeyword("reducer")) {
    return failure();
  }
  for (size_t i = 0; i < count; ++i) {
    if (parser.parseLParen() ||
        parser.parseArgument(arguments[i], /*allowType=*/true) ||
        parser.parseComma() ||
        parser.parseArgument(arguments[i + count], /*allowType=*/true) ||
        parser.parseRParen()) {
      return failure();
    }
  }
  return parser.parseRegion(*body, arguments);
}

void ReduceOp::print(OpAsmPrinter &printer) {
  llvm::interleaveComma(llvm::zip(getInputs(), getInitValues()), printer,
                        [&](auto pair) {
                          auto [input, init] = pair;
                          printer << '(' << input << " init: " << init << ')';
                        });
  Operation *inner = getCompactBody(*this);
  if (inner) {
    printer << " applies " << inner->getName();
  }
  printer << " across dimensions = ";
  printDims(printer, getDimensions());
  printer.printOptionalAttrDict((*this)->getAttrs(), {"dimensions"});
  printer << " : ";
  printer.printFunctionalType(*this);
  if (inner) {
    return;
  }
  printer.printNewline();
  printer << " reducer";
  Block &block = getBody().front();
  size_t count = getInputs().size();
  for (size_t i = 0; i < count; ++i) {
    printer << '(';
    printer.printRegionArgument(block.getArgument(i));
    printer << ", ";
    printer.printRegionArgument(block.getArgument(i + count));
    printer << ") ";
  }
  printer << ' ';
  printer.printRegion(getBody(), /*printEntryBlockArgs=*/false);
}
