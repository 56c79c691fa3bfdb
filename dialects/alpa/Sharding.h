//===- Sharding.h - Shardings as values -------------------------*- C++ -*-===//
//
// The planner handles millions of shardings; it works on rows of one int8 per
// mesh axis instead of uniqued attributes.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_ALPA_SHARDING_H
#define DIALECTS_ALPA_SHARDING_H

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"

namespace mlir::alpa {

/// Entries of a sharding row that are not tensor dimensions.
inline constexpr int8_t kReplicated = -1;
inline constexpr int8_t kPartial = -2;

/// One entry per mesh axis: the dimension it splits, or one of the above.
using ShardingRow = SmallVector<int8_t, 4>;
using ShardingRowRef = ArrayRef<int8_t>;

/// In how many blocks the row splits a tensor.
int64_t getNumShards(ShardingRowRef row, ArrayRef<int64_t> meshShape);

/// How slices of a tensor along a dimension lie, which the row does not split.
ShardingRow dropDim(ShardingRowRef row, unsigned dim);

/// True if every dimension is divisible by the product of the axes on it.
bool divides(ShardingRowRef row, ArrayRef<int64_t> shape,
             ArrayRef<int64_t> meshShape);

/// Shape of one block; the row has to divide the shape.
SmallVector<int64_t> getLocalShape(ShardingRowRef row, ArrayRef<int64_t> shape,
                                   ArrayRef<int64_t> meshShape);

/// The type of one device's block of a tensor; other types stay as they are.
Type getLocalType(Type type, ShardingAttr sharding, MeshAttr mesh);

/// The row as `S0R`, `RS01`, `RRP1`.
std::string toString(ShardingRowRef row, unsigned rank);

ShardingAttr getShardingAttr(MLIRContext *context, ShardingRowRef row,
                             unsigned rank);
ShardingRow getRow(ShardingAttr sharding, unsigned numAxes);

/// Every row without partial axes that divides `shape`.
SmallVector<ShardingRow> enumerateShardings(ArrayRef<int64_t> shape,
                                            ArrayRef<int64_t> meshShape);

/// Bytes of an element as it lies in memory: i1 and sub-byte types take one.
double getElementBytes(Type elementType);

/// Elements of a tensor; none for types that are no tensor of known shape.
int64_t countElements(Type type);

/// Bytes of a tensor; none for types that are no tensor of known shape.
double getTensorBytes(Type type);

/// The sharding that the planned module gives a value: from its producer, its
/// function, or the edge on which an operator with regions has it. Null where
/// there is none.
ShardingAttr getSharding(Value value);

/// The sharding of the values on an edge of a planned operator: of operands and
/// results, or of their slices inside of regions. Null where there is none.
ShardingAttr getEdgeSharding(DataFlowOpInterface op, const DataFlowEdge &edge,
                             bool isInside);

/// A value that is the same on every device.
ShardingAttr getReplicatedSharding(Value value);

/// The mesh of the module around `op`; null if there is none.
MeshAttr getMesh(Operation *op);

/// Emits an error unless a sharding has the rank of its tensor and, on the
/// module's mesh, if it has one, uses axes that there are and divides it.
LogicalResult verifySharding(Operation *op, const Twine &what,
                             ShardingAttr sharding, RankedTensorType type);

/// Required sharding of an operand; null where there is none.
ShardingAttr getOperandSharding(OpOperand &operand);

} // namespace mlir::alpa

#endif // DIALECTS_ALPA_SHARDING_H
