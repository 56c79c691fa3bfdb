//===- DimensionClasses.h - Dimensions that go together ---------*- C++ -*-===//
//
// Which dimensions of a function's tensors are split together, as far as the
// sharding rules of its operators say: the batch of all activations, the hidden
// features between two products, the rows of an embedding.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_DIMENSIONCLASSES_H
#define CPP_ANALYSIS_DIMENSIONCLASSES_H

#include "cpp/analysis/OperatorRules.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/ShardingRule.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/BitVector.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"

namespace mlir::alpa {

/// A dimension that no other dimension goes with.
inline constexpr int64_t kNoClass = -1;

/// Dimensions are in one class if a chain of operators keeps them together:
/// each has a factor, not replicated, that is the major one of both.
///
/// What is made of nothing joins nothing: a constant, or the dimension that a
/// broadcast adds, is the same for all of its users by accident.
///
///   %0 = broadcast_in_dim %zero : tensor<64xf32>   // of a bias and of a norm
///   %1 = dot_general %x[b, m], %w[m, n]            // {b}, {m}, {n}
///   %2 = add %1, broadcast_in_dim %bias[n]         // {n} of %w and %bias
class DimensionClasses {
public:
  DimensionClasses(func::FuncOp function, OperatorRules &rules);

  /// How many classes there are.
  unsigned size() const;

  /// The class of a dimension; `kNoClass` if it is made of nothing.
  int64_t get(Value value, unsigned dim) const;

  /// Per dimension of a tensor its class; empty for any other value.
  SmallVector<int64_t> get(Value value) const;

  /// Per factor of an operator the class of the dimensions whose major part it
  /// is.
  SmallVector<int64_t> getOfFactors(Operation *op,
                                    const ShardingRule &rule) const;

  /// Whether a value depends on no argument of the function.
  bool isMade(Value value) const;

private:
  void number(Block &block);
  void number(Value value);
  void visit(Block &block, OperatorRules &rules);
  void visit(Operation *op, const ShardingRule &rule);
  void visit(DataFlowOpInterface op, OperatorRules &rules);
  /// Whether none of an operator's operands has iterations of a factor.
  bool isMade(Operation *op, const ShardingRule &rule, unsigned factor) const;
  bool isMade(Value value, unsigned dim) const;

  DenseMap<Value, unsigned> first;
  unsigned next = 0;
  /// Per dimension whether it is made of nothing.
  llvm::BitVector made;
  llvm::IntEqClasses classes;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_DIMENSIONCLASSES_H
