//===- Exactness.cpp - What every program makes the same bits of ----------===//

#include "cpp/analysis/Exactness.h"

#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// True for integers of any width, and floats that are no narrower.
static bool widens(stablehlo::ConvertOp op) {
  Type from = getElementTypeOrSelf(op.getOperand());
  Type to = getElementTypeOrSelf(op.getResult());
  return isa<IntegerType>(from) ||
         (isa<FloatType>(from) && isa<FloatType>(to) &&
          from.getIntOrFloatBitWidth() < to.getIntOrFloatBitWidth());
}

bool isExact(Operation *op) {
  if (auto convert = dyn_cast<stablehlo::ConvertOp>(op);
      convert && widens(convert)) {
    return true;
  }
  if (isa<stablehlo::ReduceOp, stablehlo::ReduceWindowOp>(op)) {
    return llvm::all_of(op->getRegion(0).front().without_terminator(),
                        [](Operation &inner) { return isExact(&inner); });
  }
  bool makesFloats = llvm::any_of(op->getResultTypes(), [](Type type) {
    return !isa<IntegerType>(getElementTypeOrSelf(type));
  });
  return (!makesFloats && op->getNumRegions() == 0) ||
         isa<stablehlo::AbsOp, stablehlo::BitcastConvertOp,
             stablehlo::BroadcastInDimOp, stablehlo::CeilOp, stablehlo::ClampOp,
             stablehlo::ConcatenateOp, stablehlo::ConstantOp,
             stablehlo::DynamicSliceOp, stablehlo::DynamicUpdateSliceOp,
             stablehlo::FloorOp, stablehlo::GatherOp, stablehlo::IotaOp,
             stablehlo::MaxOp, stablehlo::MinOp, stablehlo::NegOp,
             stablehlo::PadOp, stablehlo::ReshapeOp, stablehlo::ReverseOp,
             stablehlo::RoundNearestEvenOp, stablehlo::RoundOp,
             stablehlo::SelectOp, stablehlo::SignOp, stablehlo::SliceOp,
             stablehlo::SortOp, stablehlo::TransposeOp>(op);
}

bool picksElements(Operation *op) {
  return isExact(op) &&
         isa<stablehlo::ConcatenateOp, stablehlo::DynamicSliceOp,
             stablehlo::GatherOp, stablehlo::ReduceOp,
             stablehlo::ReduceWindowOp, stablehlo::SliceOp, stablehlo::SortOp>(
             op);
}

} // namespace mlir::alpa
