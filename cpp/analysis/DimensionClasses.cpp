//===- DimensionClasses.cpp - Dimensions that go together -----------------===//

#include "cpp/analysis/DimensionClasses.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/analysis/FusionRole.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

static unsigned getRank(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getRank() : 0;
}

DimensionClasses::DimensionClasses(func::FuncOp function,
                                   OperatorRules &rules) {
  Block &block = function.getBody().front();
  number(block);
  classes.grow(next);
  made.resize(next);
  visit(block, rules);
  classes.compress();
}

unsigned DimensionClasses::size() const { return classes.getNumClasses(); }

void DimensionClasses::number(Value value) {
  first[value] = next;
  next += getRank(value);
}

void DimensionClasses::number(Block &block) {
  llvm::for_each(block.getArguments(), [&](Value value) { number(value); });
  for (Operation &op : block) {
    llvm::for_each(op.getResults(), [&](Value value) { number(value); });
    if (isa<DataFlowOpInterface>(op)) {
      for (Region &region : op.getRegions()) {
        llvm::for_each(region, [&](Block &inner) { number(inner); });
      }
    }
  }
}

int64_t DimensionClasses::get(Value value, unsigned dim) const {
  return isMade(value, dim) ? kNoClass : classes[first.at(value) + dim];
}

SmallVector<int64_t> DimensionClasses::get(Value value) const {
  SmallVector<int64_t> found;
  for (unsigned dim = 0; dim < getRank(value); ++dim) {
    found.push_back(get(value, dim));
  }
  return found;
}

bool DimensionClasses::isMade(Value value) const {
  // Dimensions of size one, and values without any others, say nothing of where
  // a value comes from.
  bool hasOthers = false;
  for (unsigned dim = 0; dim < getRank(value); ++dim) {
    if (cast<RankedTensorType>(value.getType()).getDimSize(dim) != 1) {
      hasOthers = true;
      if (!isMade(value, dim)) {
        return false;
      }
    }
  }
  return hasOthers;
}

bool DimensionClasses::isMade(Value value, unsigned dim) const {
  auto it = first.find(value);
  return it == first.end() || made.test(it->second + dim);
}

bool DimensionClasses::isMade(Operation *op, const ShardingRule &rule,
                              unsigned factor) const {
  bool isRead = false;
  for (auto [value, tensor] : llvm::zip(op->getOperands(), rule.operands)) {
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      if (llvm::is_contained(factors, factor)) {
        isRead = true;
        if (!isMade(value, dim)) {
          return false;
        }
      }
    }
  }
  // The gradient of weights in groups has a dimension that none of its operands
  // has: it is that of the weights.
  return isRead || !isProduct(rule);
}

SmallVector<int64_t>
DimensionClasses::getOfFactors(Operation *op, const ShardingRule &rule) const {
  SmallVector<int64_t> found(rule.factors.size(), kNoClass);
  auto look = [&](Value value, const TensorFactors &tensor) {
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      if (!factors.empty() && found[factors.front()] == kNoClass) {
        found[factors.front()] = get(value, dim);
      }
    }
  };
  for (auto [value, tensor] : llvm::zip(op->getOperands(), rule.operands)) {
    look(value, tensor);
  }
  for (auto [value, tensor] : llvm::zip(op->getResults(), rule.results)) {
    look(value, tensor);
  }
  return found;
}

void DimensionClasses::visit(Block &block, OperatorRules &rules) {
  for (Operation &op : block) {
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
      visit(dataFlow, rules);
    } else if (const ShardingRule *rule = rules.get(&op)) {
      visit(&op, *rule);
    }
  }
}

void DimensionClasses::visit(Operation *op, const ShardingRule &rule) {
  SmallVector<int64_t> leader(rule.factors.size(), kNoClass);
  auto join = [&](Value value, const TensorFactors &tensor) {
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      if (factors.empty() || isMade(value, dim) ||
          rule.factors[factors.front()].kind == FactorKind::Replicated) {
        continue;
      }
      int64_t &known = leader[factors.front()];
      unsigned number = first.at(value) + dim;
      if (known == kNoClass) {
        known = number;
      } else {
        classes.join(known, number);
      }
    }
  };
  for (auto [value, tensor] : llvm::zip(op->getOperands(), rule.operands)) {
    join(value, tensor);
  }
  for (auto [index, value, tensor] :
       llvm::enumerate(op->getResults(), rule.results)) {
    // What is written into constants is a value of its own: the gradient of a
    // table begins with zeros.
    bool isUpdate = static_cast<bool>(getUpdatedOperand(op, index));
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      if (!isUpdate && !factors.empty() && isMade(op, rule, factors.front())) {
        made.set(first.at(value) + dim);
      }
    }
    join(value, tensor);
  }
}

void DimensionClasses::visit(DataFlowOpInterface op, OperatorRules &rules) {
  for (const DataFlowEdge &edge : op.getDataFlowEdges()) {
    SmallVector<int64_t> leader(getRank(edge.getOuter(op)), kNoClass);
    auto join = [&](Value value, bool isInside) {
      for (unsigned dim = 0; dim < getRank(value); ++dim) {
        // Values inside of the regions lack the dimension that is run through.
        bool isBehind = isInside && edge.sliced && dim >= *edge.sliced;
        int64_t &known = leader[dim + (isBehind ? 1 : 0)];
        if (isMade(value, dim)) {
          continue;
        }
        unsigned number = first.at(value) + dim;
        if (known == kNoClass) {
          known = number;
        } else {
          classes.join(known, number);
        }
      }
    };
    for (OpOperand *source : edge.sources) {
      join(source->get(), source->getOwner() != op);
    }
    for (Value target : edge.targets) {
      join(target, isa<BlockArgument>(target));
    }
  }
  for (Region &region : op->getRegions()) {
    llvm::for_each(region, [&](Block &block) { visit(block, rules); });
  }
}

} // namespace mlir::alpa
