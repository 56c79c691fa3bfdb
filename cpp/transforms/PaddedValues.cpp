//===- PaddedValues.cpp - Values with longer dimensions -------------------===//

#include "cpp/transforms/PaddedValues.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

using namespace stablehlo;

/// Longest chain of operators on constants that is made again.
static constexpr unsigned kMaxRemadeChain = 4;

void PaddedValues::set(Value value, Value longer,
                       const llvm::SmallBitVector &dims, Filling filling) {
  forms[value] = {{longer, dims, filling}};
  made.insert(value);
}

Filling PaddedValues::getFilling(Value value,
                                 const llvm::SmallBitVector &dims) const {
  for (const Form &form : forms.lookup(value)) {
    if (form.dims == dims) {
      return form.filling;
    }
  }
  return Filling::Anything;
}

Value PaddedValues::get(Value value, const llvm::SmallBitVector &dims,
                        Filling required) {
  if (dims.none() && !made.contains(value)) {
    return value;
  }
  auto find = [&] {
    return llvm::find_if(forms[value],
                         [&](const Form &form) { return form.dims == dims; });
  };
  if (find() == forms[value].end()) {
    Form form = make(value, dims, required);
    forms[value].push_back(form);
  }
  Form &form = *find();
  if (required != Filling::Anything && form.filling != required) {
    // Further users take what has been filled for this one.
    form.value = fill(form, value.getLoc(), required);
    form.filling = required;
  }
  return form.value;
}

PaddedValues::Form PaddedValues::make(Value value,
                                      const llvm::SmallBitVector &dims,
                                      Filling required) {
  if (made.contains(value)) {
    return extend(value, forms[value].front(), dims, required);
  }
  if (std::optional<Form> form = remake(value, dims, 0)) {
    return *form;
  }
  return extend(value, {value, llvm::SmallBitVector(dims.size())}, dims,
                required);
}

/// before: %1 : tensor<5xf32>
/// after:  %2 = pad %1, %zero, high = [3] : tensor<8xf32>
PaddedValues::Form PaddedValues::extend(Value value, const Form &form,
                                        const llvm::SmallBitVector &dims,
                                        Filling filling) {
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(form.value);
  auto type = cast<RankedTensorType>(value.getType());
  // Where some dimensions are longer already, other elements stand there.
  bool isNew = form.dims.none();
  filling = filling == Filling::Anything ? Filling::Zero : filling;
  SmallVector<int64_t> none(type.getRank(), 0), high(none);
  for (unsigned dim : dims.set_bits()) {
    high[dim] = form.dims[dim] ? 0 : padded - size;
  }
  Value element =
      createFilled(builder, value.getLoc(),
                   RankedTensorType::get({}, type.getElementType()), filling);
  Value longer =
      PadOp::create(builder, value.getLoc(),
                    getLongerType(value.getType(), dims, padded), form.value,
                    element, builder.getDenseI64ArrayAttr(none),
                    builder.getDenseI64ArrayAttr(high),
                    builder.getDenseI64ArrayAttr(none))
          .getResult();
  return {longer, dims, isNew ? filling : Filling::Anything};
}

std::optional<PaddedValues::Form>
PaddedValues::remake(Value value, const llvm::SmallBitVector &dims,
                     unsigned depth) {
  Operation *op = value.getDefiningOp();
  if (!op || op->getNumResults() != 1 || depth > kMaxRemadeChain) {
    return std::nullopt;
  }
  Operation *again = remakeOperator(op, dims, depth);
  if (!again) {
    return std::nullopt;
  }
  return Form{again->getResult(0), dims, Filling::Anything};
}

/// Constants, iotas, what broadcasts add, and operators on them.
Operation *PaddedValues::remakeOperator(Operation *op,
                                        const llvm::SmallBitVector &dims,
                                        unsigned depth) {
  OpBuilder builder(op->getContext());
  builder.setInsertionPointAfter(op);
  auto cloneWith = [&](ValueRange operands) {
    Operation *again = builder.clone(*op);
    again->setOperands(operands);
    again->getResult(0).setType(
        getLongerType(op->getResult(0).getType(), dims, padded));
    return again;
  };
  if (auto constant = dyn_cast<ConstantOp>(op)) {
    auto elements = dyn_cast<DenseElementsAttr>(constant.getValue());
    if (!elements || !elements.isSplat()) {
      return nullptr;
    }
    auto type = cast<ShapedType>(
        getLongerType(op->getResult(0).getType(), dims, padded));
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
      if (dims[target] && source.getDimSize(dim) != 1) {
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
    std::optional<Form> again = remake(operand, dims, depth + 1);
    if (!again) {
      return nullptr;
    }
    operands.push_back(again->value);
  }
  return cloneWith(operands);
}

/// before: %1 : tensor<8xf32>, of which 5 elements count
/// after:  %2 = select (iota < 5), %1, %neutral
Value PaddedValues::fill(const Form &form, Location loc, Filling filling) {
  OpBuilder builder(form.value.getContext());
  builder.setInsertionPointAfterValue(form.value);
  auto type = cast<RankedTensorType>(form.value.getType());
  auto maskType = RankedTensorType::get(type.getShape(), builder.getI1Type());
  Value mask;
  for (unsigned dim : form.dims.set_bits()) {
    auto count = RankedTensorType::get({padded}, builder.getI64Type());
    Value iota =
        IotaOp::create(builder, loc, count, builder.getI64IntegerAttr(0))
            .getResult();
    Value limit = ConstantOp::create(builder, loc, count,
                                     DenseElementsAttr::get(count, size))
                      .getResult();
    Value isInside =
        CompareOp::create(
            builder, loc, RankedTensorType::get({padded}, builder.getI1Type()),
            iota, limit, ComparisonDirection::LT, ComparisonTypeAttr())
            .getResult();
    Value wide = BroadcastInDimOp::create(
                     builder, loc, maskType, isInside,
                     builder.getDenseI64ArrayAttr({static_cast<int64_t>(dim)}))
                     .getResult();
    mask = mask ? AndOp::create(builder, loc, maskType, mask, wide).getResult()
                : wide;
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
    if (form.dims.any()) {
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
