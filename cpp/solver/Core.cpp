//===- Core.cpp - A sum of costs over nodes and edges ---------------------===//

#include "cpp/solver/Core.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <numeric>

namespace mlir::alpa {

/// Relative to the largest cost: differences below it are rounding, so ties.
static constexpr double kTie = 1e-13;

static double getLargestFinite(llvm::ArrayRef<double> values) {
  double largest = 0.0;
  for (double value : values) {
    largest = std::isfinite(value) ? std::max(largest, value) : largest;
  }
  return largest;
}

Core::Core(std::vector<std::vector<double>> nodeCosts)
    : domains(nodeCosts.size()), costs(std::move(nodeCosts)),
      incident(costs.size()) {
  for (auto [domain, cost] : llvm::zip_equal(domains, costs)) {
    domain.resize(cost.size());
    std::iota(domain.begin(), domain.end(), 0);
    tolerance = std::max(tolerance, kTie * getLargestFinite(cost));
  }
}

void Core::addEdge(unsigned u, unsigned v, llvm::ArrayRef<double> cost) {
  tolerance = std::max(tolerance, kTie * getLargestFinite(cost));
  unsigned rows = getSize(u), columns = getSize(v);
  for (unsigned edge : incident[u]) {
    CoreEdge &known = edges[edge];
    if (known.other(u) != v) {
      continue;
    }
    for (unsigned row = 0; row < rows; ++row) {
      for (unsigned column = 0; column < columns; ++column) {
        unsigned at =
            known.u == u ? row * columns + column : column * rows + row;
        known.cost[at] += cost[row * columns + column];
      }
    }
    return;
  }
  incident[u].push_back(edges.size());
  incident[v].push_back(edges.size());
  edges.push_back({u, v, std::vector<double>(cost.begin(), cost.end())});
}

void Core::restrict(unsigned node, llvm::ArrayRef<char> keep) {
  unsigned size = getSize(node);
  llvm::SmallVector<unsigned, 64> left;
  for (unsigned choice = 0; choice < size; ++choice) {
    if (keep[choice]) {
      left.push_back(choice);
    }
  }
  if (left.size() == size) {
    return;
  }
  for (auto [to, from] : llvm::enumerate(left)) {
    domains[node][to] = domains[node][from];
    costs[node][to] = costs[node][from];
  }
  for (unsigned index : incident[node]) {
    CoreEdge &edge = edges[index];
    unsigned others = getSize(edge.other(node));
    double *cost = edge.cost.data();
    if (edge.u == node) {
      for (auto [to, from] : llvm::enumerate(left)) {
        std::copy_n(cost + from * others, others, cost + to * others);
      }
    } else {
      double *to = cost;
      for (unsigned row = 0; row < others; ++row) {
        for (unsigned from : left) {
          *to++ = cost[row * size + from];
        }
      }
    }
    edge.cost.resize(left.size() * others);
  }
  domains[node].resize(left.size());
  costs[node].resize(left.size());
}

void Core::removeEdge(unsigned edge) {
  edges[edge].alive = false;
  edges[edge].cost = {};
  for (unsigned node : {edges[edge].u, edges[edge].v}) {
    incident[node].erase(llvm::find(incident[node], edge));
  }
}

void Core::normalize(unsigned index) {
  CoreEdge &edge = edges[index];
  unsigned rows = getSize(edge.u), columns = getSize(edge.v);
  // An infinite least entry forbids the choice: it goes to the node alone.
  for (unsigned row = 0; row < rows; ++row) {
    double *cost = edge.cost.data() + row * columns;
    double least = *std::min_element(cost, cost + columns);
    costs[edge.u][row] += least;
    for (unsigned column = 0; column < columns; ++column) {
      cost[column] = std::isfinite(least) ? cost[column] - least : 0.0;
    }
  }
  std::vector<double> least(edge.cost.begin(), edge.cost.begin() + columns);
  for (unsigned row = 1; row < rows; ++row) {
    const double *cost = edge.cost.data() + row * columns;
    for (unsigned column = 0; column < columns; ++column) {
      least[column] = std::min(least[column], cost[column]);
    }
  }
  double largest = 0.0;
  for (unsigned column = 0; column < columns; ++column) {
    costs[edge.v][column] += least[column];
  }
  for (unsigned row = 0; row < rows; ++row) {
    double *cost = edge.cost.data() + row * columns;
    for (unsigned column = 0; column < columns; ++column) {
      cost[column] =
          std::isfinite(least[column]) ? cost[column] - least[column] : 0.0;
      largest = std::max(largest, cost[column]);
    }
  }
  if (largest <= tolerance) {
    removeEdge(index);
  }
}

bool Core::center(unsigned node) {
  double least = *std::min_element(costs[node].begin(), costs[node].end());
  if (!std::isfinite(least)) {
    return false;
  }
  constant += least;
  for (double &cost : costs[node]) {
    cost -= least;
  }
  return true;
}

int64_t Core::getNumEntries() const {
  int64_t count = 0;
  for (const CoreEdge &edge : edges) {
    count += edge.alive ? edge.cost.size() : 0;
  }
  return count;
}

double Core::getValue(llvm::ArrayRef<unsigned> labels) const {
  double value = constant;
  for (auto [cost, label] : llvm::zip_equal(costs, labels)) {
    value += cost[label];
  }
  for (const CoreEdge &edge : edges) {
    if (edge.alive) {
      value += edge.cost[labels[edge.u] * getSize(edge.v) + labels[edge.v]];
    }
  }
  return value;
}

} // namespace mlir::alpa
