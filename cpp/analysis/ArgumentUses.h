//===- ArgumentUses.h - What a program does with its arguments --*- C++ -*-===//
//
// How the first product that reads an argument uses each of its dimensions:
// what a person who splits the weights of a model by hand goes by.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_ARGUMENTUSES_H
#define CPP_ANALYSIS_ARGUMENTUSES_H

#include "cpp/analysis/DimensionClasses.h"
#include <vector>

namespace mlir::alpa {

/// Whether an operator multiplies its operands and sums up: a matrix product or
/// a convolution.
bool isProduct(const ShardingRule &rule);
/// The same of an operator; false without a rule.
bool isProduct(Operation *op);

/// The use of a dimension of an argument.
enum class DimensionUse : int8_t {
  /// By no product.
  None,
  /// All operands have it, and the result, or it counts the groups that the
  /// rows of another operand come in: the experts of a mixture.
  Batch,
  /// It is summed over: the input features of a matrix.
  Contracted,
  /// The argument alone brings it into the result: the output features.
  Free,
  /// Data say which of its rows are read: the vocabulary of an embedding.
  LookedUp,
};

/// Per argument and dimension its use by the first operator, in order of the
/// program, that is a product of the argument with something else or looks its
/// rows up. Up to there the argument may be converted, transposed, sliced or
/// scaled, and be handed into regions.
std::vector<std::vector<DimensionUse>>
getArgumentUses(func::FuncOp function, const DimensionClasses &classes);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_ARGUMENTUSES_H
