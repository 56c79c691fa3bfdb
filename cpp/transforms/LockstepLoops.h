//===- LockstepLoops.h - Loops that each row leaves by itself ---*- C++ -*-===//

#ifndef CPP_TRANSFORMS_LOCKSTEPLOOPS_H
#define CPP_TRANSFORMS_LOCKSTEPLOOPS_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// Whether an operator says of all rows of a loop that each leaves by itself
/// what it says of some of them, as long as any of these goes on.
///
/// If any row wants another turn, where rows are left as they are that do not:
/// what `jax.vmap` makes of a `while_loop` whose predicate is batched.
///
///     while any(p(z)): z = select(p(z), f(z), z)
///     while i < n and any(p): i, p, z = i + 1, p and q(z), select(p, f(z), z)
///     while any(p(z)): m, z = m and p(f(z)), select(m, f(z), z)
///
/// Some of the rows come to the same in a loop of their own, which may have
/// fewer turns. What turns are counted by (`i`) is not used behind it.
///
/// In the body, how many turns rows have taken: all that go on as many, and
/// others no more. Equinox asks so where solvers do something in some turns.
///
///     if max(count + 1) % 10 == 0: ...
///     if any(count == 0): ...              // of rows that go on
bool isLockstepReduction(Operation *op);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_LOCKSTEPLOOPS_H
