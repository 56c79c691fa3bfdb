//===- DimensionPadding.cpp - Sizes that the devices do not divide --------===//

#include "cpp/transforms/DimensionPadding.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/transforms/PaddedLoop.h"
#include "cpp/transforms/PaddedValues.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/Support/MathExtras.h"
#include <numeric>

namespace mlir::alpa {

namespace {

/// Loops whose products have less of the program's FLOPs stay as they are.
/// Heuristic.
constexpr double kLeastShare = 0.02;

/// How much smaller blocks become at least. Heuristic.
constexpr double kLeastGain = 1.2;

/// What speaks for a loop.
struct Products {
  double flops = 0;
  Operation *largest = nullptr;
  double largestFlops = 0;
};

/// Whether blocks become smaller by padding, at no more than the price allowed.
bool isWorthwhile(int64_t size, const PaddingOptions &options) {
  int64_t multiple = options.multiple;
  if (size < 2 || size % multiple == 0) {
    return false;
  }
  auto padded = static_cast<double>(llvm::alignTo(size, multiple));
  double block =
      static_cast<double>(size) / static_cast<double>(std::gcd(size, multiple));
  double paddedBlock = padded / static_cast<double>(multiple);
  return block >= kLeastGain * paddedBlock &&
         padded <= static_cast<double>(size) * (1 + options.mostAdded);
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
      if (number == kNoClass || !isWorthwhile(factor.size, options)) {
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

/// Puts the longer forms of operators in their place.
class Rewriting {
public:
  Rewriting(const SharedLoop &loop, int64_t padded,
            const DimensionClasses &classes,
            llvm::SetVector<Operation *> operators)
      : loop(loop), padded(padded), classes(classes),
        operators(std::move(operators)), values(loop.size, padded) {}

  void run() {
    for (Operation *op : operators) {
      LongerLoops loops = getLoops(op);
      for (OpOperand &operand : op->getOpOperands()) {
        Filling filling =
            getRequiredFilling(op, operand.getOperandNumber(), loops);
        if (filling != Filling::Anything) {
          required.try_emplace(operand.get(), filling);
        }
      }
    }
    for (Operation *op : operators) {
      rewrite(op);
    }
    for (Operation *op : operators) {
      op->dropAllReferences();
    }
    values.replace();
    for (Operation *op : operators) {
      op->erase();
    }
  }

private:
  LongerLoops getLoops(Operation *op) {
    auto [it, isNew] = rules.try_emplace(op);
    if (isNew) {
      it->second = std::make_unique<ShardingRule>(*getShardingRule(op));
    }
    const ShardingRule &rule = *it->second;
    return {rule, findFactors(op, rule, loop, classes), loop.size, padded};
  }

  void rewrite(Operation *op) {
    LongerLoops loops = getLoops(op);
    SmallVector<Value> operands;
    for (auto [index, operand, tensor] :
         llvm::enumerate(op->getOperands(), loops.rule.operands)) {
      operands.push_back(values.get(operand, loops.getDims(tensor),
                                    getRequiredFilling(op, index, loops)));
    }
    OpBuilder builder(op);
    Operation *longer = padOperator(builder, op, operands, loops);
    for (auto [before, after, tensor] : llvm::zip(
             op->getResults(), longer->getResults(), loops.rule.results)) {
      llvm::SmallBitVector dims = loops.getDims(tensor);
      values.set(before, after, dims, keepsFilling(op, loops));
      // Filled where it is made, so that all users read the same tensor.
      if (auto it = required.find(before); it != required.end() && dims.any()) {
        values.get(before, dims, it->second);
      }
    }
  }

  /// What stands behind the elements of a result whose elements are just moved.
  Filling keepsFilling(Operation *op, const LongerLoops &loops) const {
    bool moves = isa<stablehlo::TransposeOp, stablehlo::ReshapeOp,
                     stablehlo::BroadcastInDimOp>(op);
    bool keepsZeros = moves || isa<stablehlo::ConvertOp>(op);
    if (!keepsZeros) {
      return Filling::Anything;
    }
    Filling filling = values.getFilling(op->getOperand(0),
                                        loops.getDims(loops.rule.operands[0]));
    return moves || filling == Filling::Zero ? filling : Filling::Anything;
  }

  SharedLoop loop;
  int64_t padded;
  const DimensionClasses &classes;
  llvm::SetVector<Operation *> operators;
  PaddedValues values;
  DenseMap<Value, Filling> required;
  DenseMap<Operation *, std::unique_ptr<ShardingRule>> rules;
};

} // namespace

void padDimensions(func::FuncOp function, const PaddingOptions &options) {
  // Every turn leaves fewer products with sizes that are no multiples.
  while (true) {
    OperatorRules rules;
    DimensionClasses classes(function, rules);
    auto choice = chooseLoop(function, classes, options);
    if (!choice) {
      return;
    }
    auto &[loop, products] = *choice;
    auto padded = static_cast<int64_t>(
        llvm::alignTo(static_cast<uint64_t>(loop.size),
                      static_cast<uint64_t>(options.multiple)));
    double bytes = 0;
    llvm::SetVector<Operation *> operators =
        findPadded(function, loop, classes, bytes);
    emitRemark(products.largest->getLoc())
        << "a loop of " << loop.size << " is padded to " << padded
        << ", a multiple of " << options.multiple << " devices, in "
        << operators.size() << " operators; " << static_cast<int64_t>(bytes)
        << " bytes are padded or cut off";
    Rewriting(loop, padded, classes, std::move(operators)).run();
  }
}

} // namespace mlir::alpa
