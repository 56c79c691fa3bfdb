//===- DimensionPadding.h - Sizes that the devices do not divide -*- C++ -*-==//

#ifndef CPP_TRANSFORMS_DIMENSIONPADDING_H
#define CPP_TRANSFORMS_DIMENSIONPADDING_H

#include "cpp/transforms/PaddedOperators.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace mlir::alpa {

/// Makes loops of products longer whose sizes are no multiples, where the
/// products of each have a good share of the program's FLOPs and its blocks
/// become smaller by it. Arguments and results of the function keep their
/// shapes; the values that are padded are those between the products and the
/// places where least has to be padded and sliced off.
///
/// What stands behind the elements of the program never reaches one of them:
/// where a loop is reduced, it is replaced by the neutral element first.
void padDimensions(func::FuncOp function, const PaddingOptions &options);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_DIMENSIONPADDING_H
