//===- BooleanElements.h - Booleans in the text that is exchanged -*- C++
//-*-===//
//
// Constants of more than a hundred elements are printed as hexadecimal bytes.
// For booleans this MLIR takes one bit for an element, and jaxlib's one byte.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_CAPI_BOOLEANELEMENTS_H
#define CPP_CAPI_BOOLEANELEMENTS_H

#include "llvm/ADT/StringRef.h"
#include <string>

namespace mlir::alpa {

/// A text of jaxlib's as this MLIR reads it. Constants of bits are kept.
std::string packBooleans(llvm::StringRef text);

/// A text of this MLIR's as jaxlib reads it. Constants of bytes are kept.
std::string unpackBooleans(llvm::StringRef text);

} // namespace mlir::alpa

#endif // CPP_CAPI_BOOLEANELEMENTS_H
