//===- Elimination.cpp - Exact min-plus elimination -----------------------===//

#include "cpp/solver/Elimination.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <iterator>
#include <queue>

namespace mlir::alpa {

/// Entries of distinct tables that a cache may hold: 2 GB.
static constexpr int64_t kMaxCached = 250'000'000;

/// Ascending: a set of a few nodes is read far more often than it changes.
using Neighbors = llvm::SmallVector<unsigned, 8>;

/// Per node of several choices those that it shares an edge with.
static std::vector<Neighbors> getNeighbors(const Core &core) {
  std::vector<Neighbors> near(core.getNumNodes());
  for (const CoreEdge &edge : core.edges) {
    if (edge.alive && core.getSize(edge.u) > 1 && core.getSize(edge.v) > 1) {
      near[edge.u].push_back(edge.v);
      near[edge.v].push_back(edge.u);
    }
  }
  for (Neighbors &own : near) {
    llvm::sort(own);
    own.erase(llvm::unique(own), own.end());
  }
  return near;
}

/// Takes a node out: its neighbours become each other's.
static void joinNeighbors(unsigned node, std::vector<Neighbors> &near) {
  Neighbors joined;
  for (unsigned other : near[node]) {
    joined.clear();
    std::set_union(near[other].begin(), near[other].end(), near[node].begin(),
                   near[node].end(), std::back_inserter(joined));
    llvm::erase_if(joined, [node, other](unsigned one) {
      return one == node || one == other;
    });
    near[other] = joined;
  }
}

std::optional<EliminationOrder> getEliminationOrder(const Core &core,
                                                    EliminationLimits limits) {
  unsigned count = core.getNumNodes();
  std::vector<Neighbors> near = getNeighbors(core);
  // Weights are doubles: they may exceed any integer before they are refused.
  auto weigh = [&](unsigned node) {
    double weight = core.getSize(node);
    for (unsigned other : near[node]) {
      weight *= core.getSize(other);
    }
    return weight;
  };
  using Entry = std::pair<double, unsigned>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue;
  std::vector<double> weights(count, 0.0);
  for (unsigned node = 0; node < count; ++node) {
    if (core.getSize(node) > 1) {
      weights[node] = weigh(node);
      queue.push({weights[node], node});
    }
  }
  EliminationOrder order;
  while (!queue.empty()) {
    auto [weight, node] = queue.top();
    queue.pop();
    if (weights[node] != weight) {
      continue; // it was weighed anew, or is gone
    }
    weights[node] = 0.0;
    if (weight > limits.largest || order.total + weight > limits.total) {
      return std::nullopt;
    }
    order.largest = std::max(order.largest, static_cast<int64_t>(weight));
    order.total += static_cast<int64_t>(weight);
    order.width =
        std::max(order.width, static_cast<unsigned>(near[node].size()));
    order.nodes.push_back(node);
    joinNeighbors(node, near);
    for (unsigned other : near[node]) {
      double changed = weigh(other);
      if (changed != weights[other]) {
        weights[other] = changed;
        queue.push({changed, other});
      }
    }
  }
  return order;
}

namespace {

/// An interned table and the node of each of its axes.
struct Factor {
  int table;
  /// The number of the table in the order in which the problem came to tables:
  /// unlike the cache's, it does not depend on problems before.
  unsigned rank;
  llvm::SmallVector<unsigned, 6> scope;
  bool alive = true;
};

/// The factors of a problem, by the nodes that they mention.
class Factors {
public:
  Factors(const Core &core, TableCache &cache);

  void add(int table, llvm::ArrayRef<unsigned> scope);
  /// Takes the factors of a node out, in an order that equal layers share.
  std::vector<Factor> take(unsigned node);

  double constant;

private:
  std::vector<Factor> factors;
  llvm::DenseMap<int, unsigned> ranks;
  std::vector<llvm::SmallVector<unsigned, 8>> owned;
};

} // namespace

Factors::Factors(const Core &core, TableCache &cache)
    : constant(core.constant), owned(core.getNumNodes()) {
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    const std::vector<double> &cost = core.costs[node];
    if (cost.size() == 1) {
      constant += cost[0];
    } else {
      add(cache.intern({{core.getSize(node)}, cost}), node);
    }
  }
  for (const CoreEdge &edge : core.edges) {
    if (!edge.alive) {
      continue;
    }
    CostTable table;
    llvm::SmallVector<unsigned, 2> scope;
    for (unsigned node : {edge.u, edge.v}) {
      if (core.getSize(node) > 1) {
        table.shape.push_back(core.getSize(node));
        scope.push_back(node);
      }
    }
    if (scope.empty()) {
      constant += edge.cost[0];
    } else {
      table.cost = edge.cost;
      add(cache.intern(std::move(table)), scope);
    }
  }
}

void Factors::add(int table, llvm::ArrayRef<unsigned> scope) {
  if (table == TableCache::kZero) {
    return;
  }
  for (unsigned node : scope) {
    owned[node].push_back(factors.size());
  }
  unsigned rank = ranks.try_emplace(table, ranks.size()).first->second;
  factors.push_back({table, rank, llvm::SmallVector<unsigned, 6>(scope)});
}

std::vector<Factor> Factors::take(unsigned node) {
  std::vector<Factor> bucket;
  for (unsigned index : owned[node]) {
    if (factors[index].alive) {
      factors[index].alive = false;
      bucket.push_back(factors[index]);
    }
  }
  owned[node].clear();
  // In another order sums would be rounded otherwise.
  llvm::sort(bucket, [](const Factor &one, const Factor &two) {
    return std::tie(one.rank, one.scope) < std::tie(two.rank, two.scope);
  });
  return bucket;
}

/// Entries that the minimum of a sum looks at.
static int64_t getNumSummed(size_t numTerms, llvm::ArrayRef<unsigned> shape) {
  int64_t entries = numTerms;
  for (unsigned size : shape) {
    entries *= size;
  }
  return entries;
}

/// The choice of a node, its neighbours being decided.
static unsigned decide(unsigned node, unsigned size,
                       llvm::ArrayRef<Factor> bucket, const TableCache &cache,
                       llvm::ArrayRef<unsigned> labels) {
  std::vector<double> total(size, 0.0);
  for (const Factor &factor : bucket) {
    const CostTable &table = cache.getTable(factor.table);
    size_t at = 0, step = 0, stride = 1;
    for (unsigned axis = table.shape.size(); axis-- > 0;) {
      if (factor.scope[axis] == node) {
        step = stride;
      } else {
        at += labels[factor.scope[axis]] * stride;
      }
      stride *= table.shape[axis];
    }
    for (unsigned a = 0; a < size; ++a) {
      total[a] += table.cost[at + a * step];
    }
  }
  return std::min_element(total.begin(), total.end()) - total.begin();
}

std::optional<Elimination> eliminate(const Core &core,
                                     const EliminationOrder &order,
                                     TableCache &cache, Effort &effort) {
  Factors factors(core, cache);
  cache.begin();
  uint64_t before = cache.getNumComputed();
  std::vector<std::vector<Factor>> buckets;
  for (unsigned node : order.nodes) {
    if (effort.isOver() || cache.getNumEntries() > kMaxCached) {
      return std::nullopt;
    }
    const std::vector<Factor> &bucket =
        buckets.emplace_back(factors.take(node));
    if (bucket.empty()) {
      continue;
    }
    llvm::SmallVector<unsigned, 6> scope = {node}, shape = {core.getSize(node)};
    llvm::SmallVector<TableCache::Term, 6> terms;
    for (const Factor &factor : bucket) {
      TableCache::Term &term = terms.emplace_back();
      term.table = factor.table;
      for (unsigned other : factor.scope) {
        auto found = llvm::find(scope, other);
        term.places.push_back(found - scope.begin());
        if (found == scope.end()) {
          scope.push_back(other);
          shape.push_back(core.getSize(other));
        }
      }
    }
    TableCache::Minimum minimum = cache.minimize(terms, shape);
    if (minimum.first) {
      effort.spent += getNumSummed(terms.size(), shape);
    }
    factors.constant += minimum.least;
    factors.add(minimum.table, llvm::ArrayRef(scope).drop_front());
  }
  Elimination result;
  result.value = factors.constant;
  result.computed = cache.getNumComputed() - before;
  result.labels.assign(core.getNumNodes(), 0);
  for (auto [node, bucket] :
       llvm::reverse(llvm::zip_equal(order.nodes, buckets))) {
    result.labels[node] =
        decide(node, core.getSize(node), bucket, cache, result.labels);
  }
  return result;
}

} // namespace mlir::alpa
