//===- PaddedRewriting.h - Longer operators in their place ------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_PADDEDREWRITING_H
#define CPP_TRANSFORMS_PADDEDREWRITING_H

#include "cpp/transforms/CutForms.h"
#include "cpp/transforms/PaddedValues.h"
#include <memory>

namespace mlir::alpa {

/// Puts the longer forms of operators in their place. Values that others read
/// are cut to their sizes behind them.
class PaddedRewriting {
public:
  /// An operator with longer loops, in the order of the program.
  ///
  /// \param factors of the rule that become longer.
  /// \param sizes of all factors.
  void add(Operation *op, ShardingRule rule,
           const llvm::SmallBitVector &factors, ArrayRef<int64_t> sizes);

  /// An operator that cuts or joins longer dimensions; see CutForms.h.
  void add(Operation *op, CutForm form);

  void run();

private:
  struct Longer {
    Operation *op;
    ShardingRule rule;
    std::optional<LongerLoops> loops;
    CutForm cut;
  };

  void rewriteLoops(Operation *op, const LongerLoops &loops);
  void rewriteCut(Operation *op, const CutForm &cut);
  Filling keepsFilling(Operation *op, const LongerLoops &loops) const;

  SmallVector<std::unique_ptr<Longer>> operators;
  PaddedValues values;
  DenseMap<Value, Filling> required;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PADDEDREWRITING_H
