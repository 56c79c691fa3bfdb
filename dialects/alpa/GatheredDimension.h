//===- GatheredDimension.h - Where gathered values lie ----------*- C++ -*-===//

#ifndef DIALECTS_ALPA_GATHEREDDIMENSION_H
#define DIALECTS_ALPA_GATHEREDDIMENSION_H

#include "mlir/Support/LLVM.h"
#include <cstdint>

namespace mlir::alpa {

/// Along which new dimension devices gather what they have of a shape to
/// combine it: the first, or of a vector the one behind it. XLA for TPU adds up
/// vectors that it gathers one behind another, unless each fills rows of 128
/// words.
int64_t getGatheredDim(ArrayRef<int64_t> shape);

} // namespace mlir::alpa

#endif // DIALECTS_ALPA_GATHEREDDIMENSION_H
