//===- RowComparison.cpp - Whether values are equal in each row -----------===//

#include "cpp/transforms/RowComparison.h"

#include "cpp/analysis/DataFlow.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/OperationSupport.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// The element that a constant has everywhere; null if there is none.
static Attribute getOnlyElement(Value value) {
  DenseElementsAttr constant;
  bool isSplat =
      matchPattern(value, m_Constant(&constant)) && constant.isSplat();
  return isSplat ? constant.getSplatValue<Attribute>() : Attribute();
}

/// The operand that an operator hands on, row by row; null if it makes another
/// value.
static Value getHandedOn(Operation *op) {
  auto isBoolean = [&](bool value) {
    return [=](Value one) {
      Attribute element = getOnlyElement(stripRows(one));
      return element && element == BoolAttr::get(element.getContext(), value);
    };
  };
  if (auto spread = dyn_cast<stablehlo::BroadcastInDimOp>(op)) {
    Value operand = spread.getOperand();
    return cast<RankedTensorType>(operand.getType()).getRank() == 0 ? operand
                                                                    : nullptr;
  }
  if (isa<stablehlo::ConvertOp>(op) &&
      op->getOperand(0).getType() == op->getResult(0).getType()) {
    return op->getOperand(0);
  }
  auto compare = dyn_cast<stablehlo::CompareOp>(op);
  if (compare &&
      compare.getComparisonDirection() == stablehlo::ComparisonDirection::NE &&
      isBoolean(false)(compare.getRhs())) {
    return compare.getLhs();
  }
  if (auto both = dyn_cast<stablehlo::AndOp>(op)) {
    return isBoolean(true)(both.getLhs())   ? both.getRhs()
           : isBoolean(true)(both.getRhs()) ? both.getLhs()
                                            : nullptr;
  }
  return nullptr;
}

/// What a loop begins with where every turn hands it on as it is; null where a
/// turn makes another value.
static Value getHandedOn(BlockArgument argument) {
  auto loop = dyn_cast<stablehlo::WhileOp>(argument.getOwner()->getParentOp());
  if (!loop) {
    return nullptr;
  }
  unsigned number = argument.getArgNumber();
  Block &body = loop.getBody().front();
  bool isSame =
      body.getTerminator()->getOperand(number) == body.getArgument(number);
  return isSame ? loop->getOperand(number) : nullptr;
}

Value stripRows(Value value) {
  for (Value before = value; before;) {
    value = before;
    auto argument = dyn_cast<BlockArgument>(value);
    before =
        argument ? getHandedOn(argument) : getHandedOn(value.getDefiningOp());
  }
  return value;
}

bool RowComparison::isSame(Value one, Value other) {
  one = stripRows(one);
  other = stripRows(other);
  auto argument = dyn_cast<BlockArgument>(one);
  if (argument && argument.getOwner() == &block) {
    Value value = given[argument.getArgNumber()];
    return value && isSame(value, other);
  }
  if (one == other) {
    return true;
  }
  if (Attribute element = getOnlyElement(one)) {
    return element == getOnlyElement(other);
  }
  Operation *maker = one.getDefiningOp(), *second = other.getDefiningOp();
  if (!maker || !second ||
      cast<OpResult>(one).getResultNumber() !=
          cast<OpResult>(other).getResultNumber()) {
    return false;
  }
  auto known = compared.find({maker, second});
  if (known == compared.end()) {
    bool isEqual = areSame(*maker, *second);
    known = compared.insert({{maker, second}, isEqual}).first;
  }
  return known->second;
}

bool RowComparison::areSame(Operation &one, Operation &other) {
  auto areSameValues = [&](auto pair) {
    return isSame(std::get<0>(pair), std::get<1>(pair));
  };
  auto areSameRegions = [](auto pair) {
    return OperationEquivalence::isRegionEquivalentTo(
        &std::get<0>(pair), &std::get<1>(pair),
        OperationEquivalence::IgnoreLocations);
  };
  // Elementwise, rows may be one number on one side.
  bool isElementwise =
      one.hasTrait<OpTrait::Elementwise>() || isa<stablehlo::SelectOp>(one);
  auto haveSameTypes = [&](auto pair) {
    Type left = std::get<0>(pair), right = std::get<1>(pair);
    return isElementwise
               ? getElementTypeOrSelf(left) == getElementTypeOrSelf(right)
               : left == right;
  };
  return one.getName() == other.getName() && isClonable(&one) &&
         one.getAttrDictionary() == other.getAttrDictionary() &&
         one.getNumOperands() == other.getNumOperands() &&
         llvm::all_of(
             llvm::zip_equal(one.getResultTypes(), other.getResultTypes()),
             haveSameTypes) &&
         llvm::all_of(
             llvm::zip_equal(one.getOperandTypes(), other.getOperandTypes()),
             haveSameTypes) &&
         llvm::all_of(llvm::zip_equal(one.getOperands(), other.getOperands()),
                      areSameValues) &&
         llvm::all_of(llvm::zip_equal(one.getRegions(), other.getRegions()),
                      areSameRegions);
}

} // namespace mlir::alpa
