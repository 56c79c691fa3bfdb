//===- DualAscent.cpp - A lower bound that drops strategies ---------------===//

#include "cpp/solver/DualAscent.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace mlir::alpa {

/// Slack of the comparison with the best plan, relative: rounding must not drop
/// an optimum.
static constexpr double kSlack = 1e-10;

/// The least of some numbers, several at a time: each comparison waits for the
/// one before.
static double getLeast(llvm::ArrayRef<double> values) {
  constexpr size_t kLanes = 4;
  if (values.size() < 2 * kLanes) {
    return *std::min_element(values.begin(), values.end());
  }
  double least[kLanes];
  std::copy_n(values.begin(), kLanes, least);
  size_t at = kLanes;
  for (; at + kLanes <= values.size(); at += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      least[lane] = std::min(least[lane], values[at + lane]);
    }
  }
  for (; at < values.size(); ++at) {
    least[0] = std::min(least[0], values[at]);
  }
  return std::min(std::min(least[0], least[1]), std::min(least[2], least[3]));
}

/// Adds one number per row to all its entries; the least of every column.
static void addPerRow(std::vector<double> &table, llvm::ArrayRef<double> added,
                      std::vector<double> &least) {
  size_t width = least.size();
  std::fill(least.begin(), least.end(), kInfinity);
  for (size_t row = 0; row < added.size(); ++row) {
    double *cost = table.data() + row * width;
    for (size_t at = 0; at < width; ++at) {
      cost[at] += added[row];
      least[at] = std::min(least[at], cost[at]);
    }
  }
}

/// Adds one number per column to all its entries; the least of every row.
static void addPerColumn(std::vector<double> &table,
                         llvm::ArrayRef<double> added,
                         std::vector<double> &least) {
  size_t width = added.size();
  for (size_t row = 0; row < least.size(); ++row) {
    double *cost = table.data() + row * width;
    for (size_t at = 0; at < width; ++at) {
      cost[at] += added[at];
    }
    least[row] = getLeast(llvm::ArrayRef(cost, width));
  }
}

DualAscent::DualAscent(const Core &start)
    : core(start), excess(core.costs), labels(core.getNumNodes(), 0),
      bestLabels(labels), best(core.getValue(labels)),
      least(core.edges.size()) {
  findLeast();
}

void DualAscent::findLeast() {
  for (auto [edge, found] : llvm::zip_equal(core.edges, least)) {
    if (!edge.alive) {
      continue;
    }
    found.ofU.resize(core.getSize(edge.u));
    found.ofV.resize(core.getSize(edge.v));
    std::vector<double> nothing(core.getSize(edge.u), 0.0);
    addPerRow(edge.cost, nothing, found.ofV);
    size_t width = found.ofV.size();
    for (auto [row, entry] : llvm::enumerate(found.ofU)) {
      entry = getLeast(llvm::ArrayRef(edge.cost.data() + row * width, width));
    }
  }
}

void DualAscent::visit(unsigned node, bool forward) {
  std::vector<double> &cost = core.costs[node];
  unsigned size = cost.size();
  llvm::ArrayRef<unsigned> edges = core.getEdges(node);
  unsigned decided = 0;
  for (unsigned index : edges) {
    const CoreEdge &edge = core.edges[index];
    llvm::ArrayRef<double> collected = least[index].of(edge.u == node);
    for (unsigned a = 0; a < size; ++a) {
      cost[a] += collected[a];
    }
    decided += isDecided(node, edge.other(node), forward);
  }
  double smallest = *std::min_element(cost.begin(), cost.end());
  core.constant += smallest;
  for (double &entry : cost) {
    entry -= smallest;
  }
  excess[node] = cost;

  unsigned open = edges.size() - decided;
  double part = open ? 1.0 / std::max(open, decided) : 0.0;
  total = cost;
  added.resize(size);
  // What is forbidden stays at the node.
  auto share = [&](unsigned a) {
    return std::isfinite(cost[a]) ? part * cost[a] : 0.0;
  };
  for (unsigned index : edges) {
    CoreEdge &edge = core.edges[index];
    unsigned other = edge.other(node), others = core.getSize(other);
    bool rows = edge.u == node, known = isDecided(node, other, forward);
    std::vector<double> &own = least[index].of(rows);
    for (unsigned a = 0; a < size; ++a) {
      if (known) {
        unsigned at =
            rows ? a * others + labels[other] : labels[other] * size + a;
        total[a] += std::isfinite(total[a]) ? edge.cost[at] - own[a] : 0.0;
      }
      double collected = std::isfinite(own[a]) ? own[a] : 0.0;
      added[a] = (known ? 0.0 : share(a)) - collected;
      // Rounding is monotonic: this is the least of the sums, to the last bit.
      own[a] += added[a];
    }
    if (rows) {
      addPerRow(edge.cost, added, least[index].ofV);
    } else {
      addPerColumn(edge.cost, added, least[index].ofU);
    }
  }
  labels[node] = std::min_element(total.begin(), total.end()) - total.begin();
  for (unsigned a = 0; a < size; ++a) {
    cost[a] -= open * share(a);
  }
}

void DualAscent::sweep(bool forward) {
  for (unsigned step = 0, end = core.getNumNodes(); step < end; ++step) {
    visit(forward ? step : end - 1 - step, forward);
  }
  keepIfBest();
}

void DualAscent::keepIfBest() {
  double value = core.getValue(labels);
  if (value < best) {
    best = value;
    bestLabels = labels;
  }
}

std::vector<double> DualAscent::getCosts(unsigned node) const {
  std::vector<double> costs = core.costs[node];
  unsigned size = costs.size();
  for (unsigned index : core.getEdges(node)) {
    const CoreEdge &edge = core.edges[index];
    unsigned other = edge.other(node), label = labels[other];
    bool rows = edge.u == node;
    const double *cost = edge.cost.data() + (rows ? label : label * size);
    size_t stride = rows ? core.getSize(other) : 1;
    for (unsigned a = 0; a < size; ++a) {
      costs[a] += cost[a * stride];
    }
  }
  return costs;
}

void DualAscent::descend() {
  std::vector<char> queued(core.getNumNodes(), 1);
  std::vector<unsigned> work(core.getNumNodes());
  std::iota(work.begin(), work.end(), 0);
  // Every change lowers the cost, so this ends; the limit guards rounding.
  for (size_t at = 0; at < work.size() && at < 50 * labels.size(); ++at) {
    unsigned node = work[at];
    queued[node] = 0;
    std::vector<double> costs = getCosts(node);
    auto least = std::min_element(costs.begin(), costs.end());
    if (!(*least < costs[labels[node]])) {
      continue;
    }
    labels[node] = least - costs.begin();
    for (unsigned index : core.getEdges(node)) {
      unsigned other = core.edges[index].other(node);
      if (!queued[other]) {
        queued[other] = 1;
        work.push_back(other);
      }
    }
  }
  keepIfBest();
}

double DualAscent::getBound() const {
  double bound = core.constant;
  for (const std::vector<double> &cost : core.costs) {
    bound += getLeast(cost);
  }
  for (auto [edge, found] : llvm::zip_equal(core.edges, least)) {
    if (edge.alive) {
      bound += getLeast(found.ofU);
    }
  }
  return bound;
}

Kept DualAscent::getKept(double bound, double cutoff) const {
  double margin = cutoff - bound + kSlack * std::abs(cutoff);
  Kept kept(core.getNumNodes());
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    kept[node].resize(core.getSize(node));
    for (auto [keep, cost] : llvm::zip_equal(kept[node], excess[node])) {
      keep = cost <= margin;
    }
  }
  return kept;
}

void DualAscent::restrict(const Kept &kept) {
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    llvm::ArrayRef<char> keep = kept[node];
    core.restrict(node, keep);
    auto renumber = [&](unsigned label) {
      return llvm::count(keep.take_front(label), 1);
    };
    bestLabels[node] = renumber(bestLabels[node]);
    labels[node] = bestLabels[node];
    std::vector<double> left;
    for (auto [choice, cost] : llvm::enumerate(excess[node])) {
      if (keep[choice]) {
        left.push_back(cost);
      }
    }
    excess[node] = std::move(left);
  }
  findLeast();
}

} // namespace mlir::alpa
