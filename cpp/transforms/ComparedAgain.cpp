//===- ComparedAgain.cpp - Comparisons of what is made twice --------------===//

#include "cpp/transforms/ComparedAgain.h"

#include "cpp/analysis/Dependence.h"
#include "cpp/analysis/Exactness.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

/// Values that operators are made of, as far as `goesOn` says.
static SmallVector<Value> getMadeOf(Operation *op,
                                    function_ref<bool(Value)> goesOn) {
  llvm::SetVector<Value> found(op->operand_begin(), op->operand_end());
  for (size_t next = 0; next < found.size(); ++next) {
    if (goesOn(found[next])) {
      Operation *maker = found[next].getDefiningOp();
      found.insert(maker->operand_begin(), maker->operand_end());
    }
  }
  return found.takeVector();
}

bool comparesFloats(Operation *op) {
  return isa<stablehlo::CompareOp>(op) &&
         isa<FloatType>(getElementTypeOrSelf(op->getOperand(0)));
}

SmallVector<Operation *>
findComparedAgain(Operation *comparison,
                  function_ref<Origin(Value)> getOrigin) {
  auto isMadeHere = [&](Value value) {
    Origin origin = getOrigin(value);
    return origin == Origin::kAgain || origin == Origin::kOwn;
  };
  // A difference is compared with zero.
  auto isOfElements = [&](Value value) {
    return isMadeHere(value) && (isExact(value.getDefiningOp()) ||
                                 value.getDefiningOp<stablehlo::SubtractOp>());
  };
  SmallVector<Operation *> kept;
  for (Value value : getMadeOf(comparison, isMadeHere)) {
    if (getOrigin(value) == Origin::kKept) {
      kept.push_back(value.getDefiningOp());
    }
  }
  SmallVector<Operation *> found;
  for (Value value : getMadeOf(comparison, isOfElements)) {
    if (getOrigin(value) != Origin::kAgain || isOfElements(value)) {
      continue;
    }
    Operation *maker = value.getDefiningOp();
    if (llvm::any_of(
            kept, [&](Operation *early) { return dependsOn(early, maker); })) {
      found.push_back(maker);
    }
  }
  return found;
}

} // namespace mlir::alpa
