//===- PaddedLoop.cpp - A loop that many operators share ------------------===//

#include "cpp/transforms/PaddedLoop.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/analysis/MinimumCut.h"
#include "dialects/alpa/Sharding.h"

namespace mlir::alpa {

double getRuns(Operation *op) {
  double runs = 1;
  for (Operation *parent = op->getParentOp(); parent;
       parent = parent->getParentOp()) {
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(parent)) {
      runs *= getRegionRuns(dataFlow);
    }
  }
  return runs;
}

void forEachPlanned(Block &block, function_ref<void(Operation *)> visit) {
  for (Operation &op : llvm::make_early_inc_range(block)) {
    visit(&op);
    if (isa<DataFlowOpInterface>(op)) {
      for (Region &region : op.getRegions()) {
        for (Block &inner : region) {
          forEachPlanned(inner, visit);
        }
      }
    }
  }
}

llvm::SmallBitVector findFactors(Operation *op, const ShardingRule &rule,
                                 const SharedLoop &loop,
                                 const DimensionClasses &classes) {
  llvm::SmallBitVector found(rule.factors.size());
  SmallVector<int64_t> ofFactors = classes.getOfFactors(op, rule);
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    if (factor.kind != FactorKind::Replicated && factor.size == loop.size &&
        ofFactors[index] == loop.classNumber) {
      found.set(index);
    }
  }
  return found;
}

static bool isDimOfLoop(Value value, unsigned dim, const SharedLoop &loop,
                        const DimensionClasses &classes) {
  return cast<RankedTensorType>(value.getType()).getDimSize(dim) == loop.size &&
         classes.get(value, dim) == loop.classNumber;
}

bool canPadLoop(Operation *op, const ShardingRule &rule,
                const llvm::SmallBitVector &factors, const SharedLoop &loop,
                const DimensionClasses &classes) {
  auto fits = [&](Value value, const TensorFactors &tensor) {
    return llvm::all_of(llvm::enumerate(tensor), [&](const auto &entry) {
      return !isDimOfLoop(value, entry.index(), loop, classes) ||
             llvm::any_of(entry.value(),
                          [&](unsigned factor) { return factors[factor]; });
    });
  };
  return factors.any() &&
         llvm::all_of_zip(op->getOperands(), rule.operands, fits) &&
         llvm::all_of_zip(op->getResults(), rule.results, fits) &&
         canPadOperator(op, {rule, factors, loop.size});
}

namespace {

/// The network of the cut: a node per operator and two per value.
class PaddingNetwork {
public:
  PaddingNetwork(const SharedLoop &loop, const DimensionClasses &classes)
      : loop(loop), classes(classes) {}

  void add(Operation *op) {
    bool hasLoop = llvm::any_of(op->getOperands(), isOfLoop) ||
                   llvm::any_of(op->getResults(), isOfLoop);
    if (hasLoop) {
      operators.insert(op);
      nodes[op] = cut.addNode();
      bind(op);
    }
  }

  /// To be called once all operators are there.
  llvm::SetVector<Operation *> solve(double &bytes) {
    SmallVector<Value> values;
    for (Operation *op : operators) {
      llvm::copy_if(op->getOperands(), std::back_inserter(values), isOfLoop);
      llvm::copy_if(op->getResults(), std::back_inserter(values), isOfLoop);
    }
    llvm::DenseSet<Value> seen;
    for (Value value : values) {
      if (seen.insert(value).second) {
        connect(value);
      }
    }
    llvm::BitVector side = cut.findSourceSide();
    llvm::SetVector<Operation *> padded;
    for (Operation *op : operators) {
      if (side[nodes[op]]) {
        padded.insert(op);
      }
    }
    bytes = 0;
    for (auto [from, to, cost] : costs) {
      bytes += side[from] && !side[to] ? cost : 0;
    }
    return padded;
  }

private:
  /// Fixes the side of operators that leave no choice.
  void bind(Operation *op) {
    std::optional<ShardingRule> rule;
    if (!isa<DataFlowOpInterface>(op) &&
        !op->hasTrait<OpTrait::IsTerminator>()) {
      rule = getShardingRule(op);
    }
    llvm::SmallBitVector factors;
    if (rule) {
      factors = findFactors(op, *rule, loop, classes);
    }
    if (!rule || !canPadLoop(op, *rule, factors, loop, classes)) {
      cut.addEdge(nodes[op], MinimumCut::kSink, kUncuttable);
    } else if (isProduct(*rule)) {
      cut.addEdge(MinimumCut::kSource, nodes[op], kUncuttable);
    }
  }

  /// A value that is made padded is sliced once for all that need it as it was;
  /// one that is not is padded once.
  ///
  ///   maker -> any user, bytes     any user -> maker, bytes
  void connect(Value value) {
    Operation *maker = value.getDefiningOp();
    unsigned source =
        maker && nodes.contains(maker) ? nodes[maker] : MinimumCut::kSink;
    double bytes = getTensorBytes(value.getType()) * getRunsOf(value);
    unsigned sliced = cut.addNode(), padded = cut.addNode();
    addCost(source, sliced, bytes);
    addCost(padded, source, bytes);
    for (Operation *user : value.getUsers()) {
      auto it = nodes.find(user);
      // Regions that are copied as they are may use it, too.
      unsigned node = it == nodes.end() ? MinimumCut::kSink : it->second;
      cut.addEdge(sliced, node, kUncuttable);
      cut.addEdge(node, padded, kUncuttable);
    }
  }

  void addCost(unsigned from, unsigned to, double bytes) {
    cut.addEdge(from, to, bytes);
    costs.push_back({from, to, bytes});
  }

  static double getRunsOf(Value value) {
    Operation *parent = value.getParentBlock()->getParentOp();
    auto dataFlow = dyn_cast<DataFlowOpInterface>(parent);
    return getRuns(parent) * (dataFlow ? getRegionRuns(dataFlow) : 1);
  }

  struct Cost {
    unsigned from, to;
    double bytes;
  };

  const SharedLoop &loop;
  const DimensionClasses &classes;
  std::function<bool(Value)> isOfLoop = [this](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && llvm::any_of(llvm::seq<unsigned>(0, type.getRank()),
                                [&](unsigned dim) {
                                  return isDimOfLoop(value, dim, loop, classes);
                                });
  };
  MinimumCut cut;
  llvm::SetVector<Operation *> operators;
  DenseMap<Operation *, unsigned> nodes;
  SmallVector<Cost> costs;
};

} // namespace

llvm::SetVector<Operation *> findPadded(func::FuncOp function,
                                        const SharedLoop &loop,
                                        const DimensionClasses &classes,
                                        double &bytes) {
  PaddingNetwork network(loop, classes);
  forEachPlanned(function.getBody().front(),
                 [&](Operation *op) { network.add(op); });
  return network.solve(bytes);
}

} // namespace mlir::alpa
