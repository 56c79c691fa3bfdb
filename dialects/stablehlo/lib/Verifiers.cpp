//===- Verifiers.cpp - what later code may rely on ------------------------===//
//
// Checked here: whatever makes an index into a shape, or a zip of two lists,
// safe.
//
//===----------------------------------------------------------------------===//

#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;

static RankedTensorType typeOf(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// Checks that `dims` are distinct and in [0, rank).
static LogicalResult verifyDims(Operation *op, StringRef name,
                                ArrayRef<int64_t> dims, int64_t rank) {
  SmallVector<int64_t> seen;
  for (int64_t dim : dims) {
    if (dim < 0 || dim >= rank) {
      return op->emitOpError()
             << name << " " << dim << " is not in [0, " << rank << ")";
    }
    if (llvm::is_contained(seen, dim)) {
      return op->emitOpError() << name << " " << dim << " appears twice";
    }
    seen.push_back(dim);
  }
  return success();
}

static LogicalResult verifyCount(Operation *op, StringRef name, int64_t count,
                                 int64_t expected) {
  if (count != expected) {
    return op->emitOpError()
           << name << " must number " << expected << ", but got " << count;
  }
  return success();
}

static LogicalResult verifySize(Operation *op, StringRef name, int64_t size,
                                int64_t expected) {
  if (!ShapedType::isDynamic(size) && !ShapedType::isDynamic(expected) &&
      size != expected) {
    return op->emitOpError()
           << name << " must be " << expected << ", but got " << size;
  }
  return success();
}

LogicalResult TransposeOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  if (verifyCount(*this, "permutation entries", getPermutation().size(),
                  in.getRank())
          .failed() ||
      verifyDims(*this, "permutation entry", getPermutation(), in.getRank())
          .failed() ||
      verifyCount(*this, "result dimensions", out.getRank(), in.getRank())
          .failed()) {
    return failure();
  }
  for (auto [i, dim] : llvm::enumerate(getPermutation())) {
    if (verifySize(*this, "result size", out.getDimSize(i), in.getDimSize(dim))
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult ReshapeOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  if (in.hasStaticShape() && out.hasStaticShape()) {
    return verifySize(*this, "number of result elements", out.getNumElements(),
                      in.getNumElements());
  }
  return success();
}

LogicalResult BroadcastInDimOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  ArrayRef<int64_t> dims = getBroadcastDimensions();
  if (verifyCount(*this, "broadcast dimensions", dims.size(), in.getRank())
          .failed() ||
      verifyDims(*this, "broadcast dimension", dims, out.getRank()).failed()) {
    return failure();
  }
  for (auto [i, dim] : llvm::enumerate(dims)) {
    if (in.getDimSize(i) != 1 &&
        verifySize(*this, "operand size", in.getDimSize(i), out.getDimSize(dim))
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult SliceOp::verify() {
  RankedTensorType in = typeOf(getOperand()), out = getType();
  int64_t rank = in.getRank();
  if (verifyCount(*this, "start indices", getStartIndices().size(), rank)
          .failed() ||
      verifyCount(*this, "limit indices", getLimitIndices().size(), rank)
          .failed() ||
      verifyCount(*this, "strides", getStrides().size(), rank).failed() ||
      verifyCount(*this, "result dimensions", out.getRank(), rank).failed()) {
    return failure();
  }
  for (int64_t i = 0; i < rank; ++i) {
    int64_t start = getStartIndices()[i], limit = getLimitIndices()[i],
            step = getStrides()[i];
    if (start < 0 || limit < start || step < 1 ||
        (!in.isDynamicDim(i) && limit > in.getDimSize(i))) {
      return emitOpError() << "range " << start << ":" << limit << ":" << step
                           << " does not fit dimension " << i << " of " << in;
    }
    int64_t expected = (limit - start) / step + ((limit - start) % step != 0);
    if (verifySize(*this, "result size", out.getDimSize(i), expected)
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult DotGeneralOp::verify() {
  RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs()),
                   out = getType();
  DotDimensionNumbersAttr dims = getDotDimensionNumbers();
  ArrayRef<int64_t> lhsBatch = dims.getLhsBatchingDimensions();
  ArrayRef<int64_t> rhsBatch = dims.getRhsBatchingDimensions();
  ArrayRef<int64_t> lhsContract = dims.getLhsContractingDimensions();
  ArrayRef<int64_t> rhsContract = dims.getRhsContractingDimensions();
  auto lhsDims =
      llvm::to_vector(llvm::concat<const int64_t>(lhsBatch, lhsContract));
  auto rhsDims =
      llvm::to_vector(llvm::concat<const int64_t>(rhsBatch, rhsContract));
  if (verifyCount(*this, "rhs batching dimensions", rhsBatch.size(),
                  lhsBatch.size())
          .failed() ||
      verifyCount(*this, "rhs contracting dimensions", rhsContract.size(),
                  lhsContract.size())
          .failed() ||
      verifyDims(*this, "lhs dimension", lhsDims, lhs.getRank()).failed() ||
      verifyDims(*this, "rhs dimension", rhsDims, rhs.getRank()).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape;
  for (auto [l, r] : llvm::zip(lhsDims, rhsDims)) {
    if (verifySize(*this, "rhs size", rhs.getDimSize(r), lhs.getDimSize(l))
            .failed()) {
      return failure();
    }
  }
  for (int64_t dim : lhsBatch) {
    shape.push_back(lhs.getDimSize(dim));
  }
  for (auto [type, used] : {std::pair(lhs, lhsDims), std::pair(rhs, rhsDims)}) {
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (!llvm::is_contained(used, dim)) {
        shape.push_back(type.getDimSize(dim));
      }
    }
  }
  if (verifyCount(*this, "result dimensions", out.getRank(), shape.size())
          .failed()) {
    return failure();
  }
  for (auto [size, expected] : llvm::zip(out.getShape(), shape)) {
    if (verifySize(*this, "result size", size, expected).failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult ReduceOp::verify() {
  int64_t count = getInputs().size();
  if (count == 0) {
    return emitOpError("needs at least one input");
  }
  if (verifyCount(*this, "results", getNumResults(), count).failed() ||
      verifyCount(*this, "arguments of the body",
                  getBody().front().getNumArguments(), 2 * count)
          .failed()) {
    return failure();
  }
  for (auto [input, result] : llvm::zip(getInputs(), getResults())) {
    int64_t rank = typeOf(input).getRank();
    int64_t dims = getDimensions().size();
    if (verifyDims(*this, "dimension", getDimensions(), rank).failed() ||
        verifyCount(*this, "result dimensions", typeOf(result).getRank(),
                    rank - dims)
            .failed()) {
      return failure();
    }
  }
  return success();
}

LogicalResult WhileOp::verify() {
  TypeRange types = getOperandTypes();
  if (getResultTypes() != types || getCond().getArgumentTypes() != types ||
      getBody().getArgumentTypes() != types ||
      getBody().front().getTerminator()->getOperandTypes() != types) {
    return emitOpError("operands, results, arguments of both regions and the "
                       "values that the body "
                       "returns must have the same types");
  }
  return verifyCount(*this, "values that the condition returns",
                     getCond().front().getTerminator()->getNumOperands(), 1);
}
