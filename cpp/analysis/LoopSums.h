//===- LoopSums.h - Sums that loops carry -----------------------*- C++ -*-===//
//
// A loop's body may add to what it carries and do nothing else with it:
//
//   %0 = while(%sum = %zero, ...) {
//     %1 = dot_general ...
//     %2 = add %sum, %1
//     return %2, ...
//   }
//
// Such a sum may stay partial until the loop is done, if it begins as one: zero
// is a share of every sum.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_LOOPSUMS_H
#define CPP_ANALYSIS_LOOPSUMS_H

#include "dialects/alpa/DataFlow.h"

namespace mlir::alpa {

/// What the loop's body returns on an edge to which it only adds; null of other
/// edges.
OpOperand *getReturnedSum(Operation *op, const DataFlowEdge &edge);

/// True if the value goes into an addition whose result, perhaps after others,
/// a loop's body returns on an edge that begins with zeros and is only added
/// to.
bool isAddedToLoopSum(Value value);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_LOOPSUMS_H
