//===- Minimize.cpp - The solver through the C interface ------------------===//

#include "cpp/solver/Minimize.h"
#include "cpp/capi/Result.h"
#include "cpp/capi/StablehloAlpa.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Twine.h"
#include <chrono>
#include <cmath>
#include <mutex>
#include <optional>

using namespace mlir::alpa;

struct AlpaSolverCache {
  TableCache tables;
  std::mutex mutex;
};

AlpaSolverCache *alpaSolverCacheCreate() { return new AlpaSolverCache(); }

void alpaSolverCacheDestroy(AlpaSolverCache *cache) { delete cache; }

AlpaMinimizeOptions alpaMinimizeOptionsDefault() {
  MinimizeOptions options;
  return {options.limits.largest,
          options.limits.total,
          options.small.largest,
          options.small.total,
          std::numeric_limits<int64_t>::max(),
          1e9,
          options.maxBranches,
          options.maxSweeps};
}

/// Why the costs are no problem of ours; empty if they are.
static std::string getMistake(const AlpaCosts &costs) {
  size_t numNodeCosts = 0, numEdgeCosts = 0;
  for (int64_t size : llvm::ArrayRef(costs.sizes, costs.numNodes)) {
    if (size <= 0 || size > static_cast<int64_t>(costs.numNodeCosts)) {
      return ("a node has " + llvm::Twine(size) + " choices").str();
    }
    numNodeCosts += size;
  }
  if (numNodeCosts != costs.numNodeCosts) {
    return ("nodes have " + llvm::Twine(numNodeCosts) + " choices, costs of " +
            llvm::Twine(costs.numNodeCosts) + " are given")
        .str();
  }
  int64_t numNodes = costs.numNodes;
  for (size_t edge = 0; edge < costs.numEdges; ++edge) {
    int64_t u = costs.edgeNodes[2 * edge], v = costs.edgeNodes[2 * edge + 1];
    if (u < 0 || v < 0 || u >= numNodes || v >= numNodes || u == v) {
      return ("edge " + llvm::Twine(edge) + " joins " + llvm::Twine(u) +
              " and " + llvm::Twine(v) + ", two different nodes below " +
              llvm::Twine(numNodes) + " are needed")
          .str();
    }
    numEdgeCosts += costs.sizes[u] * costs.sizes[v];
  }
  if (numEdgeCosts != costs.numEdgeCosts) {
    return ("edges have " + llvm::Twine(numEdgeCosts) +
            " pairs of choices, costs of " + llvm::Twine(costs.numEdgeCosts) +
            " are given")
        .str();
  }
  auto isWrong = [](double cost) {
    return std::isnan(cost) || cost == -kInfinity;
  };
  if (llvm::any_of(llvm::ArrayRef(costs.nodeCosts, numNodeCosts), isWrong) ||
      llvm::any_of(llvm::ArrayRef(costs.edgeCosts, numEdgeCosts), isWrong)) {
    return "a cost is NaN or -inf";
  }
  return "";
}

static Core getCore(const AlpaCosts &costs) {
  std::vector<std::vector<double>> nodes;
  const double *next = costs.nodeCosts;
  for (int64_t size : llvm::ArrayRef(costs.sizes, costs.numNodes)) {
    nodes.emplace_back(next, next + size);
    next += size;
  }
  Core core(std::move(nodes));
  next = costs.edgeCosts;
  for (size_t edge = 0; edge < costs.numEdges; ++edge) {
    int64_t u = costs.edgeNodes[2 * edge], v = costs.edgeNodes[2 * edge + 1];
    size_t pairs = costs.sizes[u] * costs.sizes[v];
    core.addEdge(u, v, {next, pairs});
    next += pairs;
  }
  return core;
}

static std::vector<int8_t> flatten(const Kept &kept) {
  std::vector<int8_t> flat;
  for (const std::vector<char> &node : kept) {
    flat.insert(flat.end(), node.begin(), node.end());
  }
  return flat;
}

AlpaResult *alpaMinimize(const AlpaCosts *costs,
                         const AlpaMinimizeOptions *given,
                         AlpaSolverCache *cache) {
  auto *result = new AlpaResult();
  std::string mistake = getMistake(*costs);
  if (!mistake.empty()) {
    result->failed = true;
    result->error = "cannot minimise: " + mistake;
    return result;
  }
  MinimizeOptions options;
  options.limits = {given->maxTable, given->maxWork};
  options.small = {std::min(given->smallTable, given->maxTable),
                   std::min(given->smallWork, given->maxWork)};
  options.maxBranches = static_cast<unsigned>(
      std::clamp<int64_t>(given->maxBranches, 0, 1 << 20));
  options.maxSweeps =
      static_cast<unsigned>(std::clamp<int64_t>(given->maxSweeps, 1, 1 << 20));
  // A year is as good as for ever.
  double seconds = std::clamp(given->timeLimitSeconds, 0.0, 3e7);
  auto now = Effort::Clock::now();
  Effort effort;
  effort.most = given->maxEffort;
  effort.deadline = now + std::chrono::duration_cast<Effort::Clock::duration>(
                              std::chrono::duration<double>(seconds));
  std::optional<AlpaSolverCache> own;
  AlpaSolverCache &tables = cache ? *cache : own.emplace();
  std::lock_guard<std::mutex> lock(tables.mutex);
  MinimizeResult found =
      minimize(getCore(*costs), options, tables.tables, effort);

  result->addArray("choice", found.choices);
  result->addArray("kept", flatten(found.kept));
  result->addArray("bound", std::vector<double>{found.bound});
  auto addCount = [&](const char *name, int64_t count) {
    result->addArray(name, std::vector<int64_t>{count});
  };
  addCount("status", static_cast<int64_t>(found.status));
  addCount("num_nodes", found.numNodes);
  addCount("num_choices", found.numChoices);
  addCount("num_sweeps", found.numSweeps);
  addCount("largest", found.order.largest);
  addCount("work", found.order.total);
  addCount("width", found.order.width);
  addCount("num_steps", found.order.nodes.size());
  addCount("num_computed", found.numComputed);
  addCount("effort", effort.spent);
  addCount("is_late", effort.late);
  return result;
}

AlpaResult *alpaDropChoices(const AlpaCosts *costs, double cutoff,
                            int64_t numSweeps) {
  auto *result = new AlpaResult();
  std::string mistake = getMistake(*costs);
  auto isInfinite = [](double cost) { return !std::isfinite(cost); };
  if (mistake.empty() &&
      (llvm::any_of(llvm::ArrayRef(costs->nodeCosts, costs->numNodeCosts),
                    isInfinite) ||
       llvm::any_of(llvm::ArrayRef(costs->edgeCosts, costs->numEdgeCosts),
                    isInfinite))) {
    mistake = "a cost is infinite";
  }
  if (!mistake.empty()) {
    result->failed = true;
    result->error = "cannot drop choices: " + mistake;
    return result;
  }
  DropResult found = drop(getCore(*costs), cutoff,
                          std::clamp<int64_t>(numSweeps, 0, 1'000'000));
  result->addArray("kept", flatten(found.kept));
  result->addArray("bound", std::vector<double>{found.bound});
  return result;
}
