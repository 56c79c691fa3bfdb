//===- Guards.h - What MLIR itself does not survive -------------*- C++ -*-===//
//
// Text and modules on which MLIR 22 aborts or takes all memory. They are
// refused before they reach it.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_GUARDS_H
#define CPP_ANALYSIS_GUARDS_H

#include "mlir/IR/Operation.h"

namespace mlir::alpa {

/// Results that one operator of a text may have.
inline constexpr uint64_t kMaxResults = 1 << 16;

/// The parser allocates as many results as a number behind a value name says,
/// `%0#7` or `%0:7`, before anything is checked. Returns the first such number
/// above `kMaxResults`; empty if there is none.
StringRef findHugeResultNumber(StringRef text);

/// Dense elements of integers without bits, `tensor<4xi0>`, parse and cannot be
/// printed. Returns the first such element type; empty if there is none.
StringRef findZeroWidthElements(StringRef text);

/// Why a text must not be handed to the parser; empty if it may.
std::string getReasonToRefuse(StringRef text);

/// MLIR takes an unknown operator with one region for a possible symbol table,
/// and some of its passes crash on it. Emits an error if there is one.
LogicalResult refuseUnknownRegions(Operation *root);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_GUARDS_H
