//===- CutForms.h - Operators that cut dimensions ---------------*- C++ -*-===//
//
// A slice, or a window without padding, leaves a dimension some elements
// shorter than the one that it is of; a pad or a concatenation makes it as long
// again. In between, the longer forms have as many elements as the dimension
// that was cut, those of the program first: blocks of the one lie under blocks
// of the other.
//
//   %1 = slice %x[1:64]  : 63     // x moved by one, whose last is not counted
//   %2 = window %x, size 3 : 62   // padded behind by two
//   %3 = pad %1, low = 1 : 64     // moved back
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_CUTFORMS_H
#define CPP_TRANSFORMS_CUTFORMS_H

#include "cpp/transforms/PaddedOperators.h"

namespace mlir::alpa {

using Shape = SmallVector<int64_t>;

/// The longer form of an operator that cuts.
struct CutForm {
  /// Longer shapes of operands and of each result; those that they have where
  /// nothing is longer.
  SmallVector<Shape> operands;
  Shape result;
  /// What has to stand behind the elements of operands.
  SmallVector<Filling> fillings;
};

/// The form of an operator whose operands have longer shapes; none where it
/// does not cut, or cannot be made longer. `result` is longer where the
/// operator begins what is longer, and as it was where it ends it.
std::optional<CutForm> getCutForm(Operation *op, ArrayRef<Shape> operands,
                                  const PaddingOptions &options);

/// Creates that form on longer operands.
SmallVector<Value> createCut(OpBuilder &builder, Operation *op,
                             ValueRange operands, const CutForm &form);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_CUTFORMS_H
