//===- Elementwise.cpp - registration and behaviour of a family of operations
//---===//

#include "stablehlo/dialect/AssemblyFormat.h"

using namespace mlir;
using namespace mlir::stablehlo;

#define GET_OP_CLASSES
#include "stablehlo/dialect/StablehloElementwise.cpp.inc"

void StablehloDialect::registerElementwiseOps() {
  addOperations<
#define GET_OP_LIST
#include "stablehlo/dialect/StablehloElementwise.cpp.inc"
      >();
}

OpFoldResult ConvertOp::fold(FoldAdaptor) {
  return getOperand().getType() == getType() ? OpFoldResult(getOperand())
                                             : OpFoldResult();
}

LogicalResult AddOp::inferReturnTypes(MLIRContext *,
                                      std::optional<Location> location,
                                      ValueRange operands, DictionaryAttr,
                                      OpaqueProperties, RegionRange,
                                      SmallVectorImpl<Type> &results) {
  if (operands.empty()) {
    return emitOptionalError(location, "needs at least one operand");
  }
  FailureOr<Type> type =
      hlo::inferMostSpecificType(location, operands.getTypes());
  if (failed(type)) {
    return failure();
  }
  results.push_back(*type);
  return success();
}
