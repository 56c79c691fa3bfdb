//===- ProductRingEmitter.cpp - Products block by block -------------------===//

#include "passes/ProductRingEmitter.h"

namespace mlir::alpa {

RankedTensorType ProductRingEmitter::getBlockType(RankedTensorType type,
                                                  int64_t dim) const {
  SmallVector<int64_t> sizes(type.getShape());
  sizes[dim] /= numBlocks;
  return type.clone(sizes);
}

Value ProductRingEmitter::emitProduct(const RingProduct &product,
                                      ValueRange operands,
                                      RankedTensorType type) {
  stablehlo::DotGeneralOp op = product.op;
  return stablehlo::DotGeneralOp::create(
      builder, op.getLoc(), type, operands[0], operands[1],
      op.getDotDimensionNumbersAttr(), op.getPrecisionConfigAttr(),
      op.getAlgorithmAttr());
}

Value ProductRingEmitter::emitSum(Value left, Value right) {
  return stablehlo::AddOp::create(builder, loc, left.getType(), left, right);
}

Value ProductRingEmitter::convert(Value value, Type elementType) {
  auto type = cast<RankedTensorType>(value.getType());
  return type.getElementType() == elementType
             ? value
             : stablehlo::ConvertOp::create(builder, loc,
                                            type.clone(elementType), value)
                   .getResult();
}

Value ProductRingEmitter::emitStep(const RingProduct &product,
                                   const Local &local, Value block,
                                   int64_t shift, Value before) {
  auto side = static_cast<unsigned>(product.side);
  SmallVector<Value, 2> operands = local.operands;
  operands[side] = block;
  if (int64_t dim = product.dims[1 - side]; dim >= 0) {
    operands[1 - side] =
        collectives.emitRotatedSlice(operands[1 - side], dim, axes, shift, loc);
  }
  if (int64_t dim = product.dims[2]; dim >= 0) {
    Value part = emitProduct(product, operands, getBlockType(local.type, dim));
    return collectives.emitRotatedUpdate(
        before ? before : collectives.emitZeros(local.type, loc), part, dim,
        axes, shift, loc);
  }
  RankedTensorType type = local.type;
  type = type.clone(getSumType(type.getElementType()));
  Value part = emitProduct(product, operands, type);
  return before ? emitSum(before, part) : part;
}

ProductRingEmitter::Gathered
ProductRingEmitter::emitGather(Value block, ArrayRef<Local> locals) {
  Gathered made;
  made.results.resize(locals.size());
  auto dim = ring.step.fromDim;
  if (ring.isKept) {
    auto type = cast<RankedTensorType>(block.getType());
    SmallVector<int64_t> sizes(type.getShape());
    sizes[dim] *= numBlocks;
    made.whole = collectives.emitZeros(type.clone(sizes), loc);
  }
  for (int64_t step = 0; step < numBlocks; ++step) {
    int64_t shift = (numBlocks - step) % numBlocks;
    // Stands before the products, which it may run beside.
    Value next = step + 1 < numBlocks
                     ? collectives.emitRotation(block, axes, loc)
                     : Value();
    for (auto [product, local, result] :
         llvm::zip_equal(ring.products, locals, made.results)) {
      result = emitStep(product, local, block, shift, result);
    }
    if (made.whole) {
      made.whole = collectives.emitRotatedUpdate(made.whole, block, dim, axes,
                                                 shift, loc);
    }
    block = next;
  }
  for (auto [local, result] : llvm::zip_equal(locals, made.results)) {
    result = convert(result, local.type.getElementType());
  }
  return made;
}

Value ProductRingEmitter::emitScatter(const Local &local) {
  const RingProduct &product = ring.products.front();
  Type element = local.type.getElementType();
  RankedTensorType block = getBlockType(local.type, product.dims[2]);
  Value sum;
  for (int64_t step = 0; step < numBlocks; ++step) {
    int64_t shift = numBlocks - 1 - step;
    Value arrived = sum ? collectives.emitRotation(sum, axes, loc) : Value();
    SmallVector<Value, 2> operands = local.operands;
    for (auto [operand, dim] : llvm::zip(operands, product.dims)) {
      if (dim >= 0) {
        operand = collectives.emitRotatedSlice(operand, dim, axes, shift, loc);
      }
    }
    Value part =
        emitProduct(product, operands, block.clone(getSumType(element)));
    if (arrived) {
      part = emitSum(convert(arrived, getSumType(element)), part);
    }
    sum = convert(part, element);
  }
  return sum;
}

} // namespace mlir::alpa
