//===- StoredValue.h - A value in memory ------------------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_STOREDVALUE_H
#define CPP_ANALYSIS_STOREDVALUE_H

#include "mlir/IR/Value.h"

namespace mlir::alpa {

/// What lies in memory of a value: itself, what the kernel that makes it needs
/// beside it, a copy in another order (see MemoryOrder.h), or room for it in
/// which it is not yet (see ReturnedPlaces.h).
enum class StoredForm { Value, Scratch, Copy, Place };

/// A value that lies in memory from one program point to another, inclusive.
struct StoredValue {
  Value value;
  int start, end;
  /// Bytes in memory for each byte of the value.
  double ratio = 1;
  StoredForm form = StoredForm::Value;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_STOREDVALUE_H
