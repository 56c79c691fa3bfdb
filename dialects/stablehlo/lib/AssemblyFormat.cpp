//===- AssemblyFormat.cpp - pieces of the pretty form ---------------------===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

FailureOr<SmallVector<int64_t>> stablehlo::parseDims(AsmParser &parser) {
  SmallVector<int64_t> dims;
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parser.parseInteger(dims.emplace_back());
      })) {
    return failure();
  }
  return dims;
}

void stablehlo::printDims(AsmPrinter &printer, ArrayRef<int64_t> dims) {
  printer << '[';
  llvm::interleaveComma(dims, printer);
  printer << ']';
}

ParseResult stablehlo::parseOneOrFunctionType(OpAsmParser &parser,
                                              ArrayRef<Type *> operands,
                                              Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  Type type;
  if (parser.parseType(type)) {
    return failure();
  }
  auto function = dyn_cast<FunctionType>(type);
  if (!function) {
    for (Type *operand : operands) {
      *operand = type;
    }
    result = type;
    return success();
  }
  if (function.getNumInputs() != operands.size() ||
      function.getNumResults() != 1) {
    return parser.emitError(loc)
           << "expected a function type of " << operands.size()
           << " operand(s) and 1 result, but got " << function.getNumInputs()
           << " and " << function.getNumResults();
  }
  for (auto [operand, input] : llvm::zip(operands, function.getInputs())) {
    *operand = input;
  }
  result = function.getResult(0);
  return success();
}

void stablehlo::printOneOrFunctionType(OpAsmPrinter &printer,
                                       ArrayRef<Type> operands, Type result) {
  if (llvm::all_of(operands, [&](Type type) { return type == result; })) {
    printer << result;
    return;
  }
  printer.printFunctionalType(operands, TypeRange(result));
}

ParseResult stablehlo::parseVariadicSameOperandsAndResultType(
    OpAsmParser &parser, Operands &operands, SmallVectorImpl<Type> &types,
    Type &result) {
  types.resize(operands.size());
  SmallVector<Type *> pointers;
  for (Type &type : types) {
    pointers.push_back(&type);
  }
  return parseOneOrFunctionType(parser, pointers, result);
}

void stablehlo::printVariadicSameOperandsAndResultType(OpAsmPrinter &printer,
                                                       Operation *,
                                                       OperandRange,
                                                       TypeRange types,
                                                       Type result) {
  printOneOrFunctionType(printer, llvm::to_vector(types), result);
}

ParseResult stablehlo::parseTupleOpType(OpAsmParser &parser,
                                        SmallVectorImpl<Type> &operands,
                                        Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseType(result)) {
    return failure();
  }
  auto tuple = dyn_cast<TupleType>(result);
  if (!tuple) {
    return parser.emitError(loc) << "expected a tuple, but got " << result;
  }
  llvm::append_range(operands, tuple.getTypes());
  return success();
}

void stablehlo::printTupleOpType(OpAsmPrinter &printer, Operation *, TypeRange,
                                 Type result) {
  printer << result;
}

/// The real counterpart of a tensor of complex numbers, or null.
static Type realTypeOf(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  auto element =
      tensor ? dyn_cast<ComplexType>(tensor.getElementType()) : ComplexType();
  return element ? tensor.clone(element.getElementType()) : Type();
}

ParseResult stablehlo::parseComplexOpType(OpAsmParser &parser, Type &lhs,
                                          Type &rhs, Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  if (parseOneOrFunctionType(parser, {&lhs, &rhs}, result)) {
    return failure();
  }
  if (lhs != result) {
    return success();
  }
  lhs = rhs = realTypeOf(result);
  if (!lhs) {
    return parser.emitError(loc, "expected a tensor of complex numbers");
  }
  return success();
}

void stablehlo::printComplexOpType(OpAsmPrinter &printer, Operation *, Type lhs,
                                   Type rhs, Type result) {
  if (lhs == rhs && lhs == realTypeOf(result)) {
    printer << result;
    return;
  }
  printer.printFunctionalType(TypeRange({lhs, rhs}), TypeRange(result));
}

ParseResult stablehlo::parseSelectOpType(OpAsmParser &parser, Type &pred,
                                         Type &onTrue, Type &onFalse,
                                         Type &result) {
  SMLoc loc = parser.getCurrentLocation();
  SmallVector<Type> types;
  if (parser.parseTypeList(types)) {
    return failure();
  }
  if (types.size() == 2) {
    pred = types[0];
    onTrue = onFalse = result = types[1];
    return success();
  }
  auto function =
      types.size() == 1 ? dyn_cast<FunctionType>(types[0]) : FunctionType();
  if (!function || function.getNumInputs() != 3 ||
      function.getNumResults() != 1) {
    return parser.emitError(
        loc, "expected two types or a function type of three operands");
  }
  pred = function.getInput(0);
  onTrue = function.getInput(1);
  onFalse = function.getInput(2);
  result = function.getResult(0);
  return success();
}

void stablehlo::printSelectOpType(OpAsmPrinter &printer, Operation *, Type pred,
                                  Type onTrue, Type onFalse, Type result) {
  if (onTrue == result && onFalse == result) {
    printer << pred << ", " << result;
    return;
  }
  printer.printFunctionalType(TypeRange({pred, onTrue, onFalse}),
                              TypeRange(result));
}

ParseResult stablehlo::parsePairwiseOpType(OpAsmParser &parser,
                                           SmallVectorImpl<Type> &operands,
                                           SmallVectorImpl<Type> &results) {
  if (parser.parseTypeList(operands)) {
    return failure();
  }
  results.assign(operands.begin(), operands.end());
  return success();
}

void stablehlo::printPairwiseOpType(OpAsmPrinter &printer, Operation *,
                                    TypeRange operands, TypeRange) {
  llvm::interleaveComma(operands, printer);
}

ParseResult stablehlo::parseVariadicOperandWithAttribute(OpAsmParser &parser,
                                                         Operands &operands) {
  while (true) {
    OpAsmParser::UnresolvedOperand operand;
    OptionalParseResult result = parser.parseOptionalOperand(operand);
    if (!result.has_value()) {
      return success();
    }
    if (failed(*result) || parser.parseComma()) {
      return failure();
    }
    operands.push_back(operand);
  }
}

void stablehlo::printVariadicOperandWithAttribute(OpAsmPrinter &printer,
                                                  Operation *,
                                                  OperandRange operands) {
  llvm::interleaveComma(operands, printer);
  if (!operands.empty()) {
    printer << ',';
  }
}

ParseResult stablehlo::parseSliceRanges(OpAsmParser &parser,
                                        DenseI64ArrayAttr &start,
                                        DenseI64ArrayAttr &limit,
                                        DenseI64ArrayAttr &strides) {
  SmallVector<int64_t> starts, limits, steps;
  auto parseRange = [&]() -> ParseResult {
    if (parser.parseInteger(starts.emplace_back()) || parser.parseColon() ||
        parser.parseInteger(limits.emplace_back())) {
      return failure();
    }
    steps.push_back(1);
    if (succeeded(parser.parseOptionalColon())) {
      return parser.parseInteger(steps.back());
    }
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseRange)) {
    return failure();
  }
  start = parser.getBuilder().getDenseI64ArrayAttr(starts);
  limit = parser.getBuilder().getDenseI64ArrayAttr(limits);
  strides = parser.getBuilder().getDenseI64ArrayAttr(steps);
  return success();
}

void stablehlo::printSliceRanges(OpAsmPrinter &printer, Operation *,
                                 DenseI64ArrayAttr start,
                                 DenseI64ArrayAttr limit,
                                 DenseI64ArrayAttr strides) {
  printer << '[';
  llvm::interleaveComma(
      llvm::zip(start.asArrayRef(), limit.asArrayRef(), strides.asArrayRef()),
      printer, [&](auto range) {
        auto [first, last, step] = range;
        printer << first << ':' << last;
        if (step != 1) {
          printer << ':' << step;
        }
      });
  printer << ']';
}

ParseResult stablehlo::parseExponentMantissa(OpAsmParser &parser,
                                             IntegerAttr &exponent,
                                             IntegerAttr &mantissa) {
  SMLoc loc = parser.getCurrentLocation();
  StringRef text;
  if (parser.parseKeyword(&text)) {
    return failure();
  }
  StringRef rest = text;
  int32_t exponentBits, mantissaBits;
  if (!rest.consume_front("e") || rest.consumeInteger(10, exponentBits) ||
      !rest.consume_front("m") || rest.consumeInteger(10, mantissaBits) ||
      !rest.empty()) {
    return parser.emitError(loc)
           << "expected a format like e5m10, but got '" << text << "'";
  }
  exponent = parser.getBuilder().getI32IntegerAttr(exponentBits);
  mantissa = parser.getBuilder().getI32IntegerAttr(mantissaBits);
  return success();
}

void stablehlo::printExponentMantissa(OpAsmPrinter &printer, Operation *,
                                      IntegerAttr exponent,
                                      IntegerAttr mantissa) {
  printer << 'e' << exponent.getInt() << 'm' << mantissa.getInt();
}

ParseResult stablehlo::parseComparisonType(OpAsmParser &parser,
                                           ComparisonTypeAttr &attr) {
  if (failed(parser.parseOptionalComma())) {
    return success();
  }
  return parseEnumKeyword(parser, attr);
}

void stablehlo::printComparisonType(OpAsmPrinter &printer, Operation *,
                                    ComparisonTypeAttr attr) {
  if (attr) {
    printer << ", " << stringifyEnum(attr.getValue());
  }
}

static ParseResult parsePrecisions(OpAsmParser &parser, ArrayAttr &config) {
  SmallVector<Attribute> precisions;
  auto parsePrecision = [&]() -> ParseResult {
    PrecisionAttr precision;
    if (parseEnumKeyword(parser, precision)) {
      return failure();
    }
    precisions.push_back(precision);
    return success();
  };
  if (parser.parseEqual() ||
      parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parsePrecision)) {
    return failure();
  }
  config = parser.getBuilder().getArrayAttr(precisions);
  return success();
}

ParseResult stablehlo::parsePrecisionConfig(OpAsmParser &parser,
                                            ArrayAttr &config) {
  if (failed(parser.parseOptionalComma())) {
    return success();
  }
  if (parser.parseKeyword("precision")) {
    return failure();
  }
  return parsePrecisions(parser, config);
}

void stablehlo::printPrecisionConfig(OpAsmPrinter &printer, Operation *,
                                     ArrayAttr config) {
  if (!config) {
    return;
  }
  printer << ", precision = [";
  llvm::interleaveComma(config, printer, [&](Attribute attr) {
    printer << stringifyEnum(cast<PrecisionAttr>(attr).getValue());
  });
  printer << ']';
}

static ParseResult parseDimsPair(OpAsmParser &parser, SmallVector<int64_t> &lhs,
                                 SmallVector<int64_t> &rhs) {
  if (parser.parseEqual()) {
    return failure();
  }
  FailureOr<SmallVector<int64_t>> left = parseDims(parser);
  if (failed(left) || parser.parseKeyword("x")) {
    return failure();
  }
  FailureOr<SmallVector<int64_t>> right = parseDims(parser);
  if (failed(right)) {
    return failure();
  }
  lhs = std::move(*left);
  rhs = std::move(*right);
  return success();
}

ParseResult stablehlo::parseDotParameters(OpAsmParser &parser,
                                          DotDimensionNumbersAttr &dims,
                                          ArrayAttr &precision,
                                          DotAlgorithmAttr &algorithm) {
  SmallVector<int64_t> lhsBatch, rhsBatch, lhsContract, rhsContract;
  if (succeeded(parser.parseOptionalKeyword("batching_dims"))) {
    if (parseDimsPair(parser, lhsBatch, rhsBatch) || parser.parseComma()) {
      return failure();
    }
  }
  if (parser.parseKeyword("contracting_dims") ||
      parseDimsPair(parser, lhsContract, rhsContract)) {
    return failure();
  }
  dims = DotDimensionNumbersAttr::get(parser.getContext(), lhsBatch, rhsBatch,
                                      lhsContract, rhsContract);
  bool isComma = succeeded(parser.parseOptionalComma());
  if (isComma && succeeded(parser.parseOptionalKeyword("precision"))) {
    if (parsePrecisions(parser, precision)) {
      return failure();
    }
    isComma = succeeded(parser.parseOptionalComma());
  }
  if (isComma) {
    if (parser.parseKeyword("algorithm") || parser.parseEqual()) {
      return failure();
    }
    algorithm = dyn_cast_or_null<DotAlgorithmAttr>(
        DotAlgorithmAttr::parse(parser, Type()));
    return success(static_cast<bool>(algorithm));
  }
  return success();
}

void stablehlo::printDotParameters(OpAsmPrinter &printer, Operation *op,
                                   DotDimensionNumbersAttr dims,
                                   ArrayAttr precision,
                                   DotAlgorithmAttr algorithm) {
  if (!dims.getLhsBatchingDimensions().empty() ||
      !dims.getRhsBatchingDimensions().empty()) {
    printer << "batching_dims = ";
    printDims(printer, dims.getLhsBatchingDimensions());
    printer << " x ";
    printDims(printer, dims.getRhsBatchingDimensions());
    printer << ", ";
  }
  printer << "contracting_dims = ";
  printDims(printer, dims.getLhsContractingDimensions());
  printer << " x ";
  printDims(printer, dims.getRhsContractingDimensions());
  printPrecisionConfig(printer, op, precision);
  if (algorithm) {
    printer << ", algorithm = ";
    printer.printStrippedAttrOrType(algorithm);
  }
}

ParseResult stablehlo::parseCustomCallTarget(OpAsmParser &parser,
                                             StringAttr &target) {
  return parser.parseSymbolName(target);
}

void stablehlo::printCustomCallTarget(OpAsmPrinter &printer, Operation *,
                                      StringAttr target) {
  printer.printSymbolName(target.getValue());
}
