//===- Minimize.cpp - Least plan of a core --------------------------------===//

#include "cpp/solver/Minimize.h"

#include "cpp/solver/Branching.h"
#include "cpp/solver/DualAscent.h"
#include "cpp/solver/Reduce.h"

#include "llvm/ADT/STLExtras.h"
#include <algorithm>
#include <cmath>

namespace mlir::alpa {

/// Sweeps between two looks at the bound (heuristic).
static constexpr unsigned kPeriod = 5;
/// The gap must shrink to this part of itself in a period, or it is stuck
/// (heuristic).
static constexpr double kProgress = 0.99999;
/// A cache that holds more entries than this is emptied first: 1 GB.
static constexpr int64_t kCacheFull = 125'000'000;

namespace {

class Minimizer {
public:
  Minimizer(Core start, const MinimizeOptions &options, TableCache &cache,
            Effort &effort)
      : core(std::move(start)), options(options), cache(cache), effort(effort) {
    for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
      result.kept.emplace_back(core.domains[node].back() + 1, 0);
    }
  }

  MinimizeResult run();

private:
  bool reduce();
  void drop();
  std::optional<Elimination> eliminate();
  void finish(llvm::ArrayRef<unsigned> labels);
  void recordKept();

  Core core;
  const MinimizeOptions &options;
  TableCache &cache;
  Effort &effort;
  MinimizeResult result;
  std::vector<ReductionStep> steps;
  std::vector<unsigned> best;
};

} // namespace

bool Minimizer::reduce() {
  effort.spent += core.getNumEntries();
  return mlir::alpa::reduce(core, steps);
}

/// Drops strategies by the bound until elimination takes small tables.
void Minimizer::drop() {
  DualAscent dual(core);
  double lastGap = kInfinity;
  for (unsigned sweep = 1; sweep <= options.maxSweeps; ++sweep) {
    // Both ends of an edge look at it.
    effort.spent += 2 * core.getNumEntries();
    bool last = sweep == options.maxSweeps || effort.isOver();
    if (sweep % kPeriod != 0 && !last) {
      dual.sweep(sweep % 2 != 0);
      continue;
    }
    double bound = dual.getBound();
    dual.sweep(sweep % 2 != 0);
    dual.descend();
    result.numSweeps = sweep;
    result.bound = std::max(result.bound, bound);
    Kept kept = dual.getKept(bound, std::min(dual.getBest(), options.cutoff));
    for (auto [node, label] : llvm::enumerate(dual.getBestLabels())) {
      kept[node][label] = 1; // rounding must not drop the plan itself
    }
    dual.restrict(kept);
    for (auto [node, keep] : llvm::enumerate(kept)) {
      core.restrict(node, keep);
    }
    double gap = dual.getBest() - bound;
    if (last || gap <= kRounding * std::abs(dual.getBest()) ||
        bound >= options.cutoff || gap > kProgress * lastGap ||
        getEliminationOrder(core, options.small)) {
      break;
    }
    lastGap = gap;
  }
  best.assign(dual.getBestLabels().begin(), dual.getBestLabels().end());
}

void Minimizer::finish(llvm::ArrayRef<unsigned> labels) {
  result.choices.assign(core.getNumNodes(), 0);
  for (auto [node, label] : llvm::enumerate(labels)) {
    result.choices[node] = core.domains[node][label];
  }
  expand(steps, result.choices);
}

void Minimizer::recordKept() {
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    for (int32_t choice : core.domains[node]) {
      result.kept[node][choice] = 1;
    }
  }
  for (const ReductionStep &step : steps) {
    for (int32_t choice : step.domain) {
      result.kept[step.node][choice] = 1;
    }
  }
}

/// Eliminates what is left. Whether tables have room does not depend on those
/// of problems before.
std::optional<Elimination> Minimizer::eliminate() {
  bool isFresh = cache.getNumEntries() == 0;
  int64_t before = effort.spent;
  std::optional<Elimination> found =
      mlir::alpa::eliminate(core, result.order, cache, effort);
  if (!found) {
    cache.clear();
    if (!isFresh && !effort.isOver()) {
      effort.spent = before;
      found = mlir::alpa::eliminate(core, result.order, cache, effort);
    }
  }
  return found;
}

MinimizeResult Minimizer::run() {
  if (cache.getNumEntries() > kCacheFull) {
    cache.clear();
  }
  if (!reduce()) {
    return std::move(result);
  }
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    result.numNodes += core.getSize(node) > 1;
    result.numChoices += core.getSize(node) > 1 ? core.getSize(node) : 0;
  }
  if (!getEliminationOrder(core, options.small)) {
    drop();
    // The best plan's labels do not outlive further reductions.
    finish(best);
    recordKept();
    if (result.bound >= options.cutoff) {
      result.status = MinimizeStatus::GivenUp;
      return std::move(result);
    }
    if (!reduce()) {
      return std::move(result);
    }
  } else {
    recordKept();
  }
  result.status = MinimizeStatus::GivenUp;
  std::optional<EliminationOrder> order =
      getEliminationOrder(core, options.limits);
  if (!order) {
    return std::move(result);
  }
  result.order = std::move(*order);
  std::optional<Elimination> found = eliminate();
  if (!found) {
    return std::move(result);
  }
  result.numComputed = found->computed;
  result.bound = found->value;
  result.status = std::isfinite(found->value) ? MinimizeStatus::Optimal
                                              : MinimizeStatus::Infeasible;
  finish(found->labels);
  return std::move(result);
}

DropResult drop(Core core, double cutoff, unsigned numSweeps) {
  DropResult result;
  for (unsigned node = 0, end = core.getNumNodes(); node < end; ++node) {
    result.kept.emplace_back(core.getSize(node), 1);
  }
  DualAscent dual(core);
  for (unsigned sweep = 1; sweep <= numSweeps; ++sweep) {
    result.bound = dual.getBound();
    dual.sweep(sweep % 2 != 0);
  }
  if (numSweeps != 0) {
    result.kept = dual.getKept(result.bound, cutoff);
  }
  return result;
}

MinimizeResult minimize(const Core &core, const MinimizeOptions &options,
                        TableCache &cache, Effort &effort) {
  MinimizeResult result = Minimizer(core, options, cache, effort).run();
  if (result.status != MinimizeStatus::GivenUp || result.choices.empty() ||
      options.maxBranches == 0) {
    return result;
  }
  return branch(core, std::move(result), options, cache, effort);
}

} // namespace mlir::alpa
