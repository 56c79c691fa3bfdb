//===- AssemblyFormat.h - pieces of the pretty form -------------*- C++ -*-===//
//
// The custom<...> directives of the operations' assembly formats.
//
//===----------------------------------------------------------------------===//

#ifndef STABLEHLO_DIALECT_ASSEMBLY_FORMAT_H
#define STABLEHLO_DIALECT_ASSEMBLY_FORMAT_H

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::stablehlo {

using Operands = SmallVectorImpl<OpAsmParser::UnresolvedOperand>;

/// `[0, 1]`, the list of dimensions inside attributes and formats.
FailureOr<SmallVector<int64_t>> parseDims(AsmParser &parser);
void printDims(AsmPrinter &printer, ArrayRef<int64_t> dims);

/// One type for all operands and the result, or a function type.
ParseResult parseOneOrFunctionType(OpAsmParser &parser,
                                   ArrayRef<Type *> operands, Type &result);
void printOneOrFunctionType(OpAsmPrinter &printer, ArrayRef<Type> operands,
                            Type result);

inline ParseResult parseSameOperandsAndResultType(OpAsmParser &p, Type &a,
                                                  Type &r) {
  return parseOneOrFunctionType(p, {&a}, r);
}
inline ParseResult parseSameOperandsAndResultType(OpAsmParser &p, Type &a,
                                                  Type &b, Type &r) {
  return parseOneOrFunctionType(p, {&a, &b}, r);
}
inline ParseResult parseSameOperandsAndResultType(OpAsmParser &p, Type &a,
                                                  Type &b, Type &c, Type &r) {
  return parseOneOrFunctionType(p, {&a, &b, &c}, r);
}
inline void printSameOperandsAndResultType(OpAsmPrinter &p, Operation *, Type a,
                                           Type r) {
  printOneOrFunctionType(p, {a}, r);
}
inline void printSameOperandsAndResultType(OpAsmPrinter &p, Operation *, Type a,
                                           Type b, Type r) {
  printOneOrFunctionType(p, {a, b}, r);
}
inline void printSameOperandsAndResultType(OpAsmPrinter &p, Operation *, Type a,
                                           Type b, Type c, Type r) {
  printOneOrFunctionType(p, {a, b, c}, r);
}
ParseResult parseVariadicSameOperandsAndResultType(OpAsmParser &parser,
                                                   Operands &operands,
                                                   SmallVectorImpl<Type> &types,
                                                   Type &result);
void printVariadicSameOperandsAndResultType(OpAsmPrinter &printer,
                                            Operation *op,
                                            OperandRange operands,
                                            TypeRange types, Type result);

/// The type of the tuple, which says those of its values.
ParseResult parseTupleOpType(OpAsmParser &parser,
                             SmallVectorImpl<Type> &operands, Type &result);
void printTupleOpType(OpAsmPrinter &printer, Operation *op, TypeRange operands,
                      Type result);

/// The result type alone when both operands have its real element type.
ParseResult parseComplexOpType(OpAsmParser &parser, Type &lhs, Type &rhs,
                               Type &result);
void printComplexOpType(OpAsmPrinter &printer, Operation *op, Type lhs,
                        Type rhs, Type result);

/// `predicate, result` when both branches have the result's type.
ParseResult parseSelectOpType(OpAsmParser &parser, Type &pred, Type &onTrue,
                              Type &onFalse, Type &result);
void printSelectOpType(OpAsmPrinter &printer, Operation *op, Type pred,
                       Type onTrue, Type onFalse, Type result);

/// One type for each pair of operand and result.
ParseResult parsePairwiseOpType(OpAsmParser &parser,
                                SmallVectorImpl<Type> &operands,
                                SmallVectorImpl<Type> &results);
void printPairwiseOpType(OpAsmPrinter &printer, Operation *op,
                         TypeRange operands, TypeRange results);

/// Operands, each followed by a comma, before a keyword.
ParseResult parseVariadicOperandWithAttribute(OpAsmParser &parser,
                                              Operands &operands);
void printVariadicOperandWithAttribute(OpAsmPrinter &printer, Operation *op,
                                       OperandRange operands);

/// `[0:4, 0:16:2]`: start, limit and stride (1 when absent) of each dimension.
ParseResult parseSliceRanges(OpAsmParser &parser, DenseI64ArrayAttr &start,
                             DenseI64ArrayAttr &limit,
                             DenseI64ArrayAttr &strides);
void printSliceRanges(OpAsmPrinter &printer, Operation *op,
                      DenseI64ArrayAttr start, DenseI64ArrayAttr limit,
                      DenseI64ArrayAttr strides);

/// `e5m10`.
ParseResult parseExponentMantissa(OpAsmParser &parser, IntegerAttr &exponent,
                                  IntegerAttr &mantissa);
void printExponentMantissa(OpAsmPrinter &printer, Operation *op,
                           IntegerAttr exponent, IntegerAttr mantissa);

/// The bare keyword of an enumeration.
template <typename EnumAttrT>
ParseResult parseEnumKeyword(OpAsmParser &parser, EnumAttrT &attr) {
  using EnumT = decltype(attr.getValue());
  SMLoc loc = parser.getCurrentLocation();
  StringRef keyword;
  if (parser.parseKeyword(&keyword)) {
    return failure();
  }
  std::optional<EnumT> value = symbolizeEnum<EnumT>(keyword);
  if (!value) {
    return parser.emitError(loc) << "'" << keyword << "' is no value of '"
                                 << EnumAttrT::getMnemonic() << "'";
  }
  attr = EnumAttrT::get(parser.getContext(), *value);
  return success();
}
template <typename EnumAttrT>
void printEnumKeyword(OpAsmPrinter &printer, Operation *, EnumAttrT attr) {
  printer << stringifyEnum(attr.getValue());
}

/// `, FLOAT`, or nothing.
ParseResult parseComparisonType(OpAsmParser &parser, ComparisonTypeAttr &attr);
void printComparisonType(OpAsmPrinter &printer, Operation *op,
                         ComparisonTypeAttr attr);

/// `, precision = [DEFAULT, DEFAULT]`, or nothing.
ParseResult parsePrecisionConfig(OpAsmParser &parser, ArrayAttr &config);
void printPrecisionConfig(OpAsmPrinter &printer, Operation *op,
                          ArrayAttr config);

/// Dimensions, precision and algorithm of a `dot_general`.
ParseResult parseDotParameters(OpAsmParser &parser,
                               DotDimensionNumbersAttr &dims,
                               ArrayAttr &precision,
                               DotAlgorithmAttr &algorithm);
void printDotParameters(OpAsmPrinter &printer, Operation *op,
                        DotDimensionNumbersAttr dims, ArrayAttr precision,
                        DotAlgorithmAttr algorithm);

/// `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`.
ParseResult parseConvolutionDimensions(AsmParser &parser,
                                       ConvDimensionNumbersAttr &dims);
void printConvolutionDimensions(AsmPrinter &printer,
                                ConvDimensionNumbersAttr dims);
inline void printConvolutionDimensions(OpAsmPrinter &printer, Operation *,
                                       ConvDimensionNumbersAttr dims) {
  printConvolutionDimensions(printer, dims);
}

/// `stride = [1, 1], pad = [[1, 1], [1, 1]], lhs_dilate = ..., rhs_dilate =
/// ..., reverse = ...`.
ParseResult parseWindowAttributes(OpAsmParser &parser,
                                  DenseI64ArrayAttr &strides,
                                  DenseIntElementsAttr &padding,
                                  DenseI64ArrayAttr &lhsDilation,
                                  DenseI64ArrayAttr &rhsDilation,
                                  DenseBoolArrayAttr &reversal);
void printWindowAttributes(OpAsmPrinter &printer, Operation *op,
                           DenseI64ArrayAttr strides,
                           DenseIntElementsAttr padding,
                           DenseI64ArrayAttr lhsDilation,
                           DenseI64ArrayAttr rhsDilation,
                           DenseBoolArrayAttr reversal);

/// `@target` or `@"a target"`.
ParseResult parseCustomCallTarget(OpAsmParser &parser, StringAttr &target);
void printCustomCallTarget(OpAsmPrinter &printer, Operation *op,
                           StringAttr target);

} // namespace mlir::stablehlo

#endif // STABLEHLO_DIALECT_ASSEMBLY_FORMAT_H
