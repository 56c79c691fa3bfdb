//===- Inlining.h - Bodies of called functions --------------------*- C++
//-*-===//

#ifndef CPP_TRANSFORMS_INLINING_H
#define CPP_TRANSFORMS_INLINING_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::alpa {

/// Replaces every call of a private function with one block by the function's
/// body, and erases private functions that nothing needs any more. Operators
/// get the location of the call, as with MLIR's inliner: name scopes of layers
/// are read from there.
///
/// Returns how often an operator was read, moved or copied, which is what takes
/// time. It is linear in the operators that come out, times the depth of calls:
/// callees come before their callers, and a function's last call takes its body
/// instead of a copy. Functions that are referred to other than by a call (a
/// decomposition, a comparator) stay. Fails, with the names, on functions that
/// call each other in a circle.
FailureOr<int64_t> inlineCalls(ModuleOp module);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_INLINING_H
