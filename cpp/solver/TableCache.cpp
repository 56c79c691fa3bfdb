//===- TableCache.cpp - Tables by content, and their minima ---------------===//

#include "cpp/solver/TableCache.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/xxhash.h"
#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

namespace mlir::alpa {

int TableCache::intern(CostTable table) {
  bool zero = true;
  for (double &entry : table.cost) {
    entry += 0.0; // -0.0 becomes 0.0: equal tables, equal bytes
    zero &= entry == 0.0;
  }
  if (zero) {
    return kZero;
  }
  llvm::ArrayRef<uint8_t> bytes(
      reinterpret_cast<const uint8_t *>(table.cost.data()),
      table.cost.size() * sizeof(double));
  // The two largest numbers are the map's own.
  uint64_t hash = llvm::xxh3_64bits(bytes) >> 1;
  llvm::SmallVector<int, 1> &equal = numbers[hash];
  for (int number : equal) {
    const CostTable &known = tables[number];
    if (known.shape == table.shape &&
        std::memcmp(known.cost.data(), table.cost.data(), bytes.size()) == 0) {
      return number;
    }
  }
  equal.push_back(tables.size());
  numEntries += table.cost.size();
  tables.push_back(std::move(table));
  return equal.back();
}

namespace {

/// A term's entries with one stride per place of the sum, 0 where it has none.
struct Operand {
  const double *cost;
  llvm::SmallVector<size_t, 6> strides;
};

} // namespace

/// The least sum over place 0, for every index of the other places.
static std::vector<double> minimizeSum(llvm::ArrayRef<Operand> operands,
                                       llvm::ArrayRef<unsigned> shape) {
  size_t entries = 1;
  for (unsigned size : shape.drop_front()) {
    entries *= size;
  }
  std::vector<double> result(entries, std::numeric_limits<double>::infinity());
  unsigned rank = shape.size();
  unsigned last = rank > 1 ? shape.back() : 1;
  std::vector<double> sum(last);
  llvm::SmallVector<unsigned, 6> index(rank, 0);
  for (size_t block = 0; block < entries; block += last) {
    for (unsigned a = 0; a < shape[0]; ++a) {
      std::fill(sum.begin(), sum.end(), 0.0);
      for (const Operand &operand : operands) {
        size_t at = a * operand.strides[0];
        for (unsigned place = 1; place + 1 < rank; ++place) {
          at += index[place] * operand.strides[place];
        }
        const double *cost = operand.cost + at;
        size_t stride = rank > 1 ? operand.strides[rank - 1] : 0;
        if (stride == 0) {
          for (unsigned j = 0; j < last; ++j) {
            sum[j] += cost[0];
          }
        } else if (stride == 1) {
          for (unsigned j = 0; j < last; ++j) {
            sum[j] += cost[j];
          }
        } else {
          for (unsigned j = 0; j < last; ++j) {
            sum[j] += cost[j * stride];
          }
        }
      }
      double *to = result.data() + block;
      for (unsigned j = 0; j < last; ++j) {
        to[j] = std::min(to[j], sum[j]);
      }
    }
    // The next block: the last but one place moves fastest.
    for (unsigned place = rank - 1; place-- > 1;) {
      if (++index[place] < shape[place]) {
        break;
      }
      index[place] = 0;
    }
  }
  return result;
}

TableCache::Minimum TableCache::minimize(llvm::ArrayRef<Term> terms,
                                         llvm::ArrayRef<unsigned> shape) {
  llvm::SmallVector<Term, 4> key(terms);
  if (auto known = minima.find(key); known != minima.end()) {
    bool first = std::exchange(known->second.problem, problem) != problem;
    return {known->second.table, known->second.least, first};
  }
  ++numComputed;
  llvm::SmallVector<Operand, 6> operands;
  for (const Term &term : terms) {
    const CostTable &table = tables[term.table];
    Operand &operand = operands.emplace_back();
    operand.cost = table.cost.data();
    operand.strides.assign(shape.size(), 0);
    size_t stride = 1;
    for (unsigned axis = table.shape.size(); axis-- > 0;) {
      operand.strides[term.places[axis]] = stride;
      stride *= table.shape[axis];
    }
  }
  CostTable result;
  result.shape.assign(shape.drop_front().begin(), shape.end());
  result.cost = minimizeSum(operands, shape);
  double least = *std::min_element(result.cost.begin(), result.cost.end());
  for (double &entry : result.cost) {
    // An infinite least entry is the whole table: it goes with the constant.
    entry = std::isfinite(least) ? entry - least : 0.0;
  }
  int number = intern(std::move(result));
  minima.emplace(std::move(key), Known{number, least, problem});
  return {number, least, true};
}

void TableCache::clear() {
  tables.clear();
  numbers.clear();
  minima.clear();
  numEntries = 0;
}

} // namespace mlir::alpa
