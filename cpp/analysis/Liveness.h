//===- Liveness.h - Memory of a per-device module ---------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_LIVENESS_H
#define CPP_ANALYSIS_LIVENESS_H

#include "cpp/analysis/Backend.h"
#include "mlir/IR/BuiltinOps.h"
#include <string>
#include <vector>

namespace mlir::alpa {

struct LiveTensor {
  std::string name;
  double bytes;
};

/// Peak memory of a lowered module: the most that its stored values take at a
/// program point; see Materialization.h. Arguments that are not donated live
/// throughout.
struct MemoryProfile {
  double peakBytes = 0;
  /// What is live at the peak, largest first.
  std::vector<LiveTensor> live;
};

/// \param platform of jax, whose compiler's rules decide what is stored.
FailureOr<MemoryProfile> getMemoryProfile(ModuleOp module,
                                          ArrayRef<int64_t> donatedArguments,
                                          StringRef platform = "");

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_LIVENESS_H
