//===- FusionRole.h - How an operator takes part in fusions -----*- C++ -*-===//
//
// Fusion as XLA's backends do it, in five words. Held against their buffer
// assignments by benchmarks/memory.py.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_FUSIONROLE_H
#define CPP_ANALYSIS_FUSIONROLE_H

#include "cpp/analysis/Backend.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::alpa {

enum class FusionRole {
  /// Reads stored operands and stores its results: a product, a collective, a
  /// sort, a loop.
  Kernel,
  /// Takes what computes its operands into its fusion and stores its results: a
  /// reduction, a scatter.
  Root,
  /// Computed again in the fusion of whatever reads it: elementwise operators,
  /// slices, look-ups.
  Fused,
  /// The same memory seen in another shape.
  View,
  /// Made from nothing wherever it is read: constants, counters.
  Generated,
};

FusionRole getFusionRole(Operation *op, Backend backend);

/// The roles of a program's operators, each found once.
class FusionRoles {
public:
  explicit FusionRoles(Backend backend) : backend(backend) {}

  Backend getBackend() const { return backend; }

  FusionRole get(Operation *op) {
    auto it = roles.find(op);
    return it != roles.end() ? it->second
                             : roles[op] = getFusionRole(op, backend);
  }

private:
  Backend backend;
  DenseMap<Operation *, FusionRole> roles;
};

/// A collective. Backends run it beside what is independent of it, and join it
/// with others of its kind: what it reads stays until its result is needed.
bool isAsynchronous(Operation *op);

/// Bytes that a kernel needs while it runs, as a share of those of its first
/// result.
double getScratchRatio(Operation *op, Backend backend);

/// True for a kernel that computes elementwise functions of an operand itself.
bool takesPrologue(Operation *op, Backend backend);

/// True for what a kernel that takes prologues does not compute in its operand:
/// a look-up, a reversal; of XLA for GPU a slice, a concatenation, and a
/// broadcast along leading dimensions, such as that of a bias, as well.
bool endsPrologue(Operation *op, Backend backend);

/// True for the array in which XLA for TPU looks up places: the kernel that
/// does so computes nothing of it, and reads it in memory.
bool isLookedUp(OpOperand &operand, Backend backend);

/// True for functions of so many instructions that a fusion does not compute
/// them again for each of its readers.
bool isExpensive(Operation *op);

/// False for a value that kernels see in another shape than the program: a
/// product of more than a batch, a left and a right dimension is made as a
/// matrix, and what is computed elementwise from it is not written over it.
bool keepsShape(Value value);

/// The operand that a result may be written over although it is no elementwise
/// function of it: the array that an update writes into, what a loop carries.
/// Null where there is none.
Value getUpdatedOperand(Operation *op, unsigned result);

/// The value that an addition has numbers scattered into: `x + scatter(0, u)`
/// is `scatter(x, u)` to XLA. Null for all else, and for what XLA for TPU
/// computes without a scatter: one number per row, by comparing its place with
/// a counter.
Value getScatteredInto(Operation *op, Backend backend);

/// The operand that a loop hands on as it is; null where there is none.
Value getUnchangedOperand(Operation *op, unsigned result);

/// True if a result lies in memory while the regions of its operator run:
/// what a loop carries or puts together slice by slice.
bool isMadeInside(Operation *op, unsigned result);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_FUSIONROLE_H
