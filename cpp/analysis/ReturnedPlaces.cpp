//===- ReturnedPlaces.cpp - What lies where results will be ---------------===//

#include "cpp/analysis/ReturnedPlaces.h"
#include "dialects/alpa/Sharding.h"
#include "llvm/ADT/STLExtras.h"
#include <climits>

namespace mlir::alpa {

namespace {

/// A place with what lies in it, in order.
struct Filled {
  ReturnedPlace place;
  double bytes;
  SmallVector<StoredValue> inside;

  /// Puts a value there if it fits beside what is there.
  bool take(StoredValue &value, int order) {
    std::pair<int, int> last{value.end, order},
        next{place.end + 1, place.order};
    StoredValue cut = value;
    cut.end = std::min(value.end, place.end);
    if (value.start < place.start || cut.end < cut.start || last >= next ||
        llvm::any_of(
            inside,
            [&](const StoredValue &other) {
              return other.start <= cut.end && cut.start <= other.end;
            })) {
      return false;
    }
    inside.push_back(value = cut);
    return true;
  }
};

} // namespace

static double getBytes(const StoredValue &value) {
  return value.ratio * getTensorBytes(value.value.getType());
}

/// The memory without what lies there.
static void addEmpty(Filled &filled, std::vector<StoredValue> &values) {
  llvm::sort(filled.inside,
             [](const StoredValue &left, const StoredValue &right) {
               return left.start < right.start;
             });
  int start = filled.place.start;
  auto add = [&](int end, double ratio) {
    if (start <= end && ratio > 0) {
      values.push_back(
          {filled.place.value, start, end, ratio, StoredForm::Place});
    }
    start = end + 1;
  };
  double all = filled.place.ratio;
  for (const StoredValue &value : filled.inside) {
    add(value.start - 1, all);
    add(value.end, all * (1 - getBytes(value) / filled.bytes));
  }
  add(filled.place.end, all);
}

void fillReturnedPlaces(ArrayRef<ReturnedPlace> places,
                        const DenseMap<Value, int> &orders,
                        std::vector<StoredValue> &values) {
  std::vector<Filled> all;
  for (const ReturnedPlace &place : places) {
    double bytes = place.ratio * getTensorBytes(place.value.getType());
    if (place.start <= place.end && bytes > 0) {
      all.push_back({place, bytes, {}});
    }
  }
  if (all.empty()) {
    return;
  }
  // The smallest first, and of these the last that was made.
  llvm::sort(all, [](const Filled &left, const Filled &right) {
    return std::make_pair(left.bytes, right.place.number) <
           std::make_pair(right.bytes, left.place.number);
  });
  SmallVector<StoredValue *> waiting;
  for (StoredValue &value : values) {
    waiting.push_back(&value);
  }
  llvm::sort(waiting, [](const StoredValue *left, const StoredValue *right) {
    return std::make_tuple(getBytes(*right), left->start, left->end) <
           std::make_tuple(getBytes(*left), right->start, right->end);
  });
  for (StoredValue *value : waiting) {
    double bytes = getBytes(*value);
    auto order = orders.find(value->value);
    auto first = llvm::partition_point(
        all, [&](const Filled &filled) { return filled.bytes < bytes; });
    for (auto it = first; it != all.end(); ++it) {
      if (it->take(*value, order == orders.end() ? INT_MAX : order->second)) {
        break;
      }
    }
  }
  for (Filled &filled : all) {
    addEmpty(filled, values);
  }
}

} // namespace mlir::alpa
