//===- OperatorShardings.h - Shardings of one planned operator --*- C++ -*-===//

#ifndef CPP_ANALYSIS_OPERATORSHARDINGS_H
#define CPP_ANALYSIS_OPERATORSHARDINGS_H

#include "cpp/analysis/FactorMapping.h"

namespace mlir::alpa {

/// The assignment of mesh axes to factors that the shardings written on a
/// planned operator imply; `kNoFactor` where an axis splits nothing.
inline FactorRow getPlannedFactorRow(Operation *op, const ShardingRule &rule,
                                     ArrayRef<int64_t> meshShape) {
  unsigned numAxes = meshShape.size();
  FactorRow factorRow(numAxes, kNoFactor);
  auto merge = [&](ArrayAttr shardings, ArrayRef<TensorFactors> tensors) {
    if (!shardings) {
      return;
    }
    for (auto [entry, tensor] : llvm::zip(shardings, tensors)) {
      FactorRow row =
          getFactorRow(rule, tensor, getRow(cast<ShardingAttr>(entry), numAxes),
                       meshShape, kNoFactor);
      for (unsigned axis = 0; axis < numAxes; ++axis) {
        factorRow[axis] =
            factorRow[axis] == kNoFactor ? row[axis] : factorRow[axis];
      }
    }
  };
  merge(op->getAttrOfType<ArrayAttr>(kResultsAttrName), rule.results);
  merge(op->getAttrOfType<ArrayAttr>(kOperandsAttrName), rule.operands);
  return factorRow;
}

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_OPERATORSHARDINGS_H
