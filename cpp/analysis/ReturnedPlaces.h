//===- ReturnedPlaces.h - What lies where results will be -------*- C++ -*-===//
//
// What is returned has memory from the beginning: that of a donated argument of
// its type, or its own. Until it is written, and the argument is read no more,
// the place is empty, and XLA puts other values there that are no larger and
// end before (`BufferAssigner::MaybeAssignBuffer`). It goes by decreasing size,
// and does not move what it has placed: values may be left that would fit, and
// larger ones lie beside the empty places.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_RETURNEDPLACES_H
#define CPP_ANALYSIS_RETURNEDPLACES_H

#include "cpp/analysis/StoredValue.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include <vector>

namespace mlir::alpa {

/// The memory of a result, and the points at which nothing lies there,
/// inclusive.
struct ReturnedPlace {
  /// The donated argument whose memory it is, or what is returned.
  Value value;
  /// Of places of a size the last one is filled first: arguments come before
  /// results.
  unsigned number;
  int start, end;
  /// Which of the copies of the next point is written there.
  int order;
  /// Of its bytes to those of its elements.
  double ratio;
};

/// Puts values into the places, and adds to them what the places hold besides:
/// memory where nothing lies, or less than there is room for.
/// \param orders of values that are copied into places, which of the copies of
///        that point it is: the value ends before the next one is written.
void fillReturnedPlaces(ArrayRef<ReturnedPlace> places,
                        const DenseMap<Value, int> &orders,
                        std::vector<StoredValue> &values);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_RETURNEDPLACES_H
