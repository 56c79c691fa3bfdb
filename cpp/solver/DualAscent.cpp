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

DualAscent::DualAscent(const Core &start)
    : core(start), excess(core.costs), labels(core.getNumNodes(), 0),
      bestLabels(labels), best(core.getValue(labels)) {}

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

/// The least entry per choice of a node: along the rows, or across them.
static void getLeast(const CoreEdge &edge, bool rows, unsigned size,
                     unsigned others, std::vector<double> &least) {
  const double *cost = edge.cost.data();
  least.resize(size);
  if (!rows) {
    std::copy_n(cost, size, least.begin());
    for (unsigned row = 1; row < others; ++row) {
      const double *from = cost + row * size;
      for (unsigned a = 0; a < size; ++a) {
        least[a] = std::min(least[a], from[a]);
      }
    }
    return;
  }
  for (unsigned a = 0; a < size; ++a) {
    least[a] = getLeast(llvm::ArrayRef(cost + a * others, others));
  }
}

/// Adds one number per choice of a node to all its entries.
static void addPerChoice(CoreEdge &edge, bool rows, unsigned others,
                         llvm::ArrayRef<double> added) {
  double *cost = edge.cost.data();
  unsigned size = added.size();
  for (unsigned row = 0, end = rows ? size : others; row < end; ++row) {
    if (rows) {
      for (unsigned b = 0; b < others; ++b) {
        cost[row * others + b] += added[row];
      }
    } else {
      for (unsigned a = 0; a < size; ++a) {
        cost[row * size + a] += added[a];
      }
    }
  }
}

void DualAscent::visit(unsigned node, bool forward) {
  std::vector<double> &cost = core.costs[node];
  unsigned size = cost.size();
  llvm::ArrayRef<unsigned> edges = core.getEdges(node);
  if (least.size() < edges.size()) {
    least.resize(edges.size());
  }
  unsigned decided = 0;
  for (auto [place, index] : llvm::enumerate(edges)) {
    const CoreEdge &edge = core.edges[index];
    unsigned other = edge.other(node);
    getLeast(edge, edge.u == node, size, core.getSize(other), least[place]);
    for (unsigned a = 0; a < size; ++a) {
      cost[a] += least[place][a];
    }
    decided += isDecided(node, other, forward);
  }
  double smallest = *std::min_element(cost.begin(), cost.end());
  core.constant += smallest;
  for (double &entry : cost) {
    entry -= smallest;
  }
  excess[node] = cost;

  unsigned open = edges.size() - decided;
  double part = open ? 1.0 / std::max(open, decided) : 0.0;
  std::vector<double> total = cost;
  // What is forbidden stays at the node.
  auto share = [&](unsigned a) {
    return std::isfinite(cost[a]) ? part * cost[a] : 0.0;
  };
  for (auto [place, index] : llvm::enumerate(edges)) {
    CoreEdge &edge = core.edges[index];
    unsigned other = edge.other(node), others = core.getSize(other);
    bool rows = edge.u == node, known = isDecided(node, other, forward);
    std::vector<double> &added = least[place];
    for (unsigned a = 0; a < size; ++a) {
      if (known) {
        unsigned at =
            rows ? a * others + labels[other] : labels[other] * size + a;
        total[a] += std::isfinite(total[a]) ? edge.cost[at] - added[a] : 0.0;
      }
      double collected = std::isfinite(added[a]) ? added[a] : 0.0;
      added[a] = (known ? 0.0 : share(a)) - collected;
    }
    addPerChoice(edge, rows, others, added);
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
  for (const CoreEdge &edge : core.edges) {
    if (edge.alive) {
      bound += getLeast(edge.cost);
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
}

} // namespace mlir::alpa
