//===- ProductRingEmitter.h - Products block by block -----------*- C++ -*-===//

#ifndef PASSES_PRODUCTRINGEMITTER_H
#define PASSES_PRODUCTRINGEMITTER_H

#include "cpp/analysis/ProductRings.h"
#include "passes/CollectiveEmitter.h"

namespace mlir::alpa {

/// Writes a collective and the products beside it for one device. Step t of n
/// needs nothing of the permute that runs beside it.
class ProductRingEmitter {
public:
  ProductRingEmitter(OpBuilder &builder, CollectiveEmitter &collectives,
                     const ProductRing &ring)
      : builder(builder), collectives(collectives), ring(ring),
        loc(ring.reshard->getLoc()), axes(ring.step.axes),
        numBlocks(collectives.getGroupSize(axes)) {}

  /// Local tensors of a product: operands, and the type of its result.
  struct Local {
    SmallVector<Value, 2> operands;
    RankedTensorType type;
  };

  /// What an all-gather and the products behind it make.
  struct Gathered {
    SmallVector<Value, 2> results;
    /// The gathered value, where others use it.
    Value whole;
  };

  /// At step t the device at position p has the block of position p - t:
  ///
  ///   c[p - t] = a[p - t] b        or        c += a[p - t] b[p - t]
  ///
  /// Args:
  ///   block: what the device has of what is gathered.
  ///   locals: of the ring's products; what is gathered is not looked at.
  Gathered emitGather(Value block, ArrayRef<Local> locals);

  /// The device at position p makes its share of the block of position
  /// p - 1 - t, and adds it to the sum that goes around:
  ///
  ///   c = rotate(c) + a[p - 1 - t] b
  ///
  /// Args:
  ///   local: of the ring's product; the type is that of the whole share.
  Value emitScatter(const Local &local);

private:
  RankedTensorType getBlockType(RankedTensorType type, int64_t dim) const;
  Value emitProduct(const RingProduct &product, ValueRange operands,
                    RankedTensorType type);
  Value emitSum(Value left, Value right);
  Value convert(Value value, Type elementType);
  /// What a product makes with the block that is there, added to what it made
  /// of the others.
  Value emitStep(const RingProduct &product, const Local &local, Value block,
                 int64_t shift, Value before);

  OpBuilder &builder;
  CollectiveEmitter &collectives;
  const ProductRing &ring;
  Location loc;
  ArrayRef<unsigned> axes;
  int64_t numBlocks;
};

} // namespace mlir::alpa

#endif // PASSES_PRODUCTRINGEMITTER_H
