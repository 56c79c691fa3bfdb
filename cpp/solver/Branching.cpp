//===- Branching.cpp - Nodes that many others depend on -------------------===//

#include "cpp/solver/Branching.h"

#include "cpp/solver/DualAscent.h"
#include "cpp/solver/Reduce.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>
#include <tuple>

namespace mlir::alpa {

/// Sweeps for a bound by which choices are ordered (heuristic).
static constexpr unsigned kSweeps = 40;

namespace {

class Branching {
public:
  Branching(const Core &core, const MinimizeOptions &options, TableCache &cache,
            Effort &effort)
      : core(core), options(options), cache(cache), effort(effort),
        numLeft(options.maxBranches) {}

  MinimizeResult run(MinimizeResult root);

private:
  struct Branch {
    Core core;
    unsigned label;
    double bound;
  };

  void visit(const Core &part, const MinimizeResult &found);
  void take(Branch &branch);
  std::vector<Branch> getBranches(const Core &part, unsigned node);
  void keepIfBest(llvm::ArrayRef<int32_t> choices);
  bool isHopeless(double bound) const {
    // Before a plan is known only what has none is.
    return bound >= value || (std::isfinite(value) &&
                              value - bound <= kRounding * std::abs(value));
  }

  const Core &core;
  const MinimizeOptions &options;
  TableCache &cache;
  Effort &effort;
  unsigned numLeft;
  std::vector<int32_t> best;
  double value = kInfinity;
  /// Least bound of what was not looked at to the end.
  double open = kInfinity;
};

/// The problem with the choices left that an optimum is among.
Core getRest(const Core &core, const Kept &kept) {
  Core rest = core;
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    std::vector<char> keep;
    for (int32_t choice : core.domains[node]) {
      keep.push_back(kept[node][choice]);
    }
    rest.restrict(node, keep);
  }
  return rest;
}

/// The node with the most undecided neighbours; none if all are decided.
std::optional<unsigned> getHub(const Core &core) {
  std::optional<unsigned> hub;
  std::pair<unsigned, unsigned> most = {0, 1};
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    unsigned size = core.getSize(node);
    unsigned degree = llvm::count_if(core.getEdges(node), [&](unsigned edge) {
      return core.getSize(core.edges[edge].other(node)) > 1;
    });
    if (size > 1 && std::pair(degree, size) > most) {
      most = {degree, size};
      hub = node;
    }
  }
  return hub;
}

} // namespace

void Branching::keepIfBest(llvm::ArrayRef<int32_t> choices) {
  std::vector<unsigned> labels(choices.begin(), choices.end());
  double cost = core.getValue(labels);
  if (cost < value) {
    value = cost;
    best.assign(choices.begin(), choices.end());
  }
}

/// Each choice of a node by itself, the one of the least bound first.
std::vector<Branching::Branch> Branching::getBranches(const Core &part,
                                                      unsigned node) {
  std::vector<Branch> branches;
  for (unsigned label = 0, end = part.getSize(node); label < end; ++label) {
    std::vector<char> keep(end, 0);
    keep[label] = 1;
    Branch branch = {part, label, kInfinity};
    branch.core.restrict(node, keep);
    Core reduced = branch.core;
    effort.spent += reduced.getNumEntries();
    std::vector<ReductionStep> steps;
    if (!reduce(reduced, steps)) {
      continue;
    }
    DualAscent dual(reduced);
    effort.spent += 2 * kSweeps * reduced.getNumEntries();
    for (unsigned sweep = 1; sweep <= kSweeps; ++sweep) {
      dual.sweep(sweep % 2 != 0);
    }
    branch.bound = dual.getBound();
    branches.push_back(std::move(branch));
  }
  llvm::sort(branches, [](const Branch &one, const Branch &other) {
    return std::tie(one.bound, one.label) < std::tie(other.bound, other.label);
  });
  return branches;
}

/// Goes into what was given up.
void Branching::visit(const Core &part, const MinimizeResult &found) {
  Core rest = getRest(part, found.kept);
  std::optional<unsigned> hub = getHub(rest);
  if (!hub) {
    open = std::min(open, found.bound);
    return;
  }
  for (Branch &branch : getBranches(rest, *hub)) {
    branch.bound = std::max(branch.bound, found.bound);
    take(branch);
  }
}

void Branching::take(Branch &branch) {
  if (isHopeless(branch.bound)) {
    return;
  }
  if (numLeft == 0 || effort.isOver()) {
    open = std::min(open, branch.bound);
    return;
  }
  --numLeft;
  MinimizeOptions inner = options;
  inner.maxBranches = 0;
  inner.cutoff = value;
  MinimizeResult found = minimize(branch.core, inner, cache, effort);
  if (!found.choices.empty()) {
    keepIfBest(found.choices);
  }
  found.bound = std::max(found.bound, branch.bound);
  if (found.status == MinimizeStatus::GivenUp && !isHopeless(found.bound)) {
    visit(branch.core, found);
  }
}

MinimizeResult Branching::run(MinimizeResult root) {
  keepIfBest(root.choices);
  visit(core, root);
  if (!best.empty()) {
    root.choices = best;
  }
  root.bound = std::max(root.bound, std::min(open, value));
  if (isHopeless(root.bound)) {
    root.bound = value;
    root.status = std::isfinite(value) ? MinimizeStatus::Optimal
                                       : MinimizeStatus::Infeasible;
  }
  return root;
}

MinimizeResult branch(const Core &core, MinimizeResult root,
                      const MinimizeOptions &options, TableCache &cache,
                      Effort &effort) {
  return Branching(core, options, cache, effort).run(std::move(root));
}

} // namespace mlir::alpa
