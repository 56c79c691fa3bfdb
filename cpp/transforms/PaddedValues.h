//===- PaddedValues.h - Values with longer dimensions -----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_PADDEDVALUES_H
#define CPP_TRANSFORMS_PADDEDVALUES_H

#include "cpp/transforms/PaddedOperators.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SetVector.h"
#include <optional>

namespace mlir::alpa {

/// The longer form of every value that has one, and what stands behind its
/// elements.
class PaddedValues {
public:
  /// Notes that `made`, of the same or a longer shape, stands for `value`.
  void set(Value value, Value made, Filling filling);

  /// The form of `value` with a longer shape, filled as required: as it was
  /// set, or else made of the value, again where it is made of constants and
  /// with a `pad` otherwise.
  Value get(Value value, ArrayRef<int64_t> shape, Filling required);

  /// What is known to stand behind the elements of that form.
  Filling getFilling(Value value, ArrayRef<int64_t> shape) const;

  /// Puts what has been set in the place of the values, cut to their sizes.
  void replace();

private:
  struct Form {
    Value value;
    Filling filling = Filling::Anything;

    ArrayRef<int64_t> getShape() const;
  };

  Form make(Value value, ArrayRef<int64_t> shape, Filling required);
  Form extend(Value value, const Form &form, ArrayRef<int64_t> shape,
              Filling filling);
  std::optional<Form> remake(Value value, ArrayRef<int64_t> shape,
                             unsigned depth);
  Operation *remakeOperator(Operation *op, ArrayRef<int64_t> shape,
                            unsigned depth);
  Value fill(const Form &form, Value value, Filling filling);

  /// Values that were set, in the order in which they were made.
  llvm::SetVector<Value> made;
  /// Forms of a value with different longer dimensions; first that which was
  /// set, whose longer dimensions all others have as well.
  DenseMap<Value, SmallVector<Form, 1>> forms;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PADDEDVALUES_H
