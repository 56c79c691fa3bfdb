//===- PlanVerification.h - Does a plan follow from itself ------*- C++ -*-===//
//
// A plan names a strategy on every operator; shardings and partial sums follow.
// What is written beside the strategies is proved here, so that lowering, which
// relies on it, writes a program that computes what the global one computes.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_PLANVERIFICATION_H
#define CPP_ANALYSIS_PLANVERIFICATION_H

#include "dialects/alpa/Alpa.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// How far a plan has come.
struct PlanState {
  /// Reshards stand between producers and consumers that differ.
  bool isResharded = true;
  /// The mesh is the axis of time: positions are micro-batches, and values
  /// leave it through joins.
  bool isTime = false;
};

/// Emits an error at the first operator, argument or result whose sharding does
/// not follow. One walk; takes the time of making every operator's rule once.
LogicalResult verifyPlan(func::FuncOp entry, MeshAttr mesh,
                         PlanState state = {});

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_PLANVERIFICATION_H
