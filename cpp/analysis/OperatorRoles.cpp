//===- OperatorRoles.cpp - What merging says of operators -----------------===//

#include "cpp/analysis/OperatorRoles.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/LoopSums.h"
#include "dialects/alpa/Alpa.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

bool isTiny(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return !tensor || !tensor.hasStaticShape() ||
         tensor.getNumElements() <= kTinyElements;
}

bool isTinyEdge(Operation *op, const DataFlowEdge &edge) {
  auto whole = dyn_cast<RankedTensorType>(edge.getOuter(op).getType());
  if (!whole || isTiny(whole) || !edge.sliced) {
    return isTiny(edge.getOuter(op).getType());
  }
  return whole.getNumElements() / whole.getDimSize(*edge.sliced) <=
         kTinyElements;
}

/// How much smaller than its operand a reduced result may be and still stay
/// partial. Heuristic.
static constexpr int64_t kDelayRatio = 16;

/// A sum over dimensions of one, which is how JAX differentiates the addition
/// of a bias.
static bool dropsDimensions(Operation *op) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  if (!reduce || reduce.getInputs().size() != 1) {
    return false;
  }
  auto operand = cast<RankedTensorType>(reduce.getInputs().front().getType());
  auto result = cast<RankedTensorType>(reduce->getResult(0).getType());
  return operand.getNumElements() == result.getNumElements();
}

/// Zeros around shares of a sum are shares of the sum with zeros around it: how
/// JAX differentiates a slice.
static bool padsWithZeros(Operation *op) {
  auto pad = dyn_cast<stablehlo::PadOp>(op);
  return pad && isZero(pad.getPaddingValue());
}

/// The value goes into a sum over micro-batches or over the turns of a loop and
/// nowhere else, perhaps in another shape or type.
static bool isAccumulated(Value value) {
  while (value.hasOneUse()) {
    Operation *user = *value.user_begin();
    if (isa<AccumulateOp>(user) ||
        (!isTiny(value.getType()) && isAddedToLoopSum(value))) {
      return true;
    }
    if (!isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::ConvertOp,
             stablehlo::ConcatenateOp>(user) &&
        !dropsDimensions(user) && !padsWithZeros(user)) {
      return false;
    }
    value = user->getResult(0);
  }
  return false;
}

bool delaysReduction(Operation *op) {
  if (isAccumulated(op->getResult(0))) {
    return true;
  }
  auto operand = dyn_cast<RankedTensorType>(op->getOperand(0).getType());
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  return operand && result && operand.hasStaticShape() &&
         result.hasStaticShape() && !isTiny(result) &&
         result.getNumElements() >= operand.getNumElements() / kDelayRatio;
}

} // namespace mlir::alpa
