//===- Leeway.h - What computing need not wait for --------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_LEEWAY_H
#define CPP_ANALYSIS_LEEWAY_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"

namespace mlir::alpa {

/// What a collective may run beside.
enum class Beside : int8_t {
  /// What follows waits for it.
  Nothing,
  /// The rest of the backward phase: gradients, which only the update of the
  /// state waits for.
  Gradients,
  /// The layers before it: parameters, which are there from the start.
  Parameters,
};

/// Of every value whether products wait for it. Takes time linear in the
/// program.
class Leeway {
public:
  explicit Leeway(func::FuncOp function);

  /// What a collective of a value may run beside.
  Beside get(Value value) const;

private:
  void visit(Block &block);

  /// Values from which a product is reached, or a result that is neither the
  /// state after the step nor a sum over micro-batches.
  llvm::DenseSet<Value> urgent;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_LEEWAY_H
