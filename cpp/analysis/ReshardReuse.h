//===- ReshardReuse.h - What one reshard may serve --------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_RESHARDREUSE_H
#define CPP_ANALYSIS_RESHARDREUSE_H

#include "dialects/alpa/Alpa.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::alpa {

/// Says which operators share the result of a reshard that stands before the
/// first of them.
///
/// A result that takes no more memory than its operand is kept in its place.
/// One that takes more, because it was gathered, would be kept beside it from
/// the first operator to the last. So phases do not share it: a stage would
/// hold it for every micro-batch in flight. Nor do operators of one phase that
/// are farther apart than `reach`.
class ReshardReuse {
public:
  /// \param reach operators between the first that reads a gathered value and
  ///        the last; 0: all those of the phase.
  ReshardReuse(func::FuncOp function, unsigned reach);

  /// Whether `user`, of the same block, may read what `reshard` leaves.
  bool serves(ReshardOp reshard, Operation *user) const;
  /// Whether a later reshard may start from what `reshard` leaves.
  bool serves(ReshardOp reshard, ReshardOp later) const;

private:
  unsigned reach;
  /// Of operators as they stood before there were reshards.
  DenseMap<Operation *, unsigned> positions;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_RESHARDREUSE_H
