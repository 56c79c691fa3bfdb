//===- CutForms.cpp - Operators that cut dimensions -----------------------===//

#include "cpp/transforms/CutForms.h"

#include "cpp/transforms/CutWindows.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace mlir::alpa {

using namespace stablehlo;

static bool isLonger(Value value, ArrayRef<int64_t> shape) {
  return shape != getShapeOf(value);
}

//===----------------------------------------------------------------------===//
// Slices
//===----------------------------------------------------------------------===//

/// The size of a dimension of a slice that becomes as long as the strides in
/// its operand; none where it stays as it is.
static std::optional<int64_t> getSliced(SliceOp slice, int64_t dim,
                                        int64_t size,
                                        const PaddingOptions &options) {
  int64_t stride = slice.getStrides()[dim];
  int64_t before = getShapeOf(slice)[dim];
  bool isLonger = size != getShapeOf(slice.getOperand())[dim];
  if (size % stride != 0 ||
      !(isLonger ? options.canPad(before, size / stride)
                 : options.isWorthwhile(before, size / stride))) {
    return std::nullopt;
  }
  return size / stride;
}

static bool isWhole(SliceOp slice, int64_t dim) {
  return getShapeOf(slice)[dim] == getShapeOf(slice.getOperand())[dim];
}

static std::optional<CutForm> getForm(SliceOp slice, ArrayRef<Shape> operands,
                                      const PaddingOptions &options) {
  CutForm form{{operands[0]}, Shape(getShapeOf(slice)), {Filling::Anything}};
  ArrayRef<int64_t> before = getShapeOf(slice.getOperand());
  for (auto [index, size] : llvm::enumerate(operands[0])) {
    auto dim = static_cast<int64_t>(index);
    if (isWhole(slice, dim)) {
      form.result[dim] = size;
    } else if (std::optional<int64_t> longer =
                   getSliced(slice, dim, size, options)) {
      form.result[dim] = *longer;
    } else if (size != before[dim]) {
      return std::nullopt;
    }
  }
  if (!isLonger(slice, form.result)) {
    return std::nullopt;
  }
  return form;
}

namespace {

/// Short names for the few operators that are made.
class Writer {
public:
  Writer(OpBuilder &builder, Location loc) : builder(builder), loc(loc) {}

  /// The tensor with its elements moved on by so many along each dimension, as
  /// many as there were; zeros stand where there are none, or `filling`.
  Value move(Value value, ArrayRef<int64_t> distances, Value filling = {}) {
    SmallVector<int64_t> back, none(distances.size(), 0);
    for (int64_t distance : distances) {
      back.push_back(-distance);
    }
    return pad(value, distances, back, none, filling);
  }

  Value pad(Value value, ArrayRef<int64_t> low, ArrayRef<int64_t> high,
            ArrayRef<int64_t> between, Value filling) {
    auto isZero = [](int64_t size) { return size == 0; };
    if (llvm::all_of(low, isZero) && llvm::all_of(high, isZero) &&
        llvm::all_of(between, isZero)) {
      return value;
    }
    filling = filling ? filling : zero(value);
    auto type = cast<RankedTensorType>(value.getType());
    Shape shape(type.getShape());
    for (auto [size, l, h, b] : llvm::zip(shape, low, high, between)) {
      size += l + h + std::max<int64_t>(0, size - 1) * b;
    }
    return PadOp::create(builder, loc, type.clone(shape), value, filling,
                         builder.getDenseI64ArrayAttr(low),
                         builder.getDenseI64ArrayAttr(high),
                         builder.getDenseI64ArrayAttr(between))
        .getResult();
  }

  /// `behind` where the number of an element along `dim` is not below `start`.
  Value selectFrom(int64_t start, int64_t dim, Value behind, Value before) {
    Value isBehind = createPositionMask(builder, loc, getShapeOf(behind), dim,
                                        ComparisonDirection::GE, start);
    return SelectOp::create(builder, loc, behind.getType(), isBehind, behind,
                            before)
        .getResult();
  }

private:
  Value zero(Value value) {
    return createFilled(
        builder, loc,
        RankedTensorType::get({}, getElementTypeOrSelf(value.getType())),
        Filling::Zero);
  }

  OpBuilder &builder;
  Location loc;
};

} // namespace

/// before: %1 = slice %x[3:64:2] : 31
/// after:  %0 = slice %x[1:64:2] : 32; %1 = pad %0 low = -1, high = 1
static Value create(OpBuilder &builder, SliceOp slice, Value operand,
                    const CutForm &form) {
  Writer write(builder, slice.getLoc());
  auto type = cast<RankedTensorType>(operand.getType());
  Shape starts(slice.getStartIndices()), limits(slice.getLimitIndices()),
      distances(starts.size(), 0);
  for (auto [index, size] : llvm::enumerate(type.getShape())) {
    auto dim = static_cast<int64_t>(index);
    if (isWhole(slice, dim)) {
      limits[dim] = size;
    } else if (form.result[dim] != getShapeOf(slice)[dim]) {
      int64_t stride = slice.getStrides()[dim];
      distances[dim] = -(starts[dim] / stride);
      starts[dim] %= stride;
      limits[dim] = size;
    }
  }
  if (type.getShape() != ArrayRef(form.result)) {
    operand = SliceOp::create(builder, slice.getLoc(), type.clone(form.result),
                              operand, builder.getDenseI64ArrayAttr(starts),
                              builder.getDenseI64ArrayAttr(limits),
                              slice.getStridesAttr())
                  .getResult();
  }
  return write.move(operand, distances);
}

//===----------------------------------------------------------------------===//
// Pads
//===----------------------------------------------------------------------===//

static std::optional<CutForm> getForm(PadOp pad, ArrayRef<Shape> operands,
                                      const PaddingOptions &options) {
  ArrayRef<int64_t> before = getShapeOf(pad.getOperand());
  std::optional<Filling> filling = getFillingOf(pad.getPaddingValue());
  if (!filling || !isLonger(pad.getOperand(), operands[0])) {
    return std::nullopt;
  }
  CutForm form{{operands[0], operands[1]},
               Shape(getShapeOf(pad)),
               {*filling, Filling::Anything}};
  for (auto [dim, size] : llvm::enumerate(operands[0])) {
    if (size != before[dim]) {
      int64_t padded = size * (pad.getInteriorPadding()[dim] + 1);
      if (!options.canPad(form.result[dim], padded)) {
        return std::nullopt;
      }
      form.result[dim] = padded;
    }
  }
  return form;
}

/// before: %1 = pad %x low = 2, high = 1, interior = 1 : 31 to 64
/// after:  %0 = pad %x low = 1, high = -1 : 32
///         %1 = pad %0 low = 0, high = 1, interior = 1 : 64
static Value create(OpBuilder &builder, PadOp pad, ValueRange operands) {
  Writer write(builder, pad.getLoc());
  Shape low(pad.getEdgePaddingLow()), high(pad.getEdgePaddingHigh()),
      distances(low.size(), 0);
  for (auto [dim, size] : llvm::enumerate(getShapeOf(operands[0]))) {
    if (size != getShapeOf(pad.getOperand())[dim]) {
      int64_t between = pad.getInteriorPadding()[dim];
      distances[dim] = llvm::divideFloorSigned(low[dim], between + 1);
      low[dim] -= distances[dim] * (between + 1);
      high[dim] = between - low[dim];
    }
  }
  return write.pad(write.move(operands[0], distances, operands[1]), low, high,
                   pad.getInteriorPadding(), operands[1]);
}

//===----------------------------------------------------------------------===//
// Concatenations
//===----------------------------------------------------------------------===//

/// Operands that are longer are of one size, which the result gets.
static std::optional<CutForm> getForm(ConcatenateOp op,
                                      ArrayRef<Shape> operands,
                                      const PaddingOptions &options) {
  auto joined = static_cast<int64_t>(op.getDimension());
  CutForm form{llvm::to_vector(operands), Shape(getShapeOf(op)),
               SmallVector<Filling>(op->getNumOperands(), Filling::Anything)};
  int64_t size = 0;
  for (auto [operand, shape] : llvm::zip(op->getOperands(), operands)) {
    if (shape[joined] != getShapeOf(operand)[joined]) {
      size = std::max(size, shape[joined]);
    }
  }
  if (size == 0 || !options.canPad(form.result[joined], size)) {
    return std::nullopt;
  }
  form.result[joined] = size;
  for (auto [operand, shape] : llvm::zip(op->getOperands(), operands)) {
    Shape others(form.result);
    others[joined] = shape[joined];
    // Other dimensions are as they were, and what is longer has the size.
    if (ArrayRef(others) != ArrayRef(shape) ||
        (shape[joined] != size &&
         shape[joined] != getShapeOf(operand)[joined])) {
      return std::nullopt;
    }
  }
  return form;
}

/// before: %1 = concatenate %a : 1, %b : 31
/// after:  %0 = pad %b low = 1, high = -1 : 32
///         %1 = select iota >= 1, %0, broadcast %a
static Value create(OpBuilder &builder, ConcatenateOp op, ValueRange operands,
                    const CutForm &form) {
  Writer write(builder, op.getLoc());
  auto joined = static_cast<int64_t>(op.getDimension());
  RankedTensorType type =
      cast<RankedTensorType>(op->getResult(0).getType()).clone(form.result);
  Shape none(type.getRank(), 0);
  auto dims = llvm::to_vector(llvm::seq<int64_t>(0, type.getRank()));
  int64_t start = 0;
  Value all;
  for (auto [before, operand] : llvm::zip(op->getOperands(), operands)) {
    int64_t rows = getShapeOf(before)[joined];
    Value part;
    Shape low(none), high(none);
    low[joined] = start;
    if (isLonger(before, getShapeOf(operand))) {
      part = write.move(operand, low);
    } else if (rows == 1) {
      part = BroadcastInDimOp::create(builder, op.getLoc(), type, operand,
                                      builder.getDenseI64ArrayAttr(dims))
                 .getResult();
    } else {
      high[joined] = type.getDimSize(joined) - start - rows;
      part = write.pad(operand, low, high, none, /*filling=*/{});
    }
    all = all ? write.selectFrom(start, joined, part, all) : part;
    start += rows;
  }
  return all;
}

//===----------------------------------------------------------------------===//
// Updates of a part
//===----------------------------------------------------------------------===//

namespace {

/// What `x.at[1:-1].add(u)` and a dynamic update with known places write.
struct Part {
  unsigned update;
  Shape starts;
  /// What a place gets; as it is in the update where this is null.
  Operation *combine;
};

} // namespace

/// The elements of an index, or of a vector of them, that are written in the
/// program; none where they are computed.
static std::optional<Shape> getNumbers(Value value) {
  Operation *op = value.getDefiningOp();
  if (auto constant = dyn_cast_if_present<ConstantOp>(op)) {
    constexpr int64_t most = std::numeric_limits<int64_t>::max();
    bool isUnsigned = getElementTypeOrSelf(value.getType()).isUnsignedInteger();
    Shape numbers;
    for (const APInt &number :
         cast<DenseIntElementsAttr>(constant.getValue()).getValues<APInt>()) {
      numbers.push_back(isUnsigned
                            ? static_cast<int64_t>(number.getLimitedValue(most))
                            : number.getSExtValue());
    }
    return numbers;
  }
  if (!isa_and_present<BroadcastInDimOp, ReshapeOp, ConcatenateOp>(op)) {
    return std::nullopt;
  }
  Shape numbers;
  for (Value operand : op->getOperands()) {
    std::optional<Shape> part = getNumbers(operand);
    if (!part) {
      return std::nullopt;
    }
    llvm::append_range(numbers, *part);
  }
  auto size = cast<RankedTensorType>(value.getType()).getNumElements();
  if (numbers.size() == 1) {
    numbers.assign(size, numbers.front());
  }
  return static_cast<int64_t>(numbers.size()) == size ? std::optional(numbers)
                                                      : std::nullopt;
}

/// A scatter of one window, whose dimensions are those of its operand.
static std::optional<Part> getPart(ScatterOp op) {
  ScatterDimensionNumbersAttr dims = op.getScatterDimensionNumbers();
  auto rank = static_cast<int64_t>(getShapeOf(op.getResult(0)).size());
  std::optional<Shape> starts = getNumbers(op.getScatterIndices());
  Operation &first = op.getUpdateComputation().front().front();
  bool adds = getReductionKind(op.getUpdateComputation()) == ReductionKind::Sum;
  bool sets =
      &first == op.getUpdateComputation().front().getTerminator() &&
      first.getOperand(0) == op.getUpdateComputation().front().getArgument(1);
  Part part{2, Shape(rank, 0), adds ? &first : nullptr};
  if (op.getInputs().size() != 1 || !starts || (!adds && !sets) ||
      getShapeOf(op.getScatterIndices()).size() != 1 ||
      static_cast<int64_t>(dims.getUpdateWindowDims().size()) != rank ||
      getShapeOf(op.getUpdates().front()).size() != part.starts.size()) {
    return std::nullopt;
  }
  for (auto [dim, start] :
       llvm::zip(dims.getScatterDimsToOperandDims(), *starts)) {
    part.starts[dim] = start;
  }
  return part;
}

static std::optional<Part> getPart(DynamicUpdateSliceOp op) {
  Part part{1, {}, nullptr};
  for (auto [index, size, most] :
       llvm::zip(op.getStartIndices(), getShapeOf(op.getUpdate()),
                 getShapeOf(op.getOperand()))) {
    std::optional<Shape> start = getNumbers(index);
    if (!start) {
      return std::nullopt;
    }
    part.starts.push_back(std::clamp<int64_t>(start->front(), 0, most - size));
  }
  return part;
}

static std::optional<Part> getPart(Operation *op) {
  return llvm::TypeSwitch<Operation *, std::optional<Part>>(op)
      .Case<ScatterOp, DynamicUpdateSliceOp>(
          [](auto update) { return getPart(update); })
      .Default(std::nullopt);
}

/// The update is as long as the operand wherever it is longer, and covers the
/// operand along all other dimensions.
static std::optional<CutForm> getUpdateForm(Operation *op,
                                            ArrayRef<Shape> operands) {
  std::optional<Part> part = getPart(op);
  if (!part ||
      !isLonger(op->getOperand(part->update), operands[part->update])) {
    return std::nullopt;
  }
  ArrayRef<int64_t> before = getShapeOf(op->getOperand(part->update));
  for (auto [start, rows, update, count, whole] :
       llvm::zip(part->starts, operands[0], operands[part->update], before,
                 getShapeOf(op->getOperand(0)))) {
    bool isInside = start >= 0 && start + count <= whole;
    if (!isInside || rows != update || (update == count && count != whole)) {
      return std::nullopt;
    }
  }
  return CutForm{llvm::to_vector(operands), operands[0],
                 SmallVector<Filling>(op->getNumOperands(), Filling::Anything)};
}

/// before: %1 = scatter %x at 1, %u : 62, add : 64
/// after:  %0 = add %x, (pad %u low = 1, high = -1)
///         %1 = select 1 <= iota < 63, %0, %x
static Value createUpdate(OpBuilder &builder, Operation *op,
                          ValueRange operands) {
  Part part = *getPart(op);
  Writer write(builder, op->getLoc());
  Value made = write.move(operands[part.update], part.starts);
  if (part.combine) {
    Operation *combined = builder.clone(*part.combine);
    combined->setOperands({operands[0], made});
    combined->getResult(0).setType(made.getType());
    made = combined->getResult(0);
  }
  ArrayRef<int64_t> before = getShapeOf(op->getOperand(part.update));
  for (auto [dim, start] : llvm::enumerate(part.starts)) {
    if (before[dim] != getShapeOf(op->getOperand(0))[dim]) {
      auto along = static_cast<int64_t>(dim);
      made = write.selectFrom(start + before[dim], along, operands[0], made);
      made = write.selectFrom(start, along, made, operands[0]);
    }
  }
  return made;
}

//===----------------------------------------------------------------------===//
// All of them
//===----------------------------------------------------------------------===//

std::optional<CutForm> getCutForm(Operation *op, ArrayRef<Shape> operands,
                                  const PaddingOptions &options) {
  if (!llvm::all_of(op->getOperandTypes(), canBeFilled) ||
      !llvm::all_of(op->getResultTypes(), canBeFilled)) {
    return std::nullopt;
  }
  return llvm::TypeSwitch<Operation *, std::optional<CutForm>>(op)
      .Case<SliceOp>(
          [&](SliceOp slice) { return getForm(slice, operands, options); })
      .Case<PadOp>([&](PadOp pad) { return getForm(pad, operands, options); })
      .Case<ConcatenateOp>([&](ConcatenateOp concatenate) {
        return getForm(concatenate, operands, options);
      })
      .Case<ScatterOp, DynamicUpdateSliceOp>(
          [&](auto update) { return getUpdateForm(update, operands); })
      .Default([&](Operation *other) {
        return getWindowForm(other, operands, options);
      });
}

SmallVector<Value> createCut(OpBuilder &builder, Operation *op,
                             ValueRange operands, const CutForm &form) {
  return llvm::TypeSwitch<Operation *, SmallVector<Value>>(op)
      .Case<SliceOp>([&](SliceOp slice) {
        return SmallVector<Value>{create(builder, slice, operands[0], form)};
      })
      .Case<PadOp>([&](PadOp pad) {
        return SmallVector<Value>{create(builder, pad, operands)};
      })
      .Case<ConcatenateOp>([&](ConcatenateOp concatenate) {
        return SmallVector<Value>{create(builder, concatenate, operands, form)};
      })
      .Case<ScatterOp, DynamicUpdateSliceOp>([&](auto update) {
        return SmallVector<Value>{createUpdate(builder, update, operands)};
      })
      .Default([&](Operation *other) {
        return createLongerWindow(builder, other, operands, form);
      });
}

} // namespace mlir::alpa
