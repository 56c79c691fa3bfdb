//===- RuleNotation.cpp - Rules and strategies as text --------------------===//
//
//   #alpa.rule<([i, k], [k, j]) -> ([i, j]) {k=sum}>
//   #alpa.strategy<a=[0], linear(0)=[1]>
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Alpa.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace mlir::alpa;

static constexpr unsigned kNumLetters = 26;
/// More than the dimensions of any operator are made of.
static constexpr unsigned kMaxFactors = 1 << 20;

std::string mlir::alpa::getFactorName(unsigned factor) {
  return factor < kNumLetters ? std::string(1, static_cast<char>('a' + factor))
                              : "f" + std::to_string(factor);
}

std::optional<unsigned> mlir::alpa::findFactor(StringRef name) {
  if (name.size() == 1 && name.front() >= 'a' && name.front() <= 'z') {
    return name.front() - 'a';
  }
  unsigned factor = 0;
  bool isNumbered = name.consume_front("f") && !name.getAsInteger(10, factor) &&
                    factor >= kNumLetters && factor < kMaxFactors;
  return isNumbered ? std::optional(factor) : std::nullopt;
}

//===----------------------------------------------------------------------===//
// Kinds
//===----------------------------------------------------------------------===//

namespace {
struct KindName {
  StringLiteral name;
  FactorKind kind;
  ReductionKind reduction;
  bool isWindowed = false;
};
} // namespace

static constexpr KindName kKindNames[] = {
    {"replicated", FactorKind::Replicated, ReductionKind::Sum},
    {"sum", FactorKind::Reduction, ReductionKind::Sum},
    {"product", FactorKind::Reduction, ReductionKind::Product},
    {"max", FactorKind::Reduction, ReductionKind::Max},
    {"min", FactorKind::Reduction, ReductionKind::Min},
    {"and", FactorKind::Reduction, ReductionKind::And},
    {"or", FactorKind::Reduction, ReductionKind::Or},
    {"ordered", FactorKind::Ordered, ReductionKind::Sum},
    {"sorted", FactorKind::Sorted, ReductionKind::Sum},
    {"windowed", FactorKind::Parallel, ReductionKind::Sum, true},
    {"windowed_sum", FactorKind::Reduction, ReductionKind::Sum, true}};

static StringRef getKindName(const Factor &factor) {
  const auto *found = llvm::find_if(kKindNames, [&](const KindName &each) {
    return each.kind == factor.kind && each.isWindowed == factor.isWindowed &&
           (factor.kind != FactorKind::Reduction ||
            each.reduction == factor.reduction);
  });
  return found->name;
}

//===----------------------------------------------------------------------===//
// Printing of rules
//===----------------------------------------------------------------------===//

static void printTensors(AsmPrinter &os, ArrayRef<TensorFactors> tensors) {
  os << '(';
  llvm::interleaveComma(tensors, os, [&](const TensorFactors &tensor) {
    os << '[';
    llvm::interleaveComma(tensor, os, [&](const DimFactors &factors) {
      if (factors.empty()) {
        os << '1';
        return;
      }
      os << (factors.size() > 1 ? "(" : "");
      llvm::interleave(
          factors, os, [&](unsigned factor) { os << getFactorName(factor); },
          " ");
      os << (factors.size() > 1 ? ")" : "");
    });
    os << ']';
  });
  os << ')';
}

static void printFactor(AsmPrinter &os, unsigned index, const Factor &factor) {
  bool hasSize = factor.size != kUnknownSize;
  os << getFactorName(index);
  if (hasSize) {
    os << '=' << factor.size;
  }
  if (factor.kind != FactorKind::Parallel || factor.isWindowed) {
    os << (hasSize ? ":" : "=") << getKindName(factor);
  }
}

static void printNumbers(AsmPrinter &os, StringRef title,
                         ArrayRef<unsigned> numbers) {
  os << ' ' << title << '(';
  llvm::interleaveComma(numbers, os);
  os << ')';
}

/// Counts of operations are whole numbers as long as they are exact.
static constexpr double kLastExactInteger = 9007199254740992.0;

void RuleAttr::print(AsmPrinter &os) const {
  const ShardingRule &rule = getRule();
  os << '<';
  printTensors(os, rule.operands);
  os << " -> ";
  printTensors(os, rule.results);
  os << " {";
  llvm::interleaveComma(llvm::enumerate(rule.factors), os, [&](auto entry) {
    printFactor(os, entry.index(), entry.value());
  });
  os << '}';
  for (auto [index, set] : llvm::enumerate(rule.linearOperands)) {
    printNumbers(os, rule.isAlgebraic(index) ? "algebraic" : "linear", set);
  }
  auto printSome = [&](StringRef title, ArrayRef<unsigned> numbers) {
    if (!numbers.empty()) {
      printNumbers(os, title, numbers);
    }
  };
  printSome("accumulators", rule.accumulators);
  printSome("untouched_operands", rule.untouchedOperands);
  printSome("untouched_results", rule.untouchedResults);
  if (rule.flops != 0) {
    os << " flops=";
    if (rule.flops < kLastExactInteger &&
        rule.flops == static_cast<double>(static_cast<int64_t>(rule.flops))) {
      os << static_cast<int64_t>(rule.flops);
    } else {
      os.printFloat(APFloat(rule.flops));
    }
  }
  os << '>';
}

//===----------------------------------------------------------------------===//
// Parsing of rules
//===----------------------------------------------------------------------===//

namespace {

/// Factors have names in the text, which the rule does not keep.
class RuleParser {
public:
  explicit RuleParser(AsmParser &parser) : parser(parser) {}

  ParseResult parse(ShardingRule &rule) {
    NamedTensors operands, results;
    if (parser.parseLess() || parseTensors(operands) || parser.parseArrow() ||
        parseTensors(results) ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::OptionalBraces,
                                       [&] { return parseFactor(); })) {
      return failure();
    }
    rule.operands = resolve(operands);
    rule.results = resolve(results);
    rule.factors.append(llvm::make_second_range(factors).begin(),
                        llvm::make_second_range(factors).end());
    while (failed(parser.parseOptionalGreater())) {
      if (parseClause(rule)) {
        return failure();
      }
    }
    return success();
  }

private:
  using NamedDim = SmallVector<StringRef, 1>;
  using NamedTensors = SmallVector<SmallVector<NamedDim>>;

  ParseResult parseTensors(NamedTensors &tensors) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
      tensors.emplace_back();
      return parser.parseCommaSeparatedList(AsmParser::Delimiter::Square, [&] {
        return parseDim(tensors.back().emplace_back());
      });
    });
  }

  /// `a`, `(a b)` or `1`.
  ParseResult parseDim(NamedDim &dim) {
    SMLoc loc = parser.getCurrentLocation();
    int64_t one = 1;
    OptionalParseResult isOne = parser.parseOptionalInteger(one);
    if (isOne.has_value()) {
      return failed(*isOne) || one != 1
                 ? parser.emitError(loc) << "expected the name of a factor or 1"
                 : ParseResult(success());
    }
    if (failed(parser.parseOptionalLParen())) {
      return parser.parseKeyword(&dim.emplace_back());
    }
    while (failed(parser.parseOptionalRParen())) {
      if (parser.parseKeyword(&dim.emplace_back())) {
        return failure();
      }
    }
    return success();
  }

  /// `a`, `a=8`, `a=sum` or `a=8:sum`.
  ParseResult parseFactor() {
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name)) {
      return failure();
    }
    auto [entry, isNew] =
        factors.insert({name, Factor{kUnknownSize, FactorKind::Parallel}});
    if (!isNew) {
      return parser.emitError(loc) << "factor '" << name << "' is there twice";
    }
    if (failed(parser.parseOptionalEqual())) {
      return success();
    }
    OptionalParseResult size = parser.parseOptionalInteger(entry->second.size);
    if (!size.has_value()) {
      return parseKind(entry->second);
    }
    if (failed(*size) || entry->second.size < 0) {
      return parser.emitError(loc)
             << "factor '" << name << "' has size " << entry->second.size;
    }
    return succeeded(parser.parseOptionalColon()) ? parseKind(entry->second)
                                                  : ParseResult(success());
  }

  ParseResult parseKind(Factor &factor) {
    StringRef name;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&name)) {
      return failure();
    }
    const auto *found = llvm::find_if(
        kKindNames, [&](const KindName &each) { return each.name == name; });
    if (found == std::end(kKindNames)) {
      InFlightDiagnostic error = parser.emitError(loc);
      error << "'" << name << "' is no kind of a factor, known are ";
      llvm::interleaveComma(kKindNames, error,
                            [&](const KindName &each) { error << each.name; });
      return error;
    }
    factor.kind = found->kind;
    factor.reduction = found->reduction;
    factor.isWindowed = found->isWindowed;
    return success();
  }

  SmallVector<TensorFactors> resolve(const NamedTensors &named) {
    return llvm::map_to_vector(named, [&](const auto &dims) {
      TensorFactors tensor;
      for (const NamedDim &dim : dims) {
        tensor.emplace_back();
        for (StringRef name : dim) {
          auto [entry, isNew] = factors.insert(
              {name, Factor{kUnknownSize, FactorKind::Parallel}});
          tensor.back().push_back(entry - factors.begin());
        }
      }
      return tensor;
    });
  }

  template <typename Numbers> ParseResult parseNumbers(Numbers &numbers) {
    return parser.parseCommaSeparatedList(AsmParser::Delimiter::Paren, [&] {
      return parser.parseInteger(numbers.emplace_back());
    });
  }

  ParseResult parseClause(ShardingRule &rule) {
    StringRef title;
    SMLoc loc = parser.getCurrentLocation();
    if (parser.parseKeyword(&title)) {
      return failure();
    }
    if (title == "linear") {
      return parseNumbers(rule.linearOperands.emplace_back());
    }
    if (title == "algebraic") {
      rule.algebraicSets.push_back(rule.linearOperands.size());
      return parseNumbers(rule.linearOperands.emplace_back());
    }
    if (title == "accumulators") {
      return parseNumbers(rule.accumulators);
    }
    if (title == "untouched_operands") {
      return parseNumbers(rule.untouchedOperands);
    }
    if (title == "untouched_results") {
      return parseNumbers(rule.untouchedResults);
    }
    if (title == "flops") {
      return parseFlops(rule.flops);
    }
    return parser.emitError(loc)
           << "'" << title
           << "' is none of linear, algebraic, accumulators, "
              "untouched_operands, untouched_results and flops";
  }

  ParseResult parseFlops(double &flops) {
    int64_t whole = 0;
    if (parser.parseEqual()) {
      return failure();
    }
    OptionalParseResult isWhole = parser.parseOptionalInteger(whole);
    if (!isWhole.has_value()) {
      return parser.parseFloat(flops);
    }
    flops = static_cast<double>(whole);
    return *isWhole;
  }

  AsmParser &parser;
  llvm::MapVector<StringRef, Factor> factors;
};

} // namespace

Attribute RuleAttr::parse(AsmParser &parser, Type) {
  ShardingRule rule;
  if (RuleParser(parser).parse(rule)) {
    return {};
  }
  return parser.getChecked<RuleAttr>(parser.getContext(), rule);
}

LogicalResult RuleAttr::verify(function_ref<InFlightDiagnostic()> emitError,
                               ShardingRule rule) {
  std::string fault = rule.findFault();
  return fault.empty()
             ? success()
             : LogicalResult(emitError() << "sharding rule " << fault);
}

//===----------------------------------------------------------------------===//
// Strategies
//===----------------------------------------------------------------------===//

StrategyAttr StrategyAttr::getOf(MLIRContext *context, ArrayRef<int> row) {
  // Trailing axes that split nothing are dropped: equal strategies are equal.
  while (!row.empty() && row.back() == kNoFactor) {
    row = row.drop_back();
  }
  return StrategyAttr::get(context, row);
}

FactorRow StrategyAttr::getRow(unsigned numAxes) const {
  FactorRow row(getAxes());
  row.resize(std::max<size_t>(numAxes, row.size()), kNoFactor);
  return row;
}

void StrategyAttr::print(AsmPrinter &os) const {
  llvm::MapVector<int, SmallVector<unsigned, 2>> axesOf;
  for (auto [axis, entry] : llvm::enumerate(getAxes())) {
    if (entry != kNoFactor) {
      axesOf[entry].push_back(axis);
    }
  }
  os << '<';
  llvm::interleaveComma(axesOf, os, [&](const auto &entry) {
    if (entry.first <= kLinearSet) {
      os << "linear(" << kLinearSet - entry.first << ')';
    } else {
      os << getFactorName(entry.first);
    }
    os << "=[";
    llvm::interleaveComma(entry.second, os);
    os << ']';
  });
  os << '>';
}

/// `a`, or `linear(0)`.
static ParseResult parseSplit(AsmParser &parser, int &entry) {
  StringRef name;
  SMLoc loc = parser.getCurrentLocation();
  if (parser.parseKeyword(&name)) {
    return failure();
  }
  if (name == "linear") {
    int set = 0;
    if (parser.parseLParen() || parser.parseInteger(set) ||
        parser.parseRParen()) {
      return failure();
    }
    if (set < 0) {
      return parser.emitError(loc)
             << "sets of operands count from 0, not " << set;
    }
    entry = kLinearSet - set;
    return success();
  }
  std::optional<unsigned> factor = findFactor(name);
  if (!factor) {
    return parser.emitError(loc)
           << "'" << name << "' is no factor: they are a to z, f26, f27, ...";
  }
  entry = static_cast<int>(*factor);
  return success();
}

Attribute StrategyAttr::parse(AsmParser &parser, Type) {
  constexpr int64_t maxAxes = 8;
  FactorRow row;
  auto parseAxis = [&](int entry, int64_t &last) -> ParseResult {
    SMLoc loc = parser.getCurrentLocation();
    int64_t axis = 0;
    if (parser.parseInteger(axis)) {
      return failure();
    }
    // C1, C2
    if (axis <= last || axis >= maxAxes) {
      return parser.emitError(loc)
             << "mesh axes ascend and are below " << maxAxes << ", axis "
             << axis << " does not";
    }
    last = axis;
    row.resize(std::max<size_t>(row.size(), axis + 1), kNoFactor);
    if (row[axis] != kNoFactor) {
      return parser.emitError(loc) << "mesh axis " << axis << " is used twice";
    }
    row[axis] = entry;
    return success();
  };
  auto parseEntry = [&]() -> ParseResult {
    int entry = kNoFactor;
    int64_t last = -1;
    return failure(
        parseSplit(parser, entry) || parser.parseEqual() ||
        parser.parseCommaSeparatedList(AsmParser::Delimiter::Square,
                                       [&] { return parseAxis(entry, last); }));
  };
  if (parser.parseCommaSeparatedList(AsmParser::Delimiter::LessGreater,
                                     parseEntry)) {
    return {};
  }
  return StrategyAttr::getOf(parser.getContext(), row);
}
