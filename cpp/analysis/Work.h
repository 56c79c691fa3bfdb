//===- Work.h - FLOPs and memory traffic of a program -----------*- C++ -*-===//

#ifndef CPP_ANALYSIS_WORK_H
#define CPP_ANALYSIS_WORK_H

#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir::alpa {

/// What one operator of a per-device program does, all its runs together.
struct OperatorWork {
  double flops;
  double bytes;
  /// Element type that the FLOPs are done in.
  std::string dtype;
};

/// The operators of a per-device module that do something. Bytes are those that
/// cross fusions; see Materialization.h.
FailureOr<std::vector<OperatorWork>> getWork(ModuleOp module);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_WORK_H
