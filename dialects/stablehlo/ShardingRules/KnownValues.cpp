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

/// Whether all positions along a dimension are numbers of the element type.
static bool holdsPositions(RankedTensorType type, int64_t dim) {
  auto integer = dyn_cast<IntegerType>(type.getElementType());
  if (!integer) {
    return false;
  }
  unsigned bits = integer.getWidth() - (integer.isUnsigned() ? 0 : 1);
  return bits > 62 || type.getDimSize(dim) <= (int64_t(1) << bits);
}

/// The dimension of 0, 1, 2, ... written out.
static std::optional<int64_t> getAscendingDim(ConstantOp constant) {
  auto elements = dyn_cast<DenseIntElementsAttr>(constant.getValue());
  if (!elements || elements.isSplat() ||
      !llvm::all_of(
          llvm::enumerate(elements.getValues<APInt>()),
          [](auto indexed) { return indexed.value() == indexed.index(); })) {
    return std::nullopt;
  }
  ArrayRef<int64_t> shape = elements.getType().getShape();
  const int64_t *dim = llvm::find(shape, elements.getNumElements());
  return dim == shape.end() ? std::nullopt : std::optional(dim - shape.begin());
}

/// What a value is before a loop that hands it on as it is.
static Value getBeforeLoop(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop = argument ? dyn_cast<WhileOp>(argument.getOwner()->getParentOp())
                       : WhileOp();
  if (!loop) {
    return Value();
  }
  unsigned number = argument.getArgNumber();
  Block &body = loop.getBody().front();
  bool isHandedOn =
      body.getTerminator()->getOperand(number) == body.getArgument(number);
  return isHandedOn ? loop->getOperand(number) : Value();
}

Value stablehlo::getBeforeLoops(Value value) {
  while (Value before = getBeforeLoop(value)) {
    value = before;
  }
  return value;
}

/// Dimension of the result of a broadcast or reshape that a dimension of its
/// operand becomes as it is.
static std::optional<int64_t> getResultDim(Operation *op, int64_t dim) {
  auto from = cast<RankedTensorType>(op->getOperand(0).getType());
  auto to = cast<RankedTensorType>(op->getResult(0).getType());
  int64_t size = from.getDimSize(dim);
  if (auto broadcast = dyn_cast<BroadcastInDimOp>(op)) {
    int64_t found = broadcast.getBroadcastDimensions()[dim];
    return to.getDimSize(found) == size ? std::optional(found) : std::nullopt;
  }
  // Of a reshape: that with as many elements in front of it and behind it.
  auto count = [](ArrayRef<int64_t> sizes) { return llvm::product_of(sizes); };
  for (int64_t found = 0; found < to.getRank(); ++found) {
    if (to.getDimSize(found) == size &&
        count(to.getShape().take_front(found)) ==
            count(from.getShape().take_front(dim)) &&
        size != 1) {
      return found;
    }
  }
  return std::nullopt;
}

static std::optional<int64_t> getPositions(Value value, int depth) {
  value = getBeforeLoops(value);
  Operation *op = value.getDefiningOp();
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!op || !type || depth == kMaxDepth) {
    return std::nullopt;
  }
  std::optional<int64_t> found;
  if (auto iota = dyn_cast<IotaOp>(op)) {
    found = iota.getIotaDimension();
  } else if (auto constant = dyn_cast<ConstantOp>(op)) {
    found = getAscendingDim(constant);
  } else if (isa<BroadcastInDimOp, ReshapeOp>(op)) {
    std::optional<int64_t> dim = getPositions(op->getOperand(0), depth + 1);
    found = dim ? getResultDim(op, *dim) : std::nullopt;
  } else if (isa<ConvertOp>(op)) {
    found = getPositions(op->getOperand(0), depth + 1);
  } else if (auto select = dyn_cast<SelectOp>(op)) {
    // No position is negative.
    auto compare = select.getPred().getDefiningOp<CompareOp>();
    bool asksIfNegative =
        compare &&
        compare.getComparisonDirection() == ComparisonDirection::LT &&
        isKnownZero(compare.getRhs()) &&
        getPositions(compare.getLhs(), depth + 1);
    if (asksIfNegative || isKnownZero(select.getPred())) {
      found = getPositions(select.getOnFalse(), depth + 1);
    }
  }
  return found && holdsPositions(type, *found) ? found : std::nullopt;
}

std::optional<int64_t> stablehlo::getKnownPositions(Value value) {
  return getPositions(value, 0);
}

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
