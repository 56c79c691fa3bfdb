//===- DonatedPlaces.h - What lies in donated arguments ---------*- C++ -*-===//
//
// The memory of a donated argument is kept for what is returned in it. Where
// that is not written over the argument itself, as when a split state is
// gathered again behind its update, the place is empty from the argument's last
// reader on, and XLA puts other values there that end before what is returned
// is written (`BufferAssigner::MaybeAssignBuffer`). It goes by decreasing size,
// and does not move what it has placed: values may be left that would fit.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_DONATEDPLACES_H
#define CPP_ANALYSIS_DONATEDPLACES_H

#include "cpp/analysis/StoredValue.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/DenseMap.h"
#include <vector>

namespace mlir::alpa {

/// A donated argument, and the points at which nothing lies there, inclusive.
struct DonatedPlace {
  BlockArgument argument;
  int start, end;
  /// Which of the copies of the next point is written there.
  int order;
};

/// Puts values into the places, and adds to them what the places hold besides:
/// the argument's memory where nothing lies there, or less than there is room
/// for.
/// \param orders of values that are copied into places, which of the copies of
///        that point it is: the value ends before the next one is written.
void fillDonatedPlaces(ArrayRef<DonatedPlace> places,
                       const DenseMap<Value, int> &orders,
                       std::vector<StoredValue> &values);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_DONATEDPLACES_H
