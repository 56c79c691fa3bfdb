//===- PaddedValues.cpp - Values with longer dimensions -------------------===//

#include "cpp/transforms/PaddedValues.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

using namespace stablehlo;

/// Longest chain of operators on constants that is made again.
static constexpr unsigned kMaxRemadeChain = 4;

static Type withShape(Value value, ArrayRef<int64_t> shape) {
  return cast<RankedTensorType>(value.getType()).clone(shape);
}

ArrayRef<int64_t> PaddedValues::Form::getShape() const {
  return getShapeOf(value);
}

void PaddedValues::set(Value value, Value longer, Filling filling) {
  forms[value] = {{longer, filling}};
  made.insert(value);
}

Filling PaddedValues::getFilling(Value value, ArrayRef<int64_t> shape) const {
  for (const Form &form : forms.lookup(value)) {
    if (form.getShape() == shape) {
      return form.filling;
    }
  }
  return Filling::Anything;
}

Value PaddedValues::get(Value value, ArrayRef<int64_t> shape,
                        Filling required) {
  if (shape == getShapeOf(value) && !made.contains(value)) {
    return value;
  }
  auto find = [&] {
    return llvm::find_if(forms[value], [&](const Form &form) {
      return form.getShape() == shape;
    });
  };
  if (find() == forms[value].end()) {
    Form form = make(value, shape, required);
    forms[value].push_back(form);
  }
  Form &form = *find();
  if (required != Filling::Anything && form.filling != required &&
      shape != getShapeOf(value)) {
    // Further users take what has been filled for this one.
    form.value = fill(form, value, required);
    form.filling = required;
  }
  return form.value;
}

PaddedValues::Form PaddedValues::make(Value value, ArrayRef<int64_t> shape,
                                      Filling required) {
  if (made.contains(value)) {
    return extend(value, forms[value].front(), shape, required);
  }
  if (std::optional<Form> form = remake(value, shape, 0)) {
    return *form;
  }
  return extend(value, {value}, shape, required);
}

/// before: %1 : tensor<5xf32>
/// after:  %2 = pad %1, %zero, high = [3] : tensor<8xf32>
PaddedValues::Form PaddedValues::extend(Value value, const Form &form,
                                        ArrayRef<int64_t> shape,
                                        Filling filling) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(form.value);
  auto type = cast<RankedTensorType>(value.getType());
  // Where some dimensions are longer already, other elements stand there.
  bool isNew = form.getShape() == type.getShape();
  filling = filling == Filling::Anything ? Filling::Zero : filling;
  SmallVector<int64_t> none(type.getRank(), 0), high;
  for (auto [size, before] : llvm::zip(shape, form.getShape())) {
    high.push_back(size - before);
  }
  Value element =
      createFilled(builder, value.getLoc(),
                   RankedTensorType::get({}, type.getElementType()), filling);
  Value longer =
      PadOp::create(builder, value.getLoc(), withShape(value, shape),
                    form.value, element, builder.getDenseI64ArrayAttr(none),
                    builder.getDenseI64ArrayAttr(high),
                    builder.getDenseI64ArrayAttr(none))
          .getResult();
  return {longer, isNew ? filling : Filling::Anything};
}

std::optional<PaddedValues::Form>
PaddedValues::remake(Value value, ArrayRef<int64_t> shape, unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || depth > kMaxRemadeChain) {
    return std::nullopt;
  }
  Operation *again = remakeOperator(op, shape, depth);
  if (!again) {
    return std::nullopt;
  }
  return Form{again->getResult(0)};
}

/// Constants, iotas, what broadcasts add, and operators on them.
Operation *PaddedValues::remakeOperator(Operation *op, ArrayRef<int64_t> shape,
                                        unsigned depth) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  auto cloneWith = [&](ValueRange operands) {
    Operation *again = builder.clone(*op);
    again->setOperands(operands);
    again->getResult(0).setType(withShape(op->getResult(0), shape));
    return again;
  };
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements || !elements.isSplat()) {
      return nullptr;
    }
    auto type = cast<ShapedType>(withShape(op->getResult(0), shape));
    return ConstantOp::create(builder, op->getLoc(), type,
                              elements.resizeSplat(type));
  }
  if (isa<IotaOp>(op)) {
    return cloneWith({});
  }
  if (auto broadcast = dyn_cast<BroadcastInDimOp>(op)) {
    auto source = cast<RankedTensorType>(broadcast.getOperand().getType());
    for (auto [dim, target] :
         llvm::enumerate(broadcast.getBroadcastDimensions())) {
      bool isLonger = shape[target] != getShapeOf(broadcast)[target];
      if (isLonger && source.getDimSize(dim) != 1) {
        return nullptr;
      }
    }
    return cloneWith(op->getOperands());
  }
  std::optional<ShardingRule> rule = getShardingRule(op);
  if (!rule || !isPointwise(op, *rule)) {
    return nullptr;
  }
  SmallVector<Value> operands;
  for (Value operand : op->getOperands()) {
    if (cast<RankedTensorType>(operand.getType()).getRank() == 0) {
      operands.push_back(operand);
      continue;
    }
    std::optional<Form> again = remake(operand, shape, depth + 1);
    if (!again) {
      return nullptr;
    }
    operands.push_back(again->value);
  }
  return cloneWith(operands);
}

/// before: %1 : tensor<8xf32>, of which 5 elements count
/// after:  %2 = select (iota < 5), %1, %neutral
Value PaddedValues::fill(const Form &form, Value value, Filling filling) {
  Location loc = value.getLoc();
  OpBuilder builder(form.value.getContext());
  builder.setInsertionPointAfterValue(form.value);
  auto type = cast<RankedTensorType>(form.value.getType());
  Value mask;
  for (auto [dim, size, padded] :
       llvm::enumerate(getShapeOf(value), form.getShape())) {
    if (size == padded) {
      continue;
    }
    Value isInside = createPositionMask(builder, loc, type.getShape(),
                                        static_cast<int64_t>(dim),
                                        ComparisonDirection::LT, size);
    mask = mask
               ? AndOp::create(builder, loc, isInside.getType(), mask, isInside)
                     .getResult()
               : isInside;
  }
  Value neutral = createFilled(builder, loc, type, filling);
  return SelectOp::create(builder, loc, type, mask, form.value, neutral)
      .getResult();
}

void PaddedValues::replace() {
  for (Value value : made) {
    if (value.use_empty()) {
      continue;
    }
    const Form &form = forms[value].front();
    Value replacement = form.value;
    if (form.getShape() != getShapeOf(value)) {
      OpBuilder builder(value.getContext());
      builder.setInsertionPointAfterValue(form.value);
      auto type = cast<RankedTensorType>(value.getType());
      SmallVector<int64_t> starts(type.getRank(), 0);
      SmallVector<int64_t> strides(type.getRank(), 1);
      replacement =
          SliceOp::create(builder, value.getLoc(), type, form.value,
                          builder.getDenseI64ArrayAttr(starts),
                          builder.getDenseI64ArrayAttr(type.getShape()),
                          builder.getDenseI64ArrayAttr(strides))
              .getResult();
    }
    value.replaceAllUsesWith(replacement);
  }
}

} // namespace mlir::alpa
