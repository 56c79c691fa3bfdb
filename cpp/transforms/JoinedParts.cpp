//===- JoinedParts.cpp - Batches that are joined in parts -----------------===//

#include "cpp/transforms/JoinedRows.h"

#include "cpp/transforms/RowParts.h"
#include "mlir/IR/Builders.h"

namespace mlir::alpa {

namespace {

/// Writes what joins rows and takes them apart with the parts for a batch.
class PartJoining {
public:
  PartJoining(MLIRContext *context, int64_t numParts)
      : builder(context), numParts(numParts) {}

  void write(Operation *op, int64_t dim) {
    builder.setInsertionPoint(op);
    Value made;
    if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op)) {
      made = writeConcatenate(concatenate, dim);
    } else if (auto slice = dyn_cast<stablehlo::SliceOp>(op)) {
      made = writeSlice(slice, dim);
    } else {
      made = writePad(cast<stablehlo::PadOp>(op), dim);
    }
    auto joined = stablehlo::ReshapeOp::create(
        builder, op->getLoc(), op->getResult(0).getType(), made);
    joined->setDiscardableAttrs(op->getDiscardableAttrDictionary());
    op->getResult(0).replaceAllUsesWith(joined);
    op->erase();
  }

  /// Each of the tensors that rows are of, joined as others are.
  void order(OpOperand &operand, const JoinedOrder &order) {
    builder.setInsertionPoint(operand.getOwner());
    Value value = operand.get();
    auto type = cast<RankedTensorType>(value.getType());
    Location loc = value.getLoc();
    SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
        strides(type.getRank(), 1);
    SmallVector<Value> parts;
    for (int64_t size : order.sizes) {
      limits[order.dim] = starts[order.dim] + size;
      SmallVector<int64_t> shape(type.getShape());
      shape[order.dim] = size;
      Value part = stablehlo::SliceOp::create(builder, loc, type.clone(shape),
                                              value, starts, limits, strides);
      parts.push_back(split(part, order.dim));
      starts[order.dim] += size;
    }
    auto joined = stablehlo::ConcatenateOp::create(
        builder, loc, split(type, order.dim), parts, order.dim + 1);
    operand.set(stablehlo::ReshapeOp::create(builder, loc, type, joined));
  }

private:
  RankedTensorType split(RankedTensorType type, int64_t dim) const {
    return splitRows(type, dim, numParts);
  }

  Value split(Value value, int64_t dim) {
    return splitRows(builder, value, dim, numParts);
  }

  /// What an operator says of each dimension, with one for the parts.
  SmallVector<int64_t> withParts(ArrayRef<int64_t> each, int64_t dim,
                                 int64_t ofParts) {
    SmallVector<int64_t> all(each);
    all.insert(all.begin() + dim, ofParts);
    return all;
  }

  /// The same of numbers of rows.
  SmallVector<int64_t> inParts(ArrayRef<int64_t> each, int64_t dim,
                               int64_t ofParts) {
    SmallVector<int64_t> all = withParts(each, dim, ofParts);
    all[dim + 1] /= numParts;
    return all;
  }

  Value writeConcatenate(stablehlo::ConcatenateOp op, int64_t dim) {
    SmallVector<Value> parts;
    for (Value operand : op.getInputs()) {
      parts.push_back(split(operand, dim));
    }
    return stablehlo::ConcatenateOp::create(
        builder, op.getLoc(), split(op.getType(), dim), parts, dim + 1);
  }

  Value writeSlice(stablehlo::SliceOp op, int64_t dim) {
    return stablehlo::SliceOp::create(
        builder, op.getLoc(), split(op.getType(), dim),
        split(op.getOperand(), dim), inParts(op.getStartIndices(), dim, 0),
        inParts(op.getLimitIndices(), dim, numParts),
        withParts(op.getStrides(), dim, 1));
  }

  Value writePad(stablehlo::PadOp op, int64_t dim) {
    return stablehlo::PadOp::create(
        builder, op.getLoc(), split(op.getType(), dim),
        split(op.getOperand(), dim), op.getPaddingValue(),
        inParts(op.getEdgePaddingLow(), dim, 0),
        inParts(op.getEdgePaddingHigh(), dim, 0),
        withParts(op.getInteriorPadding(), dim, 0));
  }

  OpBuilder builder;
  int64_t numParts;
};

} // namespace

bool hasJoinedRows(func::FuncOp function, int64_t numParts) {
  Block &block = function.getBody().front();
  return !JoinedRows(block, numParts).getSteps().empty();
}

void joinInParts(func::FuncOp function, int64_t numParts) {
  JoinedRows rows(function.getBody().front(), numParts);
  PartJoining joining(function.getContext(), numParts);
  for (const auto &[operand, order] : rows.getOthers()) {
    joining.order(*operand, order);
  }
  for (auto [op, dim] : rows.getSteps()) {
    joining.write(op, dim);
  }
}

} // namespace mlir::alpa
