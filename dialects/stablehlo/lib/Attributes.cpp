//===- Attributes.cpp - attributes, enumerations and types ----------------===//

#include "DialectHooks.h"
#include "stablehlo/dialect/AssemblyFormat.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::stablehlo;

#include "stablehlo/dialect/StablehloEnums.cpp.inc"

#define GET_ATTRDEF_CLASSES
#include "stablehlo/dialect/StablehloAttrs.cpp.inc"

#define GET_TYPEDEF_CLASSES
#include "stablehlo/dialect/StablehloTypes.cpp.inc"

/// Sizes of which some are unknown: `16, ?`.
static FailureOr<SmallVector<int64_t>>
parseBounds(AsmParser &parser, AsmParser::Delimiter delimiter) {
  SmallVector<int64_t> bounds;
  auto parseBound = [&]() -> ParseResult {
    bounds.push_back(ShapedType::kDynamic);
    return succeeded(parser.parseOptionalQuestion())
               ? success()
               : parser.parseInteger(bounds.back());
  };
  if (parser.parseCommaSeparatedList(delimiter, parseBound)) {
    return failure();
  }
  return bounds;
}

void StablehloDialect::registerAttributes() {
  addAttributes<
#define GET_ATTRDEF_LIST
#include "stablehlo/dialect/StablehloAttrs.cpp.inc"
      >();
}

void StablehloDialect::registerTypes() {
  addTypes<
#define GET_TYPEDEF_LIST
#include "stablehlo/dialect/StablehloTypes.cpp.inc"
      >();
}

/// `<bounds = [16, ?]>`.
static Attribute parseTypeExtensions(AsmParser &parser) {
  FailureOr<SmallVector<int64_t>> bounds = failure();
  if (parser.parseLess() || parser.parseKeyword("bounds") ||
      parser.parseEqual() ||
      failed(bounds = parseBounds(parser, AsmParser::Delimiter::Square)) ||
      parser.parseGreater()) {
    return {};
  }
  return TypeExtensionsAttr::get(parser.getContext(), *bounds);
}

Attribute StablehloDialect::parseAttribute(DialectAsmParser &parser,
                                           Type type) const {
  StringRef mnemonic;
  Attribute attr;
  OptionalParseResult result =
      generatedAttributeParser(parser, &mnemonic, type, attr);
  if (result.has_value()) {
    return succeeded(*result) ? attr : Attribute();
  }
  return mnemonic == "type_extensions" ? parseTypeExtensions(parser)
                                       : keepText(parser, *this, type);
}

void StablehloDialect::printAttribute(Attribute attr,
                                      DialectAsmPrinter &printer) const {
  (void)generatedAttributePrinter(attr, printer);
}

Type StablehloDialect::parseType(DialectAsmParser &parser) const {
  StringRef mnemonic;
  Type type;
  OptionalParseResult result = generatedTypeParser(parser, &mnemonic, type);
  if (result.has_value()) {
    return succeeded(*result) ? type : Type();
  }
  return OpaqueType::get(StringAttr::get(getContext(), getNamespace()),
                         parser.getFullSymbolSpec());
}

void StablehloDialect::printType(Type type, DialectAsmPrinter &printer) const {
  (void)generatedTypePrinter(type, printer);
}

//===----------------------------------------------------------------------===//
// TypeExtensionsAttr
//===----------------------------------------------------------------------===//

Attribute TypeExtensionsAttr::parse(AsmParser &parser, Type) {
  auto bounds = parseBounds(parser, AsmParser::Delimiter::LessGreater);
  return failed(bounds) ? Attribute() : get(parser.getContext(), *bounds);
}

void TypeExtensionsAttr::print(AsmPrinter &printer) const {
  printer << '<';
  llvm::interleaveComma(getBounds(), printer, [&](int64_t bound) {
    if (ShapedType::isDynamic(bound)) {
      printer << '?';
    } else {
      printer << bound;
    }
  });
  printer << '>';
}

LogicalResult TypeExtensionsAttr::verifyEncoding(
    ArrayRef<int64_t> shape, Type,
    function_ref<InFlightDiagnostic()> emitError) const {
  if (getBounds().size() != shape.size()) {
    return emitError() << "bounds must number " << shape.size()
                       << ", one for each dimension, but got "
                       << getBounds().size();
  }
  for (auto [dim, pair] : llvm::enumerate(llvm::zip(shape, getBounds()))) {
    auto [size, bound] = pair;
    if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(bound)) {
      return emitError() << "dimension " << dim << " is of size " << size
                         << " and has a bound, " << bound
                         << "; only a dynamic one may";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// DotAlgorithmAttr
//===----------------------------------------------------------------------===//

/// Whether some hardware is known to multiply so.
static bool isKnownAlgorithm(Type lhs, Type rhs, Type accumulation,
                             int64_t numPrimitives, bool isImprecise) {
  bool areBytes = llvm::all_of(ArrayRef<Type>({lhs, rhs}), [](Type type) {
    return isa<Float8E3M4Type, Float8E4M3Type, Float8E4M3FNType, Float8E5M2Type,
               Float8E4M3FNUZType, Float8E4M3B11FNUZType, Float8E5M2FNUZType>(
        type);
  });
  if (areBytes) {
    return accumulation.isF32() && numPrimitives == 1;
  }
  if (isImprecise || lhs != rhs) {
    return false;
  }
  if (accumulation == lhs) {
    return isa<Float16Type, BFloat16Type, Float32Type, Float64Type>(lhs) &&
           numPrimitives == 1;
  }
  if (!accumulation.isF32()) {
    return false;
  }
  return (lhs.isF16() && numPrimitives == 1) ||
         (lhs.isBF16() && llvm::is_contained({1, 3, 6, 9}, numPrimitives)) ||
         (isa<FloatTF32Type>(lhs) && llvm::is_contained({1, 3}, numPrimitives));
}

LogicalResult
DotAlgorithmAttr::verify(function_ref<InFlightDiagnostic()> emitError, Type lhs,
                         Type rhs, Type accumulation, int64_t lhsComponents,
                         int64_t rhsComponents, int64_t numPrimitives,
                         bool isImprecise) {
  for (int64_t count : {lhsComponents, rhsComponents, numPrimitives}) {
    if (count < 1) {
      return emitError() << "components and primitive operations must number "
                            "at least 1, but got "
                         << count;
    }
  }
  // Operands of several components are described, and no hardware has them.
  if (lhsComponents != 1 || rhsComponents != 1 ||
      !isKnownAlgorithm(lhs, rhs, accumulation, numPrimitives, isImprecise)) {
    return emitError() << "no hardware is known to multiply " << lhsComponents
                       << " x " << lhs << " and " << rhsComponents << " x "
                       << rhs << " into " << accumulation << " in "
                       << numPrimitives << " operations"
                       << (isImprecise ? ", imprecisely" : "");
  }
  return success();
}

//===----------------------------------------------------------------------===//
// ResultAccuracyAttr: `<atol = 1.0e-5, rtol = 0.0, ulps = 2, mode = ...>`
//===----------------------------------------------------------------------===//

ResultAccuracyAttr ResultAccuracyAttr::get(MLIRContext *context,
                                           ResultAccuracyMode mode) {
  return get(context, APFloat(0.0), APFloat(0.0), 0,
             ResultAccuracyModeAttr::get(context, mode));
}

Attribute ResultAccuracyAttr::parse(AsmParser &parser, Type) {
  SMLoc loc = parser.getCurrentLocation();
  double absolute = 0, relative = 0;
  int64_t ulps = 0;
  ResultAccuracyModeAttr mode;
  auto parseTolerance = [&](StringRef name, auto parse) -> ParseResult {
    if (failed(parser.parseOptionalKeyword(name))) {
      return success();
    }
    return failure(parser.parseEqual() || parse() || parser.parseComma());
  };
  if (parser.parseLess() ||
      parseTolerance("atol", [&] { return parser.parseFloat(absolute); }) ||
      parseTolerance("rtol", [&] { return parser.parseFloat(relative); }) ||
      parseTolerance("ulps", [&] { return parser.parseInteger(ulps); }) ||
      parser.parseKeyword("mode") || parser.parseEqual() ||
      parser.parseAttribute(mode) || parser.parseGreater()) {
    return {};
  }
  return parser.getChecked<ResultAccuracyAttr>(loc, parser.getContext(),
                                               APFloat(absolute),
                                               APFloat(relative), ulps, mode);
}

void ResultAccuracyAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (!getAtol().isZero()) {
    printer << "atol = ";
    printer.printFloat(getAtol());
    printer << ", ";
  }
  if (!getRtol().isZero()) {
    printer << "rtol = ";
    printer.printFloat(getRtol());
    printer << ", ";
  }
  if (getUlps() != 0) {
    printer << "ulps = " << getUlps() << ", ";
  }
  printer << "mode = ";
  printer.printAttribute(getMode());
  printer << '>';
}

LogicalResult
ResultAccuracyAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                           APFloat absolute, APFloat relative, int64_t ulps,
                           ResultAccuracyModeAttr mode) {
  if (absolute.isNegative() || relative.isNegative() || ulps < 0) {
    return emitError() << "tolerances must not be negative";
  }
  bool isExact = absolute.isZero() && relative.isZero() && ulps == 0;
  if (!isExact && mode.getValue() != ResultAccuracyMode::TOLERANCE) {
    return emitError() << "tolerances other than 0 need the mode TOLERANCE, "
                          "but got "
                       << stringifyEnum(mode.getValue());
  }
  return success();
}
