//===- Chlo.cpp - the CHLO dialect ----------------------------------------===//

#include "stablehlo/dialect/ChloOps.h"

#include "DialectHooks.h"
#include "StructFormat.h"
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

OpFoldResult ConstantOp::fold(FoldAdaptor) { return getValue(); }

Attribute RaggedDotDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  SmallVector<int64_t> lhsBatching, rhsBatching, lhsContracting, rhsContracting,
      ragged, group;
  if (parser.parseLess() ||
      stablehlo::parseStruct(parser,
                             {{"lhs_batching_dimensions", &lhsBatching},
                              {"rhs_batching_dimensions", &rhsBatching},
                              {"lhs_contracting_dimensions", &lhsContracting},
                              {"rhs_contracting_dimensions", &rhsContracting},
                              {"lhs_ragged_dimensions", &ragged},
                              {"rhs_group_dimensions", &group}})) {
    return {};
  }
  return get(parser.getContext(), lhsBatching, rhsBatching, lhsContracting,
             rhsContracting, ragged, group);
}

void RaggedDotDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printer << '<';
  stablehlo::printStruct(
      printer, {{"lhs_batching_dimensions", getLhsBatchingDimensions()},
                {"rhs_batching_dimensions", getRhsBatchingDimensions()},
                {"lhs_contracting_dimensions", getLhsContractingDimensions()},
                {"rhs_contracting_dimensions", getRhsContractingDimensions()},
                {"lhs_ragged_dimensions", getLhsRaggedDimensions()},
                {"rhs_group_dimensions", getRhsGroupDimensions()}});
  printer << '>';
}
