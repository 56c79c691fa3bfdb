//===- ArgumentUses.cpp - What a program does with its arguments ----------===//

#include "cpp/analysis/ArgumentUses.h"

#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::alpa;

namespace {

/// A value that is an argument in another form.
struct Origin {
  unsigned argument = 0;
  /// Per dimension that of the argument; none if it is no part of one.
  SmallVector<std::optional<unsigned>> dims;
};

class UseFinder {
public:
  UseFinder(func::FuncOp function, const DimensionClasses &classes)
      : classes(classes), uses(function.getNumArguments()),
        isUsed(function.getNumArguments()) {
    for (BlockArgument argument : function.getArguments()) {
      auto type = dyn_cast<RankedTensorType>(argument.getType());
      if (!type) {
        continue;
      }
      unsigned rank = type.getRank();
      uses[argument.getArgNumber()].assign(rank, DimensionUse::None);
      Origin origin{argument.getArgNumber(), {}};
      llvm::append_range(origin.dims, llvm::seq(rank));
      origins[argument] = std::move(origin);
    }
    visit(function.getBody().front());
  }

  std::vector<std::vector<DimensionUse>> take() { return std::move(uses); }

private:
  void visit(Block &block) {
    for (Operation &op : block) {
      if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
        visit(dataFlow);
        continue;
      }
      std::optional<ShardingRule> rule = getShardingRule(&op);
      if (!rule) {
        continue;
      }
      bool isLookUp =
          isa<stablehlo::GatherOp>(op) && !classes.isMade(op.getOperand(1));
      if (isProduct(*rule) || isLookUp) {
        for (unsigned index = 0; index < op.getNumOperands(); ++index) {
          use(&op, *rule, index);
        }
      } else {
        follow(&op, *rule);
      }
    }
  }

  void visit(DataFlowOpInterface op) {
    for (const DataFlowEdge &edge : op.getDataFlowEdges()) {
      for (OpOperand *source : edge.sources) {
        auto it = origins.find(source->get());
        if (source->getOwner() != op || it == origins.end()) {
          continue;
        }
        Origin inside = it->second;
        if (edge.sliced) {
          inside.dims.erase(inside.dims.begin() + *edge.sliced);
        }
        for (Value target : edge.targets) {
          if (isa<BlockArgument>(target)) {
            origins[target] = inside;
          }
        }
      }
    }
    for (Region &region : op->getRegions()) {
      llvm::for_each(region, [&](Block &block) { visit(block); });
    }
  }

  /// Hands an argument on through an operator of which it is all that matters.
  void follow(Operation *op, const ShardingRule &rule) {
    std::optional<unsigned> from;
    for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!type || type.getRank() == 0 || classes.isMade(operand)) {
        continue;
      }
      if (from || !origins.contains(operand)) {
        return;
      }
      from = index;
    }
    if (!from || op->getNumResults() != 1) {
      return;
    }
    const Origin &origin = origins.at(op->getOperand(*from));
    Origin made{origin.argument, {}};
    for (const DimFactors &factors : rule.results.front()) {
      std::optional<unsigned> dim;
      for (auto [index, other] : llvm::enumerate(rule.operands[*from])) {
        if (!factors.empty() && !other.empty() &&
            factors.front() == other.front()) {
          dim = origin.dims[index];
        }
      }
      made.dims.push_back(dim);
    }
    origins[op->getResult(0)] = std::move(made);
  }

  /// Records the use of an operand that is an argument not used before.
  void use(Operation *op, const ShardingRule &rule, unsigned index) {
    auto it = origins.find(op->getOperand(index));
    if (it == origins.end() || isUsed[it->second.argument]) {
      return;
    }
    bool isLookUp = isa<stablehlo::GatherOp>(op);
    if (isLookUp && index != 0) {
      return;
    }
    for (auto [dim, factors] : llvm::enumerate(rule.operands[index])) {
      if (std::optional<unsigned> own = it->second.dims[dim];
          own && !factors.empty()) {
        uses[it->second.argument][*own] =
            isLookUp ? getLookUp(rule, factors.front())
                     : getUse(rule, index, factors.front());
      }
    }
    isUsed[it->second.argument] = true;
  }

  static DimensionUse getLookUp(const ShardingRule &rule, unsigned factor) {
    return rule.factors[factor].kind == FactorKind::Reduction
               ? DimensionUse::LookedUp
               : DimensionUse::None;
  }

  static DimensionUse getUse(const ShardingRule &rule, unsigned index,
                             unsigned factor) {
    auto has = [&](const TensorFactors &tensor) {
      return llvm::any_of(tensor, [&](const DimFactors &factors) {
        return llvm::is_contained(factors, factor);
      });
    };
    if (rule.factors[factor].kind == FactorKind::Reduction) {
      // What is multiplied is summed over in both operands, groups are not.
      return llvm::count_if(rule.operands, has) > 1 ? DimensionUse::Contracted
                                                    : DimensionUse::Batch;
    }
    if (!llvm::any_of(rule.results, has)) {
      return DimensionUse::None;
    }
    for (auto [other, tensor] : llvm::enumerate(rule.operands)) {
      if (other != index && has(tensor)) {
        return DimensionUse::Batch;
      }
    }
    return DimensionUse::Free;
  }

  const DimensionClasses &classes;
  DenseMap<Value, Origin> origins;
  std::vector<std::vector<DimensionUse>> uses;
  std::vector<bool> isUsed;
};

} // namespace

bool mlir::alpa::isProduct(Operation *op) {
  std::optional<ShardingRule> rule = getShardingRule(op);
  return rule && isProduct(*rule);
}

bool mlir::alpa::isProduct(const ShardingRule &rule) {
  auto has = [](const TensorFactors &tensor, unsigned factor) {
    return llvm::any_of(tensor, [&](const DimFactors &factors) {
      return llvm::is_contained(factors, factor);
    });
  };
  return rule.flops > 0 &&
         llvm::any_of(llvm::seq(rule.factors.size()), [&](unsigned factor) {
           return rule.factors[factor].isSum() &&
                  llvm::count_if(rule.operands, [&](const auto &tensor) {
                    return has(tensor, factor);
                  }) > 1;
         });
}

std::vector<std::vector<DimensionUse>>
mlir::alpa::getArgumentUses(func::FuncOp function,
                            const DimensionClasses &classes) {
  return UseFinder(function, classes).take();
}
