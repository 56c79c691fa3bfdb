//===- PrintShardingRules.cpp - Loop nests as remarks ---------------------===//
//
// For tests and for people who add an operator: says what the planner will know
// about every operator.
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Pass/Pass.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

namespace mlir::alpa {
#define GEN_PASS_DEF_PRINTSHARDINGRULES
#include "passes/Passes.h.inc"
} // namespace mlir::alpa

using namespace mlir;
using namespace mlir::alpa;

/// a, b, ... z, f26, f27, ...
static std::string getFactorName(unsigned factor) {
  constexpr unsigned numLetters = 26;
  return factor < numLetters ? std::string(1, static_cast<char>('a' + factor))
                             : "f" + std::to_string(factor);
}

static StringRef getKindSuffix(const Factor &factor) {
  switch (factor.kind) {
  case FactorKind::Parallel:
    return "";
  case FactorKind::Replicated:
    return ":replicated";
  case FactorKind::Reduction:
    break;
  }
  switch (factor.reduction) {
  case ReductionKind::Sum:
    return ":sum";
  case ReductionKind::Product:
    return ":product";
  case ReductionKind::Max:
    return ":max";
  case ReductionKind::Min:
    return ":min";
  case ReductionKind::And:
    return ":and";
  case ReductionKind::Or:
    return ":or";
  }
  return "";
}

static StringRef getRoleName(OperatorRole role) {
  switch (role) {
  case OperatorRole::Leader:
    return "leader";
  case OperatorRole::Follower:
    return "follower";
  case OperatorRole::Rematerialized:
    return "rematerialized";
  }
  return "";
}

/// One bracket per tensor; a dimension made of several factors in parentheses,
/// 1 for a dimension without.
static void printTensors(raw_ostream &os, ArrayRef<TensorFactors> tensors) {
  os << '(';
  llvm::interleaveComma(tensors, os, [&](const TensorFactors &tensor) {
    os << '[';
    llvm::interleaveComma(tensor, os, [&](const DimFactors &factors) {
      if (factors.empty()) {
        os << '1';
        return;
      }
      if (factors.size() > 1) {
        os << '(';
      }
      llvm::interleave(
          factors, os, [&](unsigned factor) { os << getFactorName(factor); },
          " ");
      if (factors.size() > 1) {
        os << ')';
      }
    });
    os << ']';
  });
  os << ')';
}

static void printNumbers(raw_ostream &os, StringRef title,
                         ArrayRef<unsigned> numbers) {
  if (numbers.empty()) {
    return;
  }
  os << ' ' << title << '(';
  llvm::interleaveComma(numbers, os);
  os << ')';
}

static std::string toString(const ShardingRule &rule, OperatorRole role) {
  std::string text;
  llvm::raw_string_ostream os(text);
  printTensors(os, rule.operands);
  os << " -> ";
  printTensors(os, rule.results);
  os << " {";
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    os << (index ? ", " : "") << getFactorName(index) << '=' << factor.size
       << getKindSuffix(factor);
  }
  os << "} " << getRoleName(role);
  for (auto [index, set] : llvm::enumerate(rule.linearOperands)) {
    printNumbers(os,
                 llvm::is_contained(rule.algebraicSets, index) ? "algebraic"
                                                               : "linear",
                 set);
  }
  printNumbers(os, "accumulators", rule.accumulators);
  return text;
}

namespace {

struct PrintShardingRules
    : mlir::alpa::impl::PrintShardingRulesBase<PrintShardingRules> {
  void runOnOperation() override {
    bool isValid = true;
    getOperation()->walk([&](ShardingRuleOpInterface op) {
      ShardingRule rule = op.getShardingRule();
      if (failed(rule.verify(op))) {
        isValid = false;
        return;
      }
      op->emitRemark() << toString(rule, op.getOperatorRole());
    });
    if (!isValid) {
      signalPassFailure();
    }
  }
};

} // namespace
