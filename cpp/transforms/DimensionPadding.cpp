//===- DimensionPadding.cpp - Sizes that the devices do not divide --------===//

#include "cpp/transforms/DimensionPadding.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/transforms/CutDimensions.h"
#include "cpp/transforms/PaddedLoop.h"
#include "cpp/transforms/PaddedRewriting.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::alpa {

namespace {

/// Loops whose products have less of the program's FLOPs stay as they are.
/// Heuristic.
constexpr double kLeastShare = 0.02;

/// What speaks for a loop.
struct Products {
  double flops = 0;
  Operation *largest = nullptr;
  double largestFlops = 0;
};

int64_t getPadded(int64_t size, const PaddingOptions &options) {
  return static_cast<int64_t>(llvm::alignTo(
      static_cast<uint64_t>(size), static_cast<uint64_t>(options.multiple)));
}

/// The loop whose products have the most FLOPs.
std::optional<std::pair<SharedLoop, Products>>
chooseLoop(func::FuncOp function, const DimensionClasses &classes,
           const PaddingOptions &options) {
  llvm::MapVector<std::pair<int64_t, int64_t>, Products> loops;
  double total = 0;
  forEachPlanned(function.getBody().front(), [&](Operation *op) {
    std::optional<ShardingRule> rule;
    if (!isa<DataFlowOpInterface>(op)) {
      rule = getShardingRule(op);
    }
    if (!rule || !isProduct(*rule)) {
      return;
    }
    double flops = rule->flops * getRuns(op);
    total += flops;
    SmallVector<int64_t> ofFactors = classes.getOfFactors(op, *rule);
    for (auto [number, factor] : llvm::zip(ofFactors, rule->factors)) {
      SharedLoop loop{number, factor.size};
      if (number == kNoClass ||
          !options.isWorthwhile(factor.size, getPadded(factor.size, options))) {
        continue;
      }
      llvm::SmallBitVector factors = findFactors(op, *rule, loop, classes);
      if (canPadLoop(op, *rule, factors, loop, classes)) {
        Products &products = loops[{number, factor.size}];
        products.flops += flops;
        if (flops > products.largestFlops) {
          products.largest = op;
          products.largestFlops = flops;
        }
      }
    }
  });
  auto most = llvm::max_element(loops, [](const auto &a, const auto &b) {
    return a.second.flops < b.second.flops;
  });
  if (most == loops.end() || most->second.flops < kLeastShare * total) {
    return std::nullopt;
  }
  return std::make_pair(SharedLoop{most->first.first, most->first.second},
                        most->second);
}

void rewrite(ArrayRef<Operation *> operators, const SharedLoop &loop,
             int64_t padded, const DimensionClasses &classes) {
  PaddedRewriting rewriting;
  for (Operation *op : operators) {
    ShardingRule rule = *getShardingRule(op);
    llvm::SmallBitVector factors = findFactors(op, rule, loop, classes);
    SmallVector<int64_t> sizes(rule.factors.size(), padded);
    rewriting.add(op, std::move(rule), factors, sizes);
  }
  rewriting.run();
}

} // namespace

void padDimensions(func::FuncOp function, const PaddingOptions &options) {
  padCutDimensions(function, options);
  // Every turn leaves fewer products with sizes that are no multiples.
  while (true) {
    OperatorRules rules;
    DimensionClasses classes(function, rules);
    auto choice = chooseLoop(function, classes, options);
    if (!choice) {
      return;
    }
    auto &[loop, products] = *choice;
    int64_t padded = getPadded(loop.size, options);
    double bytes = 0;
    llvm::SetVector<Operation *> operators =
        findPadded(function, loop, classes, bytes);
    emitRemark(products.largest->getLoc())
        << "a loop of " << loop.size << " is padded to " << padded
        << ", a multiple of " << options.multiple << " devices, in "
        << operators.size() << " operators; " << static_cast<int64_t>(bytes)
        << " bytes are padded or cut off";
    rewrite(operators.getArrayRef(), loop, padded, classes);
  }
}

} // namespace mlir::alpa
