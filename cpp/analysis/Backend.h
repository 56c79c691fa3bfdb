//===- Backend.h - Whose rules a program is compiled by ---------*- C++ -*-===//

#ifndef CPP_ANALYSIS_BACKEND_H
#define CPP_ANALYSIS_BACKEND_H

#include "llvm/ADT/StringRef.h"

namespace mlir::alpa {

/// A compiler of XLA, as far as it stores and schedules unlike the others.
enum class Backend { Gpu, Tpu };

/// The compiler of a platform of jax ("cuda", "rocm", "tpu", "cpu"; empty where
/// nobody says): that for GPU stands for all but "tpu".
inline Backend getBackend(llvm::StringRef platform) {
  return platform == "tpu" ? Backend::Tpu : Backend::Gpu;
}

/// Whether the compiler of a platform splits the sums of products (see
/// SplitSums.h): for GPU alone, where that for CPU is no GPU's.
inline bool splitsSums(llvm::StringRef platform) {
  return platform != "tpu" && platform != "cpu";
}

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_BACKEND_H
