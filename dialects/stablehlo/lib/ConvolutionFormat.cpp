//===- ConvolutionFormat.cpp - pretty form of convolutions ----------------===//

#include "StructFormat.h"
#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

namespace {
/// One of the three dimension lists: two named dimensions and the spatial ones.
struct DimensionList {
  int64_t first = -1;
  int64_t second = -1;
  SmallVector<int64_t> spatial;
};
} // namespace

/// Parses `[b, 0, 1, f]` with the letters `first` and `second`.
static ParseResult parseLabels(AsmParser &parser, StringRef first,
                               StringRef second, DimensionList &list) {
  SMLoc loc = parser.getCurrentLocation();
  int64_t position = 0;
  SmallVector<std::pair<int64_t, int64_t>> spatial;
  auto parseEntry = [&]() -> ParseResult {
    SMLoc entryLoc = parser.getCurrentLocation();
    int64_t number;
    OptionalParseResult result = parser.parseOptionalInteger(number);
    if (result.has_value()) {
      if (failed(*result)) {
        return failure();
      }
      spatial.push_back({number, position++});
      return success();
    }
    StringRef keyword;
    if (parser.parseKeyword(&keyword)) {
      return failure();
    }
    int64_t *target = keyword == first    ? &list.first
                      : keyword == second ? &list.second
                                          : nullptr;
    if (!target || *target >= 0) {
      return parser.emitError(entryLoc)
             << "expected '" << first << "' and '" << second
             << "' once each, but got '" << keyword << "'";
    }
    *target = position++;
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                     parseEntry)) {
    return failure();
  }
  if (list.first < 0 || list.second < 0) {
    return parser.emitError(loc)
           << "expected '" << first << "' and '" << second << "' once each";
  }
  list.spatial.assign(spatial.size(), -1);
  for (auto [number, dim] : spatial) {
    if (number < 0 || number >= static_cast<int64_t>(spatial.size()) ||
        list.spatial[number] >= 0) {
      return parser.emitError(loc)
             << "spatial dimensions must be 0 to " << spatial.size() - 1
             << " once each, but got " << number;
    }
    list.spatial[number] = dim;
  }
  return success();
}

static void printLabels(AsmPrinter &printer, char firstName, int64_t first,
                        char secondName, int64_t second,
                        ArrayRef<int64_t> spatial) {
  int64_t rank = static_cast<int64_t>(spatial.size()) + 2;
  printer << '[';
  for (int64_t dim = 0; dim < rank; ++dim) {
    printer << (dim ? ", " : "");
    const int64_t *number = llvm::find(spatial, dim);
    if (dim == first) {
      printer << firstName;
    } else if (dim == second) {
      printer << secondName;
    } else {
      printer << (number - spatial.begin());
    }
  }
  printer << ']';
}

ParseResult
stablehlo::parseConvolutionDimensions(AsmParser &parser,
                                      ConvDimensionNumbersAttr &dims) {
  DimensionList input, kernel, output;
  if (parseLabels(parser, "b", "f", input) || parser.parseKeyword("x") ||
      parseLabels(parser, "i", "o", kernel) || parser.parseArrow() ||
      parseLabels(parser, "b", "f", output)) {
    return failure();
  }
  dims = ConvDimensionNumbersAttr::get(
      parser.getContext(), input.first, input.second, input.spatial,
      kernel.first, kernel.second, kernel.spatial, output.first, output.second,
      output.spatial);
  return success();
}

void stablehlo::printConvolutionDimensions(AsmPrinter &printer,
                                           ConvDimensionNumbersAttr dims) {
  printLabels(printer, 'b', dims.getInputBatchDimension(), 'f',
              dims.getInputFeatureDimension(),
              dims.getInputSpatialDimensions());
  printer << 'x';
  printLabels(printer, 'i', dims.getKernelInputFeatureDimension(), 'o',
              dims.getKernelOutputFeatureDimension(),
              dims.getKernelSpatialDimensions());
  printer << "->";
  printLabels(printer, 'b', dims.getOutputBatchDimension(), 'f',
              dims.getOutputFeatureDimension(),
              dims.getOutputSpatialDimensions());
}

/// Every dimension has one label.
static bool isLabelled(int64_t first, int64_t second,
                       ArrayRef<int64_t> spatial) {
  auto dims = llvm::to_vector(spatial);
  dims.append({first, second});
  llvm::sort(dims);
  return llvm::equal(dims, llvm::seq<int64_t>(0, dims.size()));
}

Attribute ConvDimensionNumbersAttr::parse(AsmParser &parser, Type) {
  if (parser.parseLess()) {
    return {};
  }
  if (failed(parser.parseOptionalKeyword("raw"))) {
    ConvDimensionNumbersAttr attr;
    if (parseConvolutionDimensions(parser, attr) || parser.parseGreater()) {
      return {};
    }
    return attr;
  }
  int64_t numbers[6] = {};
  SmallVector<int64_t> input, kernel, output;
  if (parseStruct(parser, {{"input_batch_dimension", &numbers[0]},
                           {"input_feature_dimension", &numbers[1]},
                           {"input_spatial_dimensions", &input},
                           {"kernel_input_feature_dimension", &numbers[2]},
                           {"kernel_output_feature_dimension", &numbers[3]},
                           {"kernel_spatial_dimensions", &kernel},
                           {"output_batch_dimension", &numbers[4]},
                           {"output_feature_dimension", &numbers[5]},
                           {"output_spatial_dimensions", &output}})) {
    return {};
  }
  return get(parser.getContext(), numbers[0], numbers[1], input, numbers[2],
             numbers[3], kernel, numbers[4], numbers[5], output);
}

void ConvDimensionNumbersAttr::print(AsmPrinter &printer) const {
  printer << '<';
  if (isLabelled(getInputBatchDimension(), getInputFeatureDimension(),
                 getInputSpatialDimensions()) &&
      isLabelled(getKernelInputFeatureDimension(),
                 getKernelOutputFeatureDimension(),
                 getKernelSpatialDimensions()) &&
      isLabelled(getOutputBatchDimension(), getOutputFeatureDimension(),
                 getOutputSpatialDimensions())) {
    printConvolutionDimensions(printer, *this);
    printer << '>';
    return;
  }
  printer << "raw ";
  printStruct(
      printer,
      {{"input_batch_dimension", getInputBatchDimension()},
       {"input_feature_dimension", getInputFeatureDimension()},
       {"input_spatial_dimensions", getInputSpatialDimensions()},
       {"kernel_input_feature_dimension", getKernelInputFeatureDimension()},
       {"kernel_output_feature_dimension", getKernelOutputFeatureDimension()},
       {"kernel_spatial_dimensions", getKernelSpatialDimensions()},
       {"output_batch_dimension", getOutputBatchDimension()},
       {"output_feature_dimension", getOutputFeatureDimension()},
       {"output_spatial_dimensions", getOutputSpatialDimensions()}});
  printer << '>';
}

/// Parses `[[1, 1], [0, 2]]` to a tensor of shape [n, 2].
static ParseResult parsePadding(OpAsmParser &parser,
                                DenseIntElementsAttr &padding) {
  SmallVector<int64_t> values;
  SMLoc loc = parser.getCurrentLocation();
  auto parsePair = [&]() -> ParseResult {
    FailureOr<SmallVector<int64_t>> pair = parseDims(parser);
    if (failed(pair)) {
      return failure();
    }
    if (pair->size() != 2) {
      return parser.emitError(loc)
             << "padding needs 2 values for each dimension, but got "
             << pair->size();
    }
    values.append(*pair);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parsePair)) {
    return failure();
  }
  auto type =
      RankedTensorType::get({static_cast<int64_t>(values.size() / 2), 2},
                            parser.getBuilder().getI64Type());
  padding = DenseIntElementsAttr::get(type, values);
  return success();
}

/// Parses `[1, 2]`.
static ParseResult parseNumbers(OpAsmParser &parser,
                                DenseI64ArrayAttr &numbers) {
  FailureOr<SmallVector<int64_t>> values = parseDims(parser);
  if (failed(values)) {
    return failure();
  }
  numbers = parser.getBuilder().getDenseI64ArrayAttr(*values);
  return success();
}

/// Parses `[true, false]` or `[1, 0]`.
static ParseResult parseFlags(OpAsmParser &parser, DenseBoolArrayAttr &flags) {
  SmallVector<bool> values;
  auto parseFlag = [&]() -> ParseResult {
    if (succeeded(parser.parseOptionalKeyword("true"))) {
      values.push_back(true);
      return success();
    }
    if (succeeded(parser.parseOptionalKeyword("false"))) {
      values.push_back(false);
      return success();
    }
    int64_t number;
    if (parser.parseInteger(number)) {
      return failure();
    }
    values.push_back(number != 0);
    return success();
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, parseFlag)) {
    return failure();
  }
  flags = parser.getBuilder().getDenseBoolArrayAttr(values);
  return success();
}

ParseResult stablehlo::parseWindowAttributes(OpAsmParser &parser,
                                             DenseI64ArrayAttr &strides,
                                             DenseIntElementsAttr &padding,
                                             DenseI64ArrayAttr &lhsDilation,
                                             DenseI64ArrayAttr &rhsDilation,
                                             DenseBoolArrayAttr &reversal) {
  StringRef keyword;
  SMLoc loc = parser.getCurrentLocation();
  while (succeeded(parser.parseOptionalKeyword(&keyword))) {
    bool isRepeated = (keyword == "stride" && strides) ||
                      (keyword == "pad" && padding) ||
                      (keyword == "lhs_dilate" && lhsDilation) ||
                      (keyword == "rhs_dilate" && rhsDilation) ||
                      (keyword == "reverse" && reversal);
    if (isRepeated) {
      return parser.emitError(loc)
             << "window attribute '" << keyword << "' appears twice";
    }
    if (parser.parseEqual()) {
      return failure();
    }
    ParseResult result = success();
    if (keyword == "stride") {
      result = parseNumbers(parser, strides);
    } else if (keyword == "pad") {
      result = parsePadding(parser, padding);
    } else if (keyword == "lhs_dilate") {
      result = parseNumbers(parser, lhsDilation);
    } else if (keyword == "rhs_dilate") {
      result = parseNumbers(parser, rhsDilation);
    } else if (keyword == "reverse") {
      result = parseFlags(parser, reversal);
    } else {
      result = parser.emitError(loc)
               << "unknown window attribute '" << keyword << "'";
    }
    if (result) {
      return failure();
    }
    if (failed(parser.parseOptionalComma())) {
      break;
    }
    loc = parser.getCurrentLocation();
  }
  return success();
}

void stablehlo::printWindowAttributes(OpAsmPrinter &printer, Operation *,
                                      DenseI64ArrayAttr strides,
                                      DenseIntElementsAttr padding,
                                      DenseI64ArrayAttr lhsDilation,
                                      DenseI64ArrayAttr rhsDilation,
                                      DenseBoolArrayAttr reversal) {
  StringRef separator = "";
  auto begin = [&](StringRef name) {
    printer << separator << name << " = ";
    separator = ", ";
  };
  auto printArray = [&](StringRef name, DenseI64ArrayAttr attr) {
    if (attr) {
      begin(name);
      printDims(printer, attr.asArrayRef());
    }
  };
  printArray("stride", strides);
  if (padding) {
    begin("pad");
    SmallVector<int64_t> values(padding.getValues<int64_t>());
    printer << '[';
    for (size_t i = 0; i + 1 < values.size(); i += 2) {
      printer << (i ? ", " : "");
      printDims(printer, ArrayRef(values).slice(i, 2));
    }
    printer << ']';
  }
  printArray("lhs_dilate", lhsDilation);
  printArray("rhs_dilate", rhsDilation);
  if (reversal) {
    begin("reverse");
    printer << '[';
    llvm::interleaveComma(reversal.asArrayRef(), printer, [&](bool flag) {
      printer << (flag ? "true" : "false");
    });
    printer << ']';
  }
}
