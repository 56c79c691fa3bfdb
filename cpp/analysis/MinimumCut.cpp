//===- MinimumCut.cpp - Cheapest separation of a network ------------------===//

#include "cpp/analysis/MinimumCut.h"

#include <algorithm>
#include <cassert>

namespace mlir::alpa {

unsigned MinimumCut::addNode() {
  edgesOf.emplace_back();
  return edgesOf.size() - 1;
}

void MinimumCut::addEdge(unsigned from, unsigned to, double capacity) {
  edgesOf[from].push_back(edges.size());
  edges.push_back({to, capacity});
  edgesOf[to].push_back(edges.size());
  edges.push_back({from, 0});
}

bool MinimumCut::findLevels() {
  levels.assign(edgesOf.size(), -1);
  levels[kSource] = 0;
  std::vector<unsigned> reached = {kSource};
  for (size_t index = 0; index < reached.size(); ++index) {
    unsigned node = reached[index];
    for (unsigned edge : edgesOf[node]) {
      unsigned to = edges[edge].to;
      if (edges[edge].rest > 0 && levels[to] < 0) {
        levels[to] = levels[node] + 1;
        reached.push_back(to);
      }
    }
  }
  return levels[kSink] >= 0;
}

double MinimumCut::augment(double limit) {
  // Not recursive: a path may be as long as the program.
  llvm::SmallVector<unsigned, 64> path;
  unsigned node = kSource;
  while (node != kSink) {
    bool advances = false;
    for (; next[node] < edgesOf[node].size(); ++next[node]) {
      unsigned edge = edgesOf[node][next[node]];
      unsigned to = edges[edge].to;
      if (edges[edge].rest > 0 && levels[to] == levels[node] + 1) {
        path.push_back(edge);
        node = to;
        advances = true;
        break;
      }
    }
    if (advances) {
      continue;
    }
    if (path.empty()) {
      return 0;
    }
    node = edges[path.pop_back_val() ^ 1].to;
    ++next[node];
  }
  for (unsigned edge : path) {
    limit = std::min(limit, edges[edge].rest);
  }
  assert(limit < kUncuttable && "source and sink cannot be separated");
  for (unsigned edge : path) {
    edges[edge].rest -= limit;
    edges[edge ^ 1].rest += limit;
  }
  return limit;
}

llvm::BitVector MinimumCut::findSourceSide() {
  while (findLevels()) {
    next.assign(edgesOf.size(), 0);
    while (augment(kUncuttable) > 0) {
    }
  }
  llvm::BitVector side(edgesOf.size());
  for (auto [node, level] : llvm::enumerate(levels)) {
    if (level >= 0) {
      side.set(node);
    }
  }
  return side;
}

} // namespace mlir::alpa
