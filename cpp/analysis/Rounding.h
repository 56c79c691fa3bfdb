//===- Rounding.h - Numbers that are stored in other bits -------*- C++ -*-===//
//
// What XLA for TPU stores in another precision than the program has it in.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_ROUNDING_H
#define CPP_ANALYSIS_ROUNDING_H

#include "cpp/analysis/FusionRole.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/Value.h"
#include <memory>

namespace mlir::alpa {

/// Finds values that XLA for TPU stores in another precision.
///
/// Those of f32 are stored in 16 bits where products alone read them, which
/// round them (at the default precision), perhaps after they were moved to
/// other places or devices, or through a loop (`BFloat16Propagation`). The
/// fusion that makes one may sum it up besides.
class Rounding {
public:
  explicit Rounding(FusionRoles &roles) : roles(roles) {}

  /// True for what is stored in 16 bits.
  bool isRounded(Value value);
  /// True for a product of 16 bits that is stored in f32: what reads it is
  /// computed in f32, so that the rounding is left out
  /// (`xla_allow_excess_precision`). Maxima and minima of what is widened are
  /// taken before that: they, and all else that is read, read 16 bits then.
  /// Other sums beside functions leave it in 16 bits as well, in kernels of
  /// jax 0.10.2; they are counted in 32.
  bool isWidened(Value value);

private:
  /// Adds what a user hands on of a value to `group`. False if it reads the
  /// numbers themselves.
  bool follow(OpOperand &use, SmallVectorImpl<Value> &group);
  const DataFlowEdges &getEdges(DataFlowOpInterface op);

  FusionRoles &roles;
  DenseMap<Operation *, std::unique_ptr<DataFlowEdges>> edges;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_ROUNDING_H
