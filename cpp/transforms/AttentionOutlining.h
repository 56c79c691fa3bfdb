//===- AttentionOutlining.h - Attention as one operator ---------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_ATTENTIONOUTLINING_H
#define CPP_TRANSFORMS_ATTENTIONOUTLINING_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"

namespace mlir::alpa {

struct AttentionOptions {
  /// What has fewer keys stays as it is.
  int64_t fewestKeys = 1;
  /// Bytes of scores that a device makes at once.
  int64_t blockBytes = 1;
};

/// Puts `alpa.attention` and `alpa.attention_gradient` in the place of what is
/// made of scores; what is not recognised stays as it is.
void outlineAttention(func::FuncOp function, const AttentionOptions &options);

/// Puts what one device computes in the place of both operators.
void inlineAttention(ModuleOp module);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_ATTENTIONOUTLINING_H
