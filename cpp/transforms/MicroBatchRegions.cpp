//===- MicroBatchRegions.cpp - Parts of a batch through regions -----------===//

#include "cpp/transforms/MicroBatchStates.h"

namespace mlir::alpa {

namespace {

/// What two ways to a value have in common; none if nothing.
std::optional<TimeEntry> merge(TimeEntry left, TimeEntry right) {
  if (left == right || right == kReplicated) {
    return left;
  }
  return left == kReplicated ? std::optional(right) : std::nullopt;
}

/// The entry of an edge outside of regions, from that of a value inside.
TimeEntry getOuterEntry(const DataFlowEdge &edge, TimeEntry inner) {
  bool isBehind = edge.sliced && inner >= static_cast<TimeEntry>(*edge.sliced);
  return isBehind ? inner + 1 : inner;
}

} // namespace

std::optional<TimeEntry> getInnerEntry(const DataFlowEdge &edge,
                                       TimeEntry entry) {
  if (!edge.sliced || entry < static_cast<TimeEntry>(*edge.sliced)) {
    return entry;
  }
  return entry == static_cast<TimeEntry>(*edge.sliced)
             ? std::nullopt
             : std::optional<TimeEntry>(entry - 1);
}

SmallVector<TimeEntry> getEdgeEntries(Operation *op, const DataFlowEdges &edges,
                                      const TimeRows &rows) {
  SmallVector<TimeEntry> entries(edges.size(), kReplicated);
  for (auto [index, entry] : llvm::enumerate(rows.operands)) {
    if (auto edge = edges.find(op->getOpOperand(index))) {
      entries[*edge] = entry;
    }
  }
  for (auto [index, entry] : llvm::enumerate(rows.results)) {
    if (auto edge = edges.find(op->getResult(index))) {
      entries[*edge] = entry;
    }
  }
  return entries;
}

void MicroBatchStates::clear(Region &region) {
  region.walk([&](Operation *op) {
    chosen.erase(op);
    causes.erase(op);
    joining.erase(op);
    for (Value result : op->getResults()) {
      states.erase(result);
    }
  });
  for (Value argument : region.getArguments()) {
    states.erase(argument);
  }
}

bool MicroBatchStates::visitRegion(Region &region, const DataFlowEdges &edges,
                                   ArrayRef<TimeEntry> entries) {
  clear(region);
  for (BlockArgument argument : region.getArguments()) {
    std::optional<unsigned> edge = edges.find(argument);
    if (!edge) {
      continue;
    }
    std::optional<TimeEntry> inner =
        getInnerEntry(edges[*edge], entries[*edge]);
    if (!inner) {
      return false;
    }
    setState(argument, *inner);
  }
  return llvm::all_of(region, [&](Block &block) { return visit(block); });
}

std::optional<SmallVector<TimeEntry>>
MicroBatchStates::getFirstEntries(DataFlowOpInterface op,
                                  const DataFlowEdges &edges,
                                  ArrayRef<TimeEntry> least) const {
  SmallVector<TimeEntry> entries(least);
  entries.resize(edges.size(), kReplicated);
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<unsigned> edge = edges.find(operand);
    if (!edge) {
      // All micro-batches have to go the same way.
      if (!getCost(operand.get(), kReplicated)) {
        return std::nullopt;
      }
      continue;
    }
    std::optional<TimeEntry> both =
        merge(entries[*edge], getState(operand.get()));
    if (!both) {
      return std::nullopt;
    }
    entries[*edge] = *both;
  }
  return entries;
}

std::optional<bool>
MicroBatchStates::mergeReturned(DataFlowOpInterface op,
                                const DataFlowEdges &edges,
                                SmallVector<TimeEntry> &entries) const {
  bool isAgain = false;
  auto mergeSource = [&](OpOperand &source) {
    std::optional<unsigned> edge = edges.find(source);
    TimeEntry state = getState(source.get());
    if (!edge) {
      // All micro-batches have to take as many turns.
      return state == kReplicated;
    }
    std::optional<TimeEntry> both =
        merge(entries[*edge], getOuterEntry(edges[*edge], state));
    if (!both) {
      return false;
    }
    isAgain |= *both != entries[*edge] && edges[*edge].entersRegions();
    entries[*edge] = *both;
    return true;
  };
  for (Region &region : op->getRegions()) {
    for (Block &block : region) {
      if (!llvm::all_of(block.getTerminator()->getOpOperands(), mergeSource)) {
        return std::nullopt;
      }
    }
  }
  return isAgain;
}

/// Values on an edge are what comes in and what every run of the regions makes
/// of them.
bool MicroBatchStates::visitRegions(DataFlowOpInterface op,
                                    ArrayRef<TimeEntry> least) {
  Operation *before = refused;
  DataFlowEdges edges(op);
  std::optional<SmallVector<TimeEntry>> entries =
      getFirstEntries(op, edges, least);
  if (!entries) {
    return false;
  }
  for (bool isAgain = true; isAgain;) {
    bool isDone = llvm::all_of(op->getRegions(), [&](Region &region) {
      return visitRegion(region, edges, *entries);
    });
    std::optional<bool> merged =
        isDone ? mergeReturned(op, edges, *entries) : std::nullopt;
    if (!merged) {
      refused = before;
      return false;
    }
    isAgain = *merged;
  }
  setRegionRows(op, edges, *entries);
  return true;
}

void MicroBatchStates::setRegionRows(DataFlowOpInterface op,
                                     const DataFlowEdges &edges,
                                     ArrayRef<TimeEntry> entries) {
  TimeRows rows;
  for (OpOperand &operand : op->getOpOperands()) {
    std::optional<unsigned> edge = edges.find(operand);
    rows.operands.push_back(edge ? entries[*edge] : kReplicated);
  }
  for (Value result : op->getResults()) {
    std::optional<unsigned> edge = edges.find(result);
    rows.results.push_back(edge ? entries[*edge] : kReplicated);
    setState(result, rows.results.back());
  }
  chosen[op] = rows;
}

bool MicroBatchStates::splitRegions(DataFlowOpInterface op,
                                    ArrayRef<TimeEntry> wanted) {
  DataFlowEdges edges(op);
  SmallVector<TimeEntry> least(edges.size(), kReplicated);
  for (auto [result, entry] : llvm::zip(op->getResults(), wanted)) {
    std::optional<unsigned> edge = edges.find(result);
    if (edge && entry != kAfter) {
      least[*edge] = entry;
    }
  }
  bool isSplit = visitRegions(op, least);
  for (auto [entry, result] : llvm::zip(wanted, op->getResults())) {
    isSplit = isSplit && (entry == kAfter || entry == getState(result));
  }
  if (!isSplit) {
    for (Region &region : op->getRegions()) {
      clear(region);
    }
    chosen.erase(op);
    for (Value result : op->getResults()) {
      states.erase(result);
    }
  }
  return isSplit;
}

} // namespace mlir::alpa
