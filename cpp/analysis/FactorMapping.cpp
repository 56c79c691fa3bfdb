//===- FactorMapping.cpp - Between factors and tensor dimensions ----------===//

#include "cpp/analysis/FactorMapping.h"

namespace mlir::alpa {

SmallVector<int64_t> getFactorShards(const ShardingRule &rule,
                                     ArrayRef<int> factorRow,
                                     ArrayRef<int64_t> meshShape) {
  SmallVector<int64_t> shards(rule.factors.size(), 1);
  for (auto [axis, entry] : llvm::enumerate(factorRow)) {
    if (entry >= 0) {
      shards[entry] *= meshShape[axis];
    }
  }
  return shards;
}

/// The row of one tensor, axes dividing their factors; partial axes are added
/// by the caller.
static std::optional<ShardingRow> getTensorRow(const ShardingRule &rule,
                                               const TensorFactors &tensor,
                                               ArrayRef<int> factorRow,
                                               ArrayRef<int64_t> meshShape) {
  ShardingRow row(factorRow.size(), kReplicated);
  // What is left of every factor after the axes seen so far.
  SmallVector<int64_t, 8> rest;
  for (const Factor &factor : rule.factors) {
    rest.push_back(factor.size);
  }
  for (auto [axis, entry] : llvm::enumerate(factorRow)) {
    if (entry < 0) {
      continue;
    }
    unsigned factor = static_cast<unsigned>(entry);
    for (auto [dim, factors] : llvm::enumerate(tensor)) {
      for (unsigned other : factors) {
        if (other == factor) {
          row[axis] = static_cast<int8_t>(dim);
          break;
        }
        if (rest[other] != 1 && llvm::is_contained(factors, factor)) {
          return std::nullopt;
        }
      }
    }
    rest[factor] /= meshShape[axis];
  }
  return row;
}

std::optional<OperatorRows> getOperatorRows(const ShardingRule &rule,
                                            ArrayRef<int> factorRow,
                                            ArrayRef<int64_t> meshShape) {
  if (!llvm::all_of_zip(rule.factors,
                        getFactorShards(rule, factorRow, meshShape),
                        std::mem_fn(&Factor::canSplit))) {
    return std::nullopt;
  }
  OperatorRows rows;
  for (const TensorFactors &tensor : rule.operands) {
    auto row = getTensorRow(rule, tensor, factorRow, meshShape);
    if (!row) {
      return std::nullopt;
    }
    rows.operands.push_back(*row);
  }
  for (const TensorFactors &tensor : rule.results) {
    auto row = getTensorRow(rule, tensor, factorRow, meshShape);
    if (!row) {
      return std::nullopt;
    }
    rows.results.push_back(*row);
  }
  for (auto [axis, entry] : llvm::enumerate(factorRow)) {
    ArrayRef<unsigned> partialOperands;
    if (entry <= kLinearSet) {
      partialOperands = rule.linearOperands[kLinearSet - entry];
    } else if (entry != kNoFactor) {
      const Factor &factor = rule.factors[entry];
      if (factor.kind != FactorKind::Reduction ||
          factor.reduction != ReductionKind::Sum) {
        continue;
      }
      partialOperands = rule.accumulators;
    } else {
      continue;
    }
    for (unsigned operand : partialOperands) {
      rows.operands[operand][axis] = kPartial;
    }
    for (ShardingRow &result : rows.results) {
      result[axis] = kPartial;
    }
  }
  return rows;
}

FactorRow getFactorRow(const ShardingRule &rule, const TensorFactors &tensor,
                       ShardingRowRef row, ArrayRef<int64_t> meshShape,
                       int linearSet) {
  FactorRow factorRow(row.size(), kNoFactor);
  for (int8_t dim = 0; dim < static_cast<int8_t>(tensor.size()); ++dim) {
    ArrayRef<unsigned> factors = tensor[dim];
    size_t position = 0;
    int64_t rest = factors.empty() ? 1 : rule.factors[factors[0]].size;
    for (auto [axis, entry] : llvm::enumerate(row)) {
      if (entry != dim) {
        continue;
      }
      // A factor that is used up hands over to the next of the dimension.
      while (rest == 1 && position + 1 < factors.size()) {
        rest = rule.factors[factors[++position]].size;
      }
      if (position >= factors.size() ||
          rule.factors[factors[position]].kind == FactorKind::Replicated ||
          rest % meshShape[axis] != 0) {
        break;
      }
      factorRow[axis] = static_cast<int>(factors[position]);
      rest /= meshShape[axis];
    }
  }
  for (auto [axis, entry] : llvm::enumerate(row)) {
    if (entry == kPartial) {
      factorRow[axis] = linearSet;
    }
  }
  return factorRow;
}

SmallVector<FactorRow> enumerateFactorRows(const ShardingRule &rule,
                                           ArrayRef<int64_t> meshShape,
                                           ArrayRef<unsigned> linearSets) {
  SmallVector<FactorRow> rows;
  FactorRow row(meshShape.size(), kNoFactor);
  SmallVector<int64_t, 8> rest;
  for (const Factor &factor : rule.factors) {
    rest.push_back(factor.kind == FactorKind::Replicated ? 1 : factor.size);
  }
  auto visit = [&](auto &self, unsigned axis) -> void {
    if (axis == meshShape.size()) {
      rows.push_back(row);
      return;
    }
    row[axis] = kNoFactor;
    self(self, axis + 1);
    int64_t size = meshShape[axis];
    if (size == 1) {
      return;
    }
    for (unsigned factor = 0; factor < rest.size(); ++factor) {
      if (rest[factor] > 1 && rest[factor] % size == 0) {
        row[axis] = static_cast<int>(factor);
        rest[factor] /= size;
        self(self, axis + 1);
        rest[factor] *= size;
      }
    }
    for (unsigned set : linearSets) {
      row[axis] = kLinearSet - static_cast<int>(set);
      self(self, axis + 1);
    }
    row[axis] = kNoFactor;
  };
  visit(visit, 0);
  return rows;
}

bool holdsFor(const ShardingRule &rule, unsigned set, Shares shares) {
  return shares == Shares::OfMicroBatches || !rule.isAlgebraic(set);
}

SmallVector<unsigned>
getLinearSets(const ShardingRule &rule, Shares shares,
              function_ref<bool(unsigned operand)> canBePartial) {
  SmallVector<unsigned> sets;
  for (auto [index, set] : llvm::enumerate(rule.linearOperands)) {
    if (holdsFor(rule, index, shares) && llvm::all_of(set, canBePartial)) {
      sets.push_back(index);
    }
  }
  return sets;
}

int findLinearSet(const ShardingRule &rule, unsigned operand, Shares shares) {
  for (unsigned index : getLinearSets(
           rule, shares, [&](unsigned other) { return other == operand; })) {
    if (rule.linearOperands[index].size() == 1) {
      return static_cast<int>(index);
    }
  }
  return -1;
}

bool coversRule(const ShardingRule &rule, const TensorFactors &tensor) {
  for (unsigned index = 0; index < rule.factors.size(); ++index) {
    const Factor &factor = rule.factors[index];
    if (factor.size == 1) {
      continue;
    }
    bool isOfTensor = llvm::any_of(tensor, [&](const DimFactors &factors) {
      return llvm::is_contained(factors, index);
    });
    if (!isOfTensor || factor.kind == FactorKind::Replicated) {
      return false;
    }
  }
  return true;
}

} // namespace mlir::alpa
