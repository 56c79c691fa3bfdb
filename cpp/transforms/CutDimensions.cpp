//===- CutDimensions.cpp - Dimensions a little shorter than others --------===//

#include "cpp/transforms/CutDimensions.h"

#include "cpp/transforms/PaddedLoop.h"
#include "cpp/transforms/PaddedRewriting.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <vector>

namespace mlir::alpa {

namespace {

/// Where less of what the program writes is longer, it stays as it is.
/// Heuristic.
constexpr double kLeastShare = 0.02;

double getResultBytes(Operation *op) {
  double bytes = 0;
  for (Type type : op->getResultTypes()) {
    bytes += isa<RankedTensorType>(type) ? getTensorBytes(type) : 0;
  }
  return bytes * getRuns(op);
}

/// An operator and its longer form: that of one that cuts, or longer loops.
struct Found {
  Operation *op;
  std::optional<CutForm> cut;
  ShardingRule rule;
  llvm::SmallBitVector factors;
  SmallVector<int64_t> sizes;
};

/// The operators of a block that become longer.
class CutSearch {
public:
  explicit CutSearch(const PaddingOptions &options) : options(options) {}

  void add(Operation *op) {
    auto isTensor = [](Type type) { return isa<RankedTensorType>(type); };
    if (isa<DataFlowOpInterface>(op) || op->getNumResults() == 0 ||
        !llvm::all_of(op->getOperandTypes(), isTensor) ||
        !llvm::all_of(op->getResultTypes(), isTensor)) {
      return;
    }
    SmallVector<Shape> operands =
        llvm::map_to_vector(op->getOperands(), [&](Value operand) {
          auto it = longer.find(operand);
          return it == longer.end() ? Shape(getShapeOf(operand)) : it->second;
        });
    if (std::optional<CutForm> form = getCutForm(op, operands, options)) {
      for (Value result : op->getResults()) {
        note(result, form->result);
      }
      found.push_back({op, std::move(form), {}, {}, {}});
    } else if (llvm::any_of(op->getOperands(), [&](Value operand) {
                 return longer.contains(operand);
               })) {
      addLoops(op, operands);
    }
  }

  /// What was found, but for slices that nothing longer reads.
  std::vector<Found> take() {
    std::vector<Found> taken;
    llvm::DenseSet<Operation *> operators;
    for (Found &each : llvm::reverse(found)) {
      bool isRead = llvm::any_of(each.op->getUsers(), [&](Operation *user) {
        return operators.contains(user);
      });
      if (isRead || !isa<stablehlo::SliceOp>(each.op)) {
        operators.insert(each.op);
        taken.push_back(std::move(each));
      }
    }
    std::reverse(taken.begin(), taken.end());
    return taken;
  }

private:
  void note(Value value, ArrayRef<int64_t> shape) {
    if (shape != getShapeOf(value)) {
      longer[value] = Shape(shape);
    }
  }

  /// Every longer dimension is a loop of its own, which can be longer.
  void addLoops(Operation *op, ArrayRef<Shape> operands) {
    std::optional<ShardingRule> rule = getShardingRule(op);
    if (!rule) {
      return;
    }
    llvm::SmallBitVector factors(rule->factors.size());
    SmallVector<int64_t> sizes(rule->factors.size(), 0);
    for (auto [value, shape, tensor] :
         llvm::zip(op->getOperands(), operands, rule->operands)) {
      for (auto [before, size, list] :
           llvm::zip(getShapeOf(value), shape, tensor)) {
        if (before == size) {
          continue;
        }
        if (list.size() != 1 ||
            rule->factors[list.front()].kind == FactorKind::Replicated ||
            (factors[list.front()] && sizes[list.front()] != size)) {
          return;
        }
        factors.set(list.front());
        sizes[list.front()] = size;
      }
    }
    LongerLoops loops(*rule, factors, sizes);
    if (!canPadOperator(op, loops)) {
      return;
    }
    for (auto [value, tensor] : llvm::zip(op->getResults(), rule->results)) {
      note(value, loops.getShape(value.getType(), tensor));
    }
    found.push_back({op, std::nullopt, std::move(*rule), factors, sizes});
  }

  const PaddingOptions &options;
  DenseMap<Value, Shape> longer;
  std::vector<Found> found;
};

/// Says of the first dimension that is cut how long it becomes.
void remark(ArrayRef<Found> found) {
  Operation *first = found.front().op;
  for (auto [before, after] :
       llvm::zip(getShapeOf(first->getResult(0)), found.front().cut->result)) {
    if (before != after) {
      emitRemark(first->getLoc())
          << "a dimension of " << before << " is padded to " << after
          << ", as long as what it is cut from, in " << found.size()
          << " operators";
      return;
    }
  }
}

void rewrite(MutableArrayRef<Found> found) {
  PaddedRewriting rewriting;
  for (Found &each : found) {
    if (each.cut) {
      rewriting.add(each.op, std::move(*each.cut));
    } else {
      rewriting.add(each.op, std::move(each.rule), each.factors, each.sizes);
    }
  }
  rewriting.run();
}

} // namespace

void padCutDimensions(func::FuncOp function, const PaddingOptions &options) {
  llvm::MapVector<Block *, std::unique_ptr<CutSearch>> searches;
  double total = 0, bytes = 0;
  forEachPlanned(function.getBody().front(), [&](Operation *op) {
    total += getResultBytes(op);
    auto &search = searches[op->getBlock()];
    if (!search) {
      search = std::make_unique<CutSearch>(options);
    }
    search->add(op);
  });
  std::vector<std::vector<Found>> blocks;
  for (auto &[block, search] : searches) {
    blocks.push_back(search->take());
    for (const Found &each : blocks.back()) {
      bytes += isa<stablehlo::SliceOp>(each.op) ? 0 : getResultBytes(each.op);
    }
  }
  if (bytes < kLeastShare * total) {
    return;
  }
  for (std::vector<Found> &found : blocks) {
    if (!found.empty()) {
      remark(found);
      rewrite(found);
    }
  }
}

} // namespace mlir::alpa
