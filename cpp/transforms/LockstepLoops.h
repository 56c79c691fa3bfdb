//===- LockstepLoops.h - Loops that each row leaves by itself ---*- C++ -*-===//

#ifndef CPP_TRANSFORMS_LOCKSTEPLOOPS_H
#define CPP_TRANSFORMS_LOCKSTEPLOOPS_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// Whether an operator says if any row wants another turn of a loop that leaves
/// rows as they are that do not: what `jax.vmap` makes of a `while_loop` whose
/// predicate is batched.
///
///     while any(p(z)): z = select(p(z), f(z), z)
///     while i < n and any(p): i, p, z = i + 1, p and q(z), select(p, f(z), z)
///
/// Some of the rows come to the same in a loop of their own, which may have
/// fewer turns. What turns are counted by (`i`) is not used behind it.
bool isLockstepPredicate(Operation *op);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_LOCKSTEPLOOPS_H
