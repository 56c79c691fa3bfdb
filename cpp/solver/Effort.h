//===- Effort.h - How much the solver does ----------------------*- C++ -*-===//
//
// What is found follows from how much is done, and that is counted: entries of
// tables that are looked at. A busy machine finds what an idle one finds. The
// clock is the last resort, and says so.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_SOLVER_EFFORT_H
#define CPP_SOLVER_EFFORT_H

#include <chrono>
#include <cstdint>
#include <limits>

namespace mlir::alpa {

struct Effort {
  using Clock = std::chrono::steady_clock;

  /// Entries that may be looked at.
  int64_t most = std::numeric_limits<int64_t>::max();
  Clock::time_point deadline = Clock::time_point::max();
  /// Entries that were looked at.
  int64_t spent = 0;
  /// The clock has ended it.
  bool late = false;

  /// Whether no more may be done.
  bool isOver() {
    late |= Clock::now() > deadline;
    return late || spent >= most;
  }
};

} // namespace mlir::alpa

#endif // CPP_SOLVER_EFFORT_H
