//===- StructFormat.cpp - `<field = value, ...>` of attributes ------------===//

#include "StructFormat.h"

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

static ParseResult parseField(AsmParser &parser, const ParsedField &field) {
  if (parser.parseEqual()) {
    return failure();
  }
  if (auto *number = std::get_if<int64_t *>(&field.target)) {
    return parser.parseInteger(**number);
  }
  FailureOr<SmallVector<int64_t>> dims = parseDims(parser);
  if (failed(dims)) {
    return failure();
  }
  *std::get<SmallVector<int64_t> *>(field.target) = std::move(*dims);
  return success();
}

ParseResult stablehlo::parseStruct(AsmParser &parser,
                                   ArrayRef<ParsedField> fields) {
  llvm::SmallDenseSet<StringRef> seen;
  while (failed(parser.parseOptionalGreater())) {
    SMLoc loc = parser.getCurrentLocation();
    StringRef name;
    if (parser.parseKeyword(&name)) {
      return failure();
    }
    const ParsedField *field = llvm::find_if(
        fields, [&](const ParsedField &other) { return other.name == name; });
    if (field == fields.end()) {
      auto diagnostic = parser.emitError(loc)
                        << "'" << name << "' is no field, expected one of ";
      llvm::interleaveComma(fields, diagnostic, [&](const ParsedField &other) {
        diagnostic << other.name;
      });
      return diagnostic;
    }
    if (!seen.insert(field->name).second) {
      return parser.emitError(loc) << "field '" << name << "' appears twice";
    }
    if (parseField(parser, *field)) {
      return failure();
    }
    if (failed(parser.parseOptionalComma())) {
      return parser.parseGreater();
    }
  }
  return success();
}

void stablehlo::printStruct(AsmPrinter &printer,
                            ArrayRef<PrintedField> fields) {
  StringRef separator = "";
  for (const PrintedField &field : fields) {
    const auto *number = std::get_if<int64_t>(&field.value);
    const auto *dims = std::get_if<ArrayRef<int64_t>>(&field.value);
    if (number ? *number == 0 : dims->empty()) {
      continue;
    }
    printer << separator << field.name << " = ";
    separator = ", ";
    if (number) {
      printer << *number;
    } else {
      printDims(printer, *dims);
    }
  }
}
