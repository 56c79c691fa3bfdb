//===- Communication.h - What a planned module moves ------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_COMMUNICATION_H
#define CPP_ANALYSIS_COMMUNICATION_H

#include "cpp/analysis/Leeway.h"
#include "cpp/analysis/ReshardPlanner.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir::alpa {

/// One collective of a planned module.
struct CollectiveVolume {
  std::string name;
  CollectiveKind kind;
  uint32_t axes;
  /// Payload per device; see ReshardStep::elements.
  double bytes;
  /// How often it runs per step: trip counts of the loops around it.
  double count;
  /// What it may run beside.
  Beside beside = Beside::Nothing;
};

/// How often an operator runs in one run of its function: the trip counts of
/// the loops around it.
double getRunsPerStep(Operation *op);

/// The collectives that lowering will emit for a module with shardings and
/// reshards, in order. Steps that stay on the device are left out.
FailureOr<std::vector<CollectiveVolume>> getCommunication(ModuleOp module);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_COMMUNICATION_H
