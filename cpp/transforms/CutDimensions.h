//===- CutDimensions.h - Dimensions a little shorter than others -*- C++ -*-==//

#ifndef CPP_TRANSFORMS_CUTDIMENSIONS_H
#define CPP_TRANSFORMS_CUTDIMENSIONS_H

#include "cpp/transforms/PaddedOperators.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Computes on as many elements as a dimension had that is a multiple, where
/// slices and windows without padding leave less of it: from where it is cut to
/// where it is as long again, reduced, or read by what has no longer form. What
/// stands behind the elements of the program never reaches one of them.
void padCutDimensions(func::FuncOp function, const PaddingOptions &options);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_CUTDIMENSIONS_H
