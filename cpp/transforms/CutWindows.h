//===- CutWindows.h - Windows over longer dimensions ------------*- C++ -*-===//
//
// Convolutions, pooling and its gradient on dimensions that are longer, with as
// much padding behind as makes their results as long as blocks ask for.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_CUTWINDOWS_H
#define CPP_TRANSFORMS_CUTWINDOWS_H

#include "cpp/transforms/CutForms.h"

namespace mlir::alpa {

/// See `getCutForm`.
std::optional<CutForm> getWindowForm(Operation *op, ArrayRef<Shape> operands,
                                     const PaddingOptions &options);

/// See `createCut`.
SmallVector<Value> createLongerWindow(OpBuilder &builder, Operation *op,
                                      ValueRange operands, const CutForm &form);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_CUTWINDOWS_H
