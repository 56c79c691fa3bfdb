//===- Attention.cpp - Attention in blocks of keys ------------------------===//

#include "dialects/alpa/Alpa.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::alpa;

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

/// The sizes of the first dimensions, of the next ones, and one more.
static SmallVector<int64_t> join(ArrayRef<int64_t> first,
                                 ArrayRef<int64_t> next,
                                 std::optional<int64_t> last = std::nullopt) {
  SmallVector<int64_t> shape(first);
  llvm::append_range(shape, next);
  if (last) {
    shape.push_back(*last);
  }
  return shape;
}

static LogicalResult verifyShape(Operation *op, StringRef what, Value value,
                                 ArrayRef<int64_t> expected) {
  if (getShape(value) != expected) {
    return op->emitOpError() << what << " has sizes [" << getShape(value)
                             << "], expected [" << expected << "]";
  }
  return success();
}

/// Scores and what a region takes: its first arguments are of their shape.
static LogicalResult verifyRegion(Operation *op, Region &region,
                                  unsigned numScores, ValueRange extras) {
  Block &block = region.front();
  auto first = dyn_cast<RankedTensorType>(
      block.getNumArguments() == 0 ? Type() : block.getArgument(0).getType());
  // C3
  if (!first || block.getNumArguments() != numScores + extras.size()) {
    return op->emitOpError()
           << "has a region of " << block.getNumArguments()
           << " arguments, expected " << numScores
           << " of the shape of the scores and " << extras.size() << " extras";
  }
  auto isOfScores = [&](Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getShape() == first.getShape();
  };
  bool fits =
      llvm::all_of(block.getArguments().take_front(numScores), isOfScores) &&
      llvm::equal(
          ValueRange(block.getArguments().drop_front(numScores)).getTypes(),
          extras.getTypes());
  auto yield = block.empty() ? YieldOp() : dyn_cast<YieldOp>(block.back());
  if (!fits || !yield || yield->getNumOperands() == 0 ||
      (numScores == 2 && yield->getNumOperands() != 1) ||
      !llvm::all_of(yield->getOperands(), isOfScores)) {
    return op->emitOpError()
           << "has a region that does not take scores and extras and yield "
              "tensors of shape ["
           << first.getShape() << "]";
  }
  return success();
}

/// What both operators have: see the constraints of `alpa.attention`.
template <typename Op> static LogicalResult verifyOperands(Op op) {
  ArrayRef<int64_t> scores = op.getScoreShape();
  int64_t rank = scores.size();
  int64_t numBatch = op.getBatch();
  ArrayRef<int64_t> query = getShape(op.getQuery());
  ArrayRef<int64_t> value = getShape(op.getValue());
  // C1
  if (numBatch < 0 || rank < numBatch + 2 || query.empty() || value.empty()) {
    return op.emitOpError() << "has scores of rank " << rank << " and "
                            << numBatch << " dimensions of the batch, "
                            << "expected a row and the keys behind these";
  }
  ArrayRef<int64_t> batch = scores.take_front(numBatch);
  if (failed(verifyShape(op, "query", op.getQuery(),
                         join(scores.drop_back(), {}, query.back()))) ||
      failed(verifyShape(op, "key", op.getKey(),
                         join(batch, scores.back(), query.back()))) ||
      failed(verifyShape(op, "value", op.getValue(),
                         join(batch, scores.back(), value.back())))) {
    return failure();
  }
  // C2
  if (op.getDims().size() != op.getExtras().size()) {
    return op.emitOpError() << "has dims of " << op.getDims().size()
                            << " extras, there are " << op.getExtras().size();
  }
  for (auto [entry, extra] : llvm::zip(op.getDims(), op.getExtras())) {
    auto dims = dyn_cast<DenseI64ArrayAttr>(entry);
    SmallVector<int64_t> sizes;
    int64_t last = -1;
    for (int64_t dim : dims ? dims.asArrayRef() : ArrayRef<int64_t>()) {
      if (dim <= last || dim >= rank) {
        dims = {};
        break;
      }
      sizes.push_back(scores[dim]);
      last = dim;
    }
    if (!dims) {
      return op.emitOpError() << "expects ascending dimensions of the scores, "
                                 "not "
                              << entry;
    }
    if (failed(verifyShape(op, "extra", extra, sizes))) {
      return failure();
    }
  }
  return success();
}

LogicalResult AttentionOp::verifyRegions() {
  if (failed(verifyRegion(*this, getScores(), 1, getExtras())) ||
      failed(verifyOperands(*this))) {
    return failure();
  }
  ArrayRef<int64_t> rows = getScoreShape().drop_back();
  // C4
  if (getMax().getType() != getSum().getType()) {
    return emitOpError() << "has a maximum of type " << getMax().getType()
                         << " and a sum of type " << getSum().getType();
  }
  return success(
      succeeded(verifyShape(*this, "result", getOut(),
                            join(rows, {}, getShape(getValue()).back()))) &&
      succeeded(verifyShape(*this, "maximum", getMax(), rows)));
}

LogicalResult AttentionGradientOp::verifyRegions() {
  if (failed(verifyRegion(*this, getScores(), 1, getExtras())) ||
      failed(verifyRegion(*this, getGradients(), 2, getExtras())) ||
      failed(verifyOperands(*this))) {
    return failure();
  }
  ArrayRef<int64_t> rows = getScoreShape().drop_back();
  SmallVector<int64_t> out = join(rows, {}, getShape(getValue()).back());
  bool fits =
      succeeded(verifyShape(*this, "result", getOut(), out)) &&
      succeeded(verifyShape(*this, "gradient", getGradient(), out)) &&
      succeeded(verifyShape(*this, "maximum", getMax(), rows)) &&
      succeeded(verifyShape(*this, "sum", getSum(), rows)) &&
      succeeded(verifyShape(*this, "gradient of the query", getQueryGradient(),
                            getShape(getQuery()))) &&
      succeeded(verifyShape(*this, "gradient of the key", getKeyGradient(),
                            getShape(getKey()))) &&
      succeeded(verifyShape(*this, "gradient of the value", getValueGradient(),
                            getShape(getValue())));
  return success(fits);
}
