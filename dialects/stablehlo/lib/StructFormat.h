//===- StructFormat.h - `<field = value, ...>` of attributes ----*- C++ -*-===//
//
// Fields stand in any order, and a comma may follow the last. One that is left
// out is empty or 0, and is not printed.
//
//===----------------------------------------------------------------------===//

#ifndef STABLEHLO_LIB_STRUCTFORMAT_H
#define STABLEHLO_LIB_STRUCTFORMAT_H

#include "mlir/IR/OpImplementation.h"
#include <variant>

namespace mlir::stablehlo {

/// Where a field is parsed to.
struct ParsedField {
  StringRef name;
  std::variant<SmallVector<int64_t> *, int64_t *> target;
};

struct PrintedField {
  StringRef name;
  std::variant<ArrayRef<int64_t>, int64_t> value;
};

/// What is behind `<`, and the `>`.
ParseResult parseStruct(AsmParser &parser, ArrayRef<ParsedField> fields);

/// The fields, without angle brackets.
void printStruct(AsmPrinter &printer, ArrayRef<PrintedField> fields);

} // namespace mlir::stablehlo

#endif // STABLEHLO_LIB_STRUCTFORMAT_H
