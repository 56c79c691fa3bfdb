//===- PaddedLoop.h - A loop that many operators share ----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_PADDEDLOOP_H
#define CPP_TRANSFORMS_PADDEDLOOP_H

#include "cpp/analysis/DimensionClasses.h"
#include "cpp/transforms/PaddedOperators.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// The dimensions of one class (see DimensionClasses.h) that have one size.
struct SharedLoop {
  int64_t classNumber;
  int64_t size;
};

/// How often an operator runs in one run of the function.
double getRuns(Operation *op);

/// Calls `visit` for every operator that is planned, in the order of the
/// program: those of the function and of the regions that data flows through.
void forEachPlanned(Block &block, function_ref<void(Operation *)> visit);

/// The factors of an operator that run through the loop.
llvm::SmallBitVector findFactors(Operation *op, const ShardingRule &rule,
                                 const SharedLoop &loop,
                                 const DimensionClasses &classes);

/// Whether an operator can be padded along the loop: the factors are all that
/// it has of it, and a longer form is known.
bool canPadLoop(Operation *op, const ShardingRule &rule,
                const llvm::SmallBitVector &factors, const SharedLoop &loop,
                const DimensionClasses &classes);

/// The operators to be padded so that all products with the loop are, and least
/// has to be padded and sliced off around them: a minimum cut, in which a value
/// costs its bytes where operators on both sides have it. `bytes` is what the
/// cut costs.
///
///   %1 = dot %x, %w   : 8x5     // a product: padded
///   %2 = exp %1                 // padded: slicing here would cost 40 elements
///   %3 = reduce %2 over 5 : 8   // padded; the result no longer has the loop
///   %4 = add %w, ...            // of an argument: not padded
llvm::SetVector<Operation *> findPadded(func::FuncOp function,
                                        const SharedLoop &loop,
                                        const DimensionClasses &classes,
                                        double &bytes);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PADDEDLOOP_H
