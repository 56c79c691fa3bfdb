//===- TableCache.h - Tables by content, and their minima -------*- C++ -*-===//
//
// Equal tables get one number, and the minimum of a sum of tables is computed
// once per set of numbers and axes. A cache may serve any number of problems,
// one at a time.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_TABLECACHE_H
#define CPP_SOLVER_TABLECACHE_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

namespace mlir::alpa {

/// A table of costs over a few nodes, row-major.
struct CostTable {
  llvm::SmallVector<unsigned, 6> shape;
  std::vector<double> cost;
};

class TableCache {
public:
  /// A table whose axes stand at the given places of a sum.
  struct Term {
    int table;
    llvm::SmallVector<unsigned, 6> places;
    bool operator<(const Term &other) const {
      return std::tie(table, places) < std::tie(other.table, other.places);
    }
    bool operator==(const Term &other) const {
      return table == other.table && places == other.places;
    }
  };
  struct Minimum {
    /// Least entry 0; `kZero` when it is 0 everywhere.
    int table;
    /// What was the least entry; +inf when all were.
    double least;
    /// It was not asked for since `begin`, whether it was known or not.
    bool first;
  };

  /// Number of a table that is 0 everywhere.
  static constexpr int kZero = -1;

  /// The number of a table.
  int intern(CostTable table);
  const CostTable &getTable(int number) const { return tables[number]; }

  /// Begins another problem.
  void begin() { ++problem; }

  /// Minimises the sum of the terms over the axis at place 0.
  ///
  /// The places of the terms are 0 to shape.size() - 1. The result has the axes
  /// from place 1 on.
  Minimum minimize(llvm::ArrayRef<Term> terms, llvm::ArrayRef<unsigned> shape);

  /// Forgets everything; numbers given before are void.
  void clear();

  /// Entries of all tables.
  int64_t getNumEntries() const { return numEntries; }
  /// Calls of `minimize` that were computed.
  uint64_t getNumComputed() const { return numComputed; }

private:
  struct Known {
    int table;
    double least;
    /// The last problem that asked for it.
    uint64_t problem;
  };

  std::vector<CostTable> tables;
  llvm::DenseMap<uint64_t, llvm::SmallVector<int, 1>> numbers;
  std::map<llvm::SmallVector<Term, 4>, Known> minima;
  uint64_t problem = 0;
  int64_t numEntries = 0;
  uint64_t numComputed = 0;
};

} // namespace mlir::alpa

#endif // CPP_SOLVER_TABLECACHE_H
