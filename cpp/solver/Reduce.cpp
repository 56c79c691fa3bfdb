//===- Reduce.cpp - Exact reductions of a core ----------------------------===//

#include "cpp/solver/Reduce.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

namespace mlir::alpa {

namespace {

class Reducer {
public:
  Reducer(Core &core, std::vector<ReductionStep> &steps)
      : core(core), steps(steps), queued(core.getNumNodes(), 0) {}

  bool run();

private:
  /// The edge's costs with `node` along the rows.
  std::vector<double> getRows(unsigned edge, unsigned node) const;
  /// True if choice b is as good as a whatever the neighbours choose.
  bool dominates(unsigned b, unsigned a, llvm::ArrayRef<double> costs) const;
  bool dropDominated(unsigned node);
  bool takeOut(unsigned node);
  /// The node that `step` takes out and each choice of its one neighbour.
  void addToNeighbour(const ReductionStep &step);
  /// The node that `step` takes out and each two choices of its neighbours.
  void addBetweenNeighbours(const ReductionStep &step);
  void normalizeEdges(unsigned node);
  void push(unsigned node);

  Core &core;
  std::vector<ReductionStep> &steps;
  std::vector<unsigned> work;
  std::vector<char> queued;
  /// Of the node at hand: its edges' costs, with it along the rows.
  llvm::SmallVector<std::vector<double>, 8> tables;
  llvm::SmallVector<unsigned, 8> widths;
};

} // namespace

void Reducer::push(unsigned node) {
  if (!queued[node]) {
    queued[node] = 1;
    work.push_back(node);
  }
}

std::vector<double> Reducer::getRows(unsigned index, unsigned node) const {
  const CoreEdge &edge = core.edges[index];
  if (edge.u == node) {
    return edge.cost;
  }
  unsigned rows = core.getSize(edge.u), columns = core.getSize(edge.v);
  std::vector<double> transposed(edge.cost.size());
  for (unsigned row = 0; row < rows; ++row) {
    for (unsigned column = 0; column < columns; ++column) {
      transposed[column * rows + row] = edge.cost[row * columns + column];
    }
  }
  return transposed;
}

bool Reducer::dominates(unsigned b, unsigned a,
                        llvm::ArrayRef<double> costs) const {
  // Rows have their least entry at 0, so every term of the sum is <= 0 and the
  // first look below the tolerance decides.
  double margin = costs[a] - costs[b];
  double limit = -core.getTolerance();
  if (!(margin >= limit)) {
    return false;
  }
  for (auto [table, width] : llvm::zip_equal(tables, widths)) {
    const double *first = table.data() + a * width;
    const double *second = table.data() + b * width;
    double least = kInfinity;
    for (unsigned s = 0; s < width; ++s) {
      // What is forbidden with a does not speak for it.
      double difference =
          first[s] == kInfinity ? kInfinity : first[s] - second[s];
      least = std::min(least, difference);
      // The least of all entries is no more.
      if (!(margin + least >= limit)) {
        return false;
      }
    }
    margin += least;
  }
  return true;
}

bool Reducer::dropDominated(unsigned node) {
  unsigned size = core.getSize(node);
  if (size == 1) {
    return false;
  }
  tables.clear();
  widths.clear();
  for (unsigned edge : core.getEdges(node)) {
    tables.push_back(getRows(edge, node));
    widths.push_back(core.getSize(core.edges[edge].other(node)));
  }
  llvm::ArrayRef<double> costs = core.costs[node];
  std::vector<char> keep(size, 1);
  bool dropped = false;
  for (unsigned a = 0; a < size; ++a) {
    for (unsigned b = 0; b < size && keep[a]; ++b) {
      if (a != b && keep[b] && dominates(b, a, costs) &&
          (b < a || !dominates(a, b, costs))) {
        keep[a] = 0;
        dropped = true;
      }
    }
  }
  if (dropped) {
    core.restrict(node, keep);
  }
  return dropped;
}

void Reducer::normalizeEdges(unsigned node) {
  auto edges = llvm::to_vector<8>(core.getEdges(node));
  for (unsigned edge : edges) {
    push(core.edges[edge].other(node));
    core.normalize(edge);
  }
}

void Reducer::addToNeighbour(const ReductionStep &step) {
  const auto &to = step.neighbours.front();
  unsigned width = to.domain.size();
  for (unsigned s = 0; s < width; ++s) {
    double least = kInfinity;
    for (unsigned a = 0; a < step.cost.size(); ++a) {
      least = std::min(least, step.cost[a] + to.cost[a * width + s]);
    }
    core.costs[to.node][s] += least;
  }
}

void Reducer::addBetweenNeighbours(const ReductionStep &step) {
  const auto &first = step.neighbours[0], &second = step.neighbours[1];
  unsigned rows = first.domain.size(), columns = second.domain.size();
  std::vector<double> joined(rows * columns, kInfinity);
  for (unsigned a = 0; a < step.cost.size(); ++a) {
    const double *right = second.cost.data() + a * columns;
    for (unsigned row = 0; row < rows; ++row) {
      double left = step.cost[a] + first.cost[a * rows + row];
      double *to = joined.data() + row * columns;
      for (unsigned column = 0; column < columns; ++column) {
        to[column] = std::min(to[column], left + right[column]);
      }
    }
  }
  core.addEdge(first.node, second.node, joined);
  for (unsigned edge : core.getEdges(first.node)) {
    if (core.edges[edge].other(first.node) == second.node) {
      core.normalize(edge);
      break;
    }
  }
}

bool Reducer::takeOut(unsigned node) {
  unsigned degree = core.getEdges(node).size();
  if (degree > 2 || (degree == 0 && core.getSize(node) == 1)) {
    return true;
  }
  ReductionStep step{node, core.domains[node], core.costs[node], {}};
  for (unsigned edge : core.getEdges(node)) {
    unsigned other = core.edges[edge].other(node);
    step.neighbours.push_back(
        {other, core.domains[other], getRows(edge, node)});
  }
  for (const auto &neighbour : step.neighbours) {
    for (unsigned edge : core.getEdges(node)) {
      if (core.edges[edge].other(node) == neighbour.node) {
        core.removeEdge(edge);
        break;
      }
    }
    push(neighbour.node);
  }
  if (degree == 1) {
    addToNeighbour(step);
  } else if (degree == 2) {
    addBetweenNeighbours(step);
  }
  // One choice of no cost stays in its place.
  std::vector<char> keep(step.cost.size(), 0);
  auto least = std::min_element(step.cost.begin(), step.cost.end());
  if (degree == 0) {
    core.constant += *least;
  }
  bool finite = std::isfinite(*least);
  keep[least - step.cost.begin()] = 1;
  core.restrict(node, keep);
  core.costs[node] = {0.0};
  steps.push_back(std::move(step));
  return finite;
}

bool Reducer::run() {
  for (unsigned edge = 0, end = core.edges.size(); edge < end; ++edge) {
    if (core.edges[edge].alive) {
      core.normalize(edge);
    }
  }
  for (unsigned node = core.getNumNodes(); node-- > 0;) {
    push(node);
  }
  while (!work.empty()) {
    unsigned node = work.back();
    work.pop_back();
    queued[node] = 0;
    if (!core.center(node)) {
      return false;
    }
    std::vector<char> finite;
    for (double cost : core.costs[node]) {
      finite.push_back(std::isfinite(cost));
    }
    bool changed = llvm::is_contained(finite, 0);
    core.restrict(node, finite);
    changed |= dropDominated(node);
    if (changed) {
      normalizeEdges(node);
      push(node);
      continue;
    }
    if (!takeOut(node)) {
      return false;
    }
  }
  return true;
}

bool reduce(Core &core, std::vector<ReductionStep> &steps) {
  return Reducer(core, steps).run();
}

void expand(llvm::ArrayRef<ReductionStep> steps,
            llvm::MutableArrayRef<int32_t> choices) {
  for (const ReductionStep &step : llvm::reverse(steps)) {
    std::vector<double> cost = step.cost;
    for (const auto &neighbour : step.neighbours) {
      auto found = llvm::lower_bound(neighbour.domain, choices[neighbour.node]);
      unsigned label = found - neighbour.domain.begin();
      for (unsigned a = 0; a < cost.size(); ++a) {
        cost[a] += neighbour.cost[a * neighbour.domain.size() + label];
      }
    }
    auto least = std::min_element(cost.begin(), cost.end());
    choices[step.node] = step.domain[least - cost.begin()];
  }
}

} // namespace mlir::alpa
