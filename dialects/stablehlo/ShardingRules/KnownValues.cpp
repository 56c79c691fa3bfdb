//===- KnownValues.cpp - What is known of values at compile time ----------===//

#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include <cmath>

using namespace mlir;
using namespace mlir::stablehlo;

/// Longest chain of operators that is looked through; deeper ones are folded by
/// canonicalisation.
static constexpr int kMaxDepth = 8;

static std::optional<double> getNumber(Attribute attr) {
  if (auto number = dyn_cast<FloatAttr>(attr)) {
    return number.getValueAsDouble();
  }
  if (auto number = dyn_cast<IntegerAttr>(attr)) {
    return number.getValue().isZero()
               ? 0.0
               : (number.getValue().isOne() ? std::optional<double>(1.0)
                                            : std::nullopt);
  }
  if (auto parts = dyn_cast<ArrayAttr>(attr)) {
    // A complex number is known when its imaginary part is zero.
    if (parts.size() == 2 && getNumber(parts[1]) == 0.0) {
      return getNumber(parts[0]);
    }
  }
  return std::nullopt;
}

std::optional<double> stablehlo::getKnownSplat(Value value) {
  for (int depth = 0; depth < kMaxDepth; ++depth) {
    Operation *op = value.getDefiningOp();
    if (!op) {
      return std::nullopt;
    }
    if (auto constant = dyn_cast<ConstantOp>(op)) {
      auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
      if (!elements || elements.empty() || !elements.isSplat()) {
        return std::nullopt;
      }
      return getNumber(elements.getSplatValue<Attribute>());
    }
    if (!isa<BroadcastInDimOp, ReshapeOp, TransposeOp, ConvertOp,
             alpa::ReshardOp>(op) ||
        op->getNumOperands() != 1) {
      return std::nullopt;
    }
    value = op->getOperand(0);
  }
  return std::nullopt;
}

bool stablehlo::isKnownZero(Value value) { return getKnownSplat(value) == 0.0; }

static bool isWithinOne(Value value, int depth) {
  Operation *op = value.getDefiningOp();
  if (!op || depth == kMaxDepth) {
    return false;
  }
  if (isa<ConstantOp>(op)) {
    std::optional<double> number = getKnownSplat(value);
    return number && std::abs(*number) <= 1;
  }
  bool isFloat = isa<FloatType>(getElementTypeOrSelf(value.getType()));
  if (isFloat && isa<TanhOp, LogisticOp, SineOp, CosineOp, SignOp>(op)) {
    return true;
  }
  if (auto convert = dyn_cast<ConvertOp>(op);
      convert &&
      getElementTypeOrSelf(convert.getOperand().getType()).isInteger(1)) {
    return true;
  }
  auto areWithinOne = [&](ValueRange values) {
    return llvm::all_of(
        values, [&](Value part) { return isWithinOne(part, depth + 1); });
  };
  if (auto select = dyn_cast<SelectOp>(op)) {
    return areWithinOne({select.getOnTrue(), select.getOnFalse()});
  }
  return (isa<BroadcastInDimOp, ReshapeOp, TransposeOp, ConvertOp, ReverseOp,
              SliceOp, ConcatenateOp, alpa::ReshardOp>(op) ||
          (isFloat && isa<NegOp, AbsOp, MulOp>(op))) &&
         areWithinOne(op->getOperands());
}

bool stablehlo::isKnownWithinOne(Value value) { return isWithinOne(value, 0); }
