//===- Chlo.cpp - verifiers of CHLO ---------------------------------------===//

#include "Checks.h"
#include "mlir/Dialect/Traits.h"
#include "stablehlo/dialect/ChloOps.h"

using namespace mlir;
using namespace mlir::chlo;
using namespace mlir::stablehlo::verifiers;

//===----------------------------------------------------------------------===//
// Operands that are broadcast
//===----------------------------------------------------------------------===//

/// The shape of the larger of two operands, and what the smaller one has of it:
/// its dimensions are where `dims` say, all others are 1.
static std::optional<SmallVector<int64_t>>
expand(ArrayRef<int64_t> shape, ArrayRef<int64_t> dims, int64_t rank) {
  SmallVector<int64_t> expanded(rank, 1);
  if (dims.size() != shape.size()) {
    return std::nullopt;
  }
  for (auto [size, dim] : llvm::zip_equal(shape, dims)) {
    if (dim < 0 || dim >= rank) {
      return std::nullopt;
    }
    expanded[dim] = size;
  }
  return expanded;
}

/// The shape to which ranked operands are broadcast, if there is one.
static std::optional<SmallVector<int64_t>>
getBroadcastShape(Operation *op, std::optional<ArrayRef<int64_t>> dims) {
  SmallVector<int64_t> shape;
  auto operands = llvm::map_to_vector(op->getOperands(), typeOf);
  int64_t rank = 0;
  for (RankedTensorType type : operands) {
    rank = std::max(rank, type.getRank());
  }
  for (RankedTensorType type : operands) {
    SmallVector<int64_t> other(type.getShape());
    if (dims && type.getRank() < rank) {
      auto expanded = expand(other, *dims, rank);
      if (!expanded) {
        return std::nullopt;
      }
      other = std::move(*expanded);
    }
    SmallVector<int64_t> merged;
    if (!mlir::OpTrait::util::getBroadcastedShape(shape, other, merged)) {
      return std::nullopt;
    }
    shape = std::move(merged);
  }
  return shape;
}

LogicalResult chlo::detail::verifyBroadcast(Operation *op) {
  auto dims = op->getAttrOfType<DenseI64ArrayAttr>("broadcast_dimensions");
  if (dims &&
      llvm::any_of(dims.asArrayRef(), [](int64_t d) { return d < 0; })) {
    return op->emitOpError() << "broadcast_dimensions must not be negative, "
                             << "but got " << dims;
  }
  auto result = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  if (!result ||
      !llvm::all_of(op->getOperandTypes(), llvm::IsaPred<RankedTensorType>)) {
    return success();
  }
  auto shape = getBroadcastShape(op, dims ? std::optional(dims.asArrayRef())
                                          : std::nullopt);
  return shape ? verifyShape(op, "result", result.getShape(), *shape)
               : success();
}

LogicalResult BroadcastComplexOp::verify() {
  Type part = cast<ShapedType>(getLhs().getType()).getElementType();
  Type element = cast<ShapedType>(getType()).getElementType();
  if (element != ComplexType::get(part)) {
    return emitOpError() << "result must be of " << ComplexType::get(part)
                         << ", but got " << element;
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Others
//===----------------------------------------------------------------------===//

LogicalResult ConstantLikeOp::verify() {
  Type element = cast<ShapedType>(getType()).getElementType();
  if (getValue().getType() != element) {
    return emitOpError() << "value must be of " << element << ", but got "
                         << getValue().getType();
  }
  return success();
}

LogicalResult TopKOp::verify() {
  auto operand = dyn_cast<RankedTensorType>(getOperand().getType());
  if (!operand) {
    return success();
  }
  int64_t rank = operand.getRank();
  if (rank < 1) {
    return emitOpError("needs an operand of rank at least 1, but got rank 0");
  }
  auto k = static_cast<int64_t>(getK());
  if (k < 0) {
    return emitOpError() << "k = " << k << " must not be negative";
  }
  SmallVector<int64_t> expected(operand.getShape());
  if (!ShapedType::isDynamic(expected.back()) && k > expected.back()) {
    return emitOpError() << "k = " << k
                         << " is more than the last dimension's size "
                         << expected.back();
  }
  expected.back() = k;
  Type i32 = IntegerType::get(getContext(), 32);
  std::pair<Type, Type> results[] = {
      {getValues().getType(), operand.getElementType()},
      {getIndices().getType(), i32}};
  for (auto [type, element] : results) {
    if (verifyType(*this, "result", type,
                   RankedTensorType::get(expected, element))
            .failed()) {
      return failure();
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// RaggedDotOp
//===----------------------------------------------------------------------===//

/// Batching and contracting dimensions: those of a plain product.
static LogicalResult verifyProduct(RaggedDotOp op) {
  RaggedDotDimensionNumbersAttr dims = op.getRaggedDotDimensionNumbers();
  RankedTensorType lhs = typeOf(op.getLhs()), rhs = typeOf(op.getRhs());
  auto join = [](ArrayRef<int64_t> one, ArrayRef<int64_t> other) {
    auto joined = llvm::to_vector(one);
    llvm::append_range(joined, other);
    return joined;
  };
  auto lhsDims =
      join(dims.getLhsBatchingDimensions(), dims.getLhsContractingDimensions());
  auto rhsDims =
      join(dims.getRhsBatchingDimensions(), dims.getRhsContractingDimensions());
  if (verifyCount(op, "rhs batching dimensions",
                  dims.getRhsBatchingDimensions().size(),
                  dims.getLhsBatchingDimensions().size())
          .failed() ||
      verifyCount(op, "rhs contracting dimensions",
                  dims.getRhsContractingDimensions().size(),
                  dims.getLhsContractingDimensions().size())
          .failed() ||
      verifyDims(op, "lhs dimension", lhsDims, lhs.getRank()).failed() ||
      verifyDims(op, "rhs dimension",
                 join(rhsDims, dims.getRhsGroupDimensions()), rhs.getRank())
          .failed()) {
    return failure();
  }
  for (auto [left, right] : llvm::zip_equal(lhsDims, rhsDims)) {
    if (verifySize(op, "rhs size", rhs.getDimSize(right), lhs.getDimSize(left))
            .failed()) {
      return failure();
    }
  }
  return success();
}

/// Sizes before the number of groups: what is outside of the ragged dimension.
static SmallVector<int64_t> getOuterSizes(RaggedDotOp op, int64_t ragged) {
  RaggedDotDimensionNumbersAttr dims = op.getRaggedDotDimensionNumbers();
  ArrayRef<int64_t> batch = dims.getLhsBatchingDimensions();
  ArrayRef<int64_t> contracting = dims.getLhsContractingDimensions();
  auto before = [&](ArrayRef<int64_t> list) {
    return list.take_front(llvm::find(list, ragged) - list.begin());
  };
  SmallVector<int64_t> outer(before(batch));
  if (llvm::is_contained(contracting, ragged)) {
    llvm::append_range(outer, before(contracting));
  } else if (!llvm::is_contained(batch, ragged)) {
    for (int64_t dim = 0; dim < ragged; ++dim) {
      if (!llvm::is_contained(batch, dim) &&
          !llvm::is_contained(contracting, dim)) {
        outer.push_back(dim);
      }
    }
  }
  return llvm::map_to_vector(
      outer, [&](int64_t dim) { return typeOf(op.getLhs()).getDimSize(dim); });
}

/// The one ragged dimension has as many groups as the sizes and the right
/// operand.
static LogicalResult verifyGroups(RaggedDotOp op, int64_t ragged) {
  RaggedDotDimensionNumbersAttr dims = op.getRaggedDotDimensionNumbers();
  RankedTensorType groups = typeOf(op.getGroupSizes());
  SmallVector<int64_t> shape = getOuterSizes(op, ragged);
  if (groups.getRank() == 0) {
    return op.emitOpError("needs group sizes of rank at least 1");
  }
  shape.push_back(groups.getShape().back());
  if (groups.getRank() != 1 &&
      verifyShape(op, "group sizes", groups.getShape(), shape).failed()) {
    return failure();
  }
  bool isFree = !llvm::is_contained(dims.getLhsBatchingDimensions(), ragged) &&
                !llvm::is_contained(dims.getLhsContractingDimensions(), ragged);
  ArrayRef<int64_t> rhsGroups = dims.getRhsGroupDimensions();
  if (verifyCount(op, "rhs group dimensions", rhsGroups.size(), isFree)
          .failed()) {
    return failure();
  }
  return rhsGroups.empty()
             ? success()
             : verifySize(op, "size of the rhs group dimension",
                          typeOf(op.getRhs()).getDimSize(rhsGroups.front()),
                          groups.getShape().back());
}

LogicalResult RaggedDotOp::verify() {
  if (!isa<RankedTensorType>(getLhs().getType()) ||
      !isa<RankedTensorType>(getRhs().getType()) ||
      !isa<RankedTensorType>(getType())) {
    return emitOpError("needs ranked operands and a ranked result");
  }
  RaggedDotDimensionNumbersAttr dims = getRaggedDotDimensionNumbers();
  RankedTensorType lhs = typeOf(getLhs()), rhs = typeOf(getRhs());
  ArrayRef<int64_t> ragged = dims.getLhsRaggedDimensions();
  if (verifyPrecisions(*this, getPrecisionConfig()).failed() ||
      verifyProduct(*this).failed() ||
      verifyCount(*this, "lhs ragged dimensions", ragged.size(), 1).failed() ||
      verifyDims(*this, "lhs ragged dimension", ragged, lhs.getRank())
          .failed() ||
      verifyGroups(*this, ragged.front()).failed()) {
    return failure();
  }
  SmallVector<int64_t> shape;
  if (llvm::is_contained(dims.getLhsContractingDimensions(), ragged.front())) {
    shape.push_back(typeOf(getGroupSizes()).getShape().back());
  }
  for (int64_t dim : dims.getLhsBatchingDimensions()) {
    shape.push_back(lhs.getDimSize(dim));
  }
  for (int64_t dim = 0; dim < lhs.getRank(); ++dim) {
    if (!llvm::is_contained(dims.getLhsBatchingDimensions(), dim) &&
        !llvm::is_contained(dims.getLhsContractingDimensions(), dim)) {
      shape.push_back(lhs.getDimSize(dim));
    }
  }
  for (int64_t dim = 0; dim < rhs.getRank(); ++dim) {
    if (!llvm::is_contained(dims.getRhsBatchingDimensions(), dim) &&
        !llvm::is_contained(dims.getRhsContractingDimensions(), dim) &&
        !llvm::is_contained(dims.getRhsGroupDimensions(), dim)) {
      shape.push_back(rhs.getDimSize(dim));
    }
  }
  return verifyShape(*this, "result",
                     cast<RankedTensorType>(getType()).getShape(), shape);
}

//===----------------------------------------------------------------------===//
// Scans
//===----------------------------------------------------------------------===//

/// The values of the body, of which the first `numSlices` are slices along
/// the dimension of those outside.
static LogicalResult verifyBody(ScanOp op, StringRef name, TypeRange outside,
                                TypeRange inside, size_t numSlices) {
  if (inside.size() != outside.size()) {
    return op.emitOpError() << "the body has " << inside.size() << " " << name
                            << "s, but the scan has " << outside.size();
  }
  int64_t dimension = op.getDimension();
  for (auto [index, pair] : llvm::enumerate(llvm::zip(outside, inside))) {
    auto type = cast<RankedTensorType>(std::get<0>(pair));
    SmallVector<int64_t> shape(type.getShape());
    if (index < numSlices) {
      if (dimension >= type.getRank()) {
        return op.emitOpError()
               << "dimension " << dimension << " is not one of " << name << " "
               << index << ", " << type;
      }
      shape.erase(shape.begin() + dimension);
    }
    auto taken = dyn_cast<RankedTensorType>(std::get<1>(pair));
    if (!taken || taken.getElementType() != type.getElementType() ||
        failed(verifyCompatibleShape(taken.getShape(), shape))) {
      return op.emitOpError()
             << name << " " << index << " of the body is of "
             << std::get<1>(pair) << ", expected " << type.clone(shape);
    }
  }
  return success();
}

LogicalResult ScanOp::verify() {
  if (getInputs().empty() && getOutputs().empty()) {
    return emitOpError("needs an input or an output");
  }
  if (getInits().size() != getCarries().size()) {
    return emitOpError() << "has " << getInits().size() << " inits, but "
                         << getCarries().size() << " carries";
  }
  std::optional<uint64_t> size = getScanDimSize();
  SmallVector<Type> wholes(getInputs().getTypes());
  llvm::append_range(wholes, getOutputs().getTypes());
  for (Type whole : wholes) {
    auto type = cast<RankedTensorType>(whole);
    if (getDimension() >= static_cast<uint64_t>(type.getRank()) ||
        type.isDynamicDim(getDimension())) {
      continue;
    }
    uint64_t own = type.getDimSize(getDimension());
    if (size && *size != own) {
      return emitOpError() << "runs through " << *size << " slices, but "
                           << type << " has " << own;
    }
    size = own;
  }
  Block &body = getBody().front();
  if (body.empty() || !body.back().hasTrait<::mlir::OpTrait::IsTerminator>()) {
    return emitOpError("needs a body with a terminator");
  }
  return success(
      succeeded(verifyBody(*this, "argument", getOperandTypes(),
                           body.getArgumentTypes(), getInputs().size())) &&
      succeeded(verifyBody(*this, "result", getResultTypes(),
                           body.back().getOperandTypes(),
                           getOutputs().size())));
}
