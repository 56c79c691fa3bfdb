//===- Sharding.cpp - Shardings as values ---------------------------------===//

#include "dialects/alpa/Sharding.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace mlir::alpa {

int64_t getNumShards(ShardingRowRef row, ArrayRef<int64_t> meshShape) {
  int64_t shards = 1;
  for (auto [axis, dim] : llvm::enumerate(row)) {
    shards *= dim >= 0 ? meshShape[axis] : 1;
  }
  return shards;
}

ShardingRow dropDim(ShardingRowRef row, unsigned dim) {
  ShardingRow dropped(row);
  for (int8_t &entry : dropped) {
    assert(entry != static_cast<int8_t>(dim) && "slices of a split dimension");
    entry -= entry > static_cast<int8_t>(dim) ? 1 : 0;
  }
  return dropped;
}

bool divides(ShardingRowRef row, ArrayRef<int64_t> shape,
             ArrayRef<int64_t> meshShape) {
  SmallVector<int64_t> local(shape);
  for (auto [axis, dim] : llvm::enumerate(row)) {
    if (dim < 0) {
      continue;
    }
    if (static_cast<size_t>(dim) >= shape.size() ||
        local[dim] % meshShape[axis] != 0) {
      return false;
    }
    local[dim] /= meshShape[axis];
  }
  return true;
}

SmallVector<int64_t> getLocalShape(ShardingRowRef row, ArrayRef<int64_t> shape,
                                   ArrayRef<int64_t> meshShape) {
  SmallVector<int64_t> local(shape);
  for (auto [axis, dim] : llvm::enumerate(row)) {
    if (dim >= 0) {
      local[dim] /= meshShape[axis];
    }
  }
  return local;
}

Type getLocalType(Type type, ShardingAttr sharding, MeshAttr mesh) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  if (!tensor || !sharding) {
    return type;
  }
  ShardingRow row = getRow(sharding, mesh.getNumAxes());
  return tensor.clone(getLocalShape(row, tensor.getShape(), mesh.getSizes()));
}

std::string toString(ShardingRowRef row, unsigned rank) {
  std::string text;
  auto appendAxes = [&](char letter, int8_t place) {
    size_t before = text.size();
    for (auto [axis, dim] : llvm::enumerate(row)) {
      if (dim == place) {
        text += (text.size() == before ? std::string(1, letter) : "") +
                std::to_string(axis);
      }
    }
    return text.size() != before;
  };
  for (unsigned dim = 0; dim < rank; ++dim) {
    if (!appendAxes('S', static_cast<int8_t>(dim))) {
      text += 'R';
    }
  }
  appendAxes('P', kPartial);
  return text;
}

ShardingAttr getShardingAttr(MLIRContext *context, ShardingRowRef row,
                             unsigned rank) {
  // Trailing replicated axes are dropped, so that equal shardings are equal.
  while (!row.empty() && row.back() == kReplicated) {
    row = row.drop_back();
  }
  return ShardingAttr::get(context, rank, row);
}

ShardingRow getRow(ShardingAttr sharding, unsigned numAxes) {
  ShardingRow row(sharding.getAxes());
  row.resize(numAxes, kReplicated);
  return row;
}

SmallVector<ShardingRow> enumerateShardings(ArrayRef<int64_t> shape,
                                            ArrayRef<int64_t> meshShape) {
  SmallVector<ShardingRow> rows;
  ShardingRow row(meshShape.size(), kReplicated);
  // Counts through all rows; axis 0 varies slowest.
  auto visit = [&](auto &self, unsigned axis) -> void {
    if (axis == meshShape.size()) {
      rows.push_back(row);
      return;
    }
    row[axis] = kReplicated;
    self(self, axis + 1);
    if (meshShape[axis] == 1) {
      return;
    }
    for (int8_t dim = 0; dim < static_cast<int8_t>(shape.size()); ++dim) {
      row[axis] = dim;
      if (shape[dim] > 1 &&
          divides(ArrayRef(row).take_front(axis + 1), shape, meshShape)) {
        self(self, axis + 1);
      }
    }
    row[axis] = kReplicated;
  };
  visit(visit, 0);
  return rows;
}

double getElementBytes(Type elementType) {
  if (auto complex = dyn_cast<ComplexType>(elementType)) {
    return 2 * getElementBytes(complex.getElementType());
  }
  if (auto quantized = dyn_cast<quant::QuantizedType>(elementType)) {
    return getElementBytes(quantized.getStorageType());
  }
  if (!elementType.isIntOrFloat()) {
    return 0;
  }
  unsigned bits = elementType.getIntOrFloatBitWidth();
  return bits <= 8 ? 1 : bits / 8.0;
}

int64_t countElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() ? tensor.getNumElements() : 0;
}

double getTensorBytes(Type type) {
  auto numElements = static_cast<double>(countElements(type));
  return numElements > 0
             ? getElementBytes(cast<RankedTensorType>(type).getElementType()) *
                   numElements
             : 0;
}

static ShardingAttr getEntry(Operation *op, StringRef name, unsigned index) {
  auto shardings = op->getAttrOfType<ArrayAttr>(name);
  if (!shardings || index >= shardings.size()) {
    return {};
  }
  return dyn_cast<ShardingAttr>(shardings[index]);
}

ShardingAttr getReplicatedSharding(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return ShardingAttr::get(value.getContext(), tensor ? tensor.getRank() : 0,
                           {});
}

/// What stands at an operand or a result of the operator that is on the edge.
static ShardingAttr getOuterSharding(Operation *op, const DataFlowEdge &edge) {
  for (OpOperand *source : edge.sources) {
    if (source->getOwner() == op) {
      return getEntry(op, kOperandsAttrName, source->getOperandNumber());
    }
  }
  auto result = cast<OpResult>(edge.getOuter(op));
  return getEntry(op, kResultsAttrName, result.getResultNumber());
}

ShardingAttr getEdgeSharding(DataFlowOpInterface op, const DataFlowEdge &edge,
                             bool isInside) {
  ShardingAttr outer = getOuterSharding(op, edge);
  if (!outer || !isInside || !edge.sliced) {
    return outer;
  }
  return getShardingAttr(op->getContext(),
                         dropDim(outer.getAxes(), *edge.sliced),
                         outer.getRank() - 1);
}

/// Arguments of regions lie as their edge does; without one they are the same
/// on every device.
static ShardingAttr getRegionSharding(DataFlowOpInterface op,
                                      BlockArgument argument) {
  if (!op->hasAttr(kOperandsAttrName)) {
    return {};
  }
  DataFlowEdge edge = op.getDataFlowEdge(argument);
  return edge ? getEdgeSharding(op, edge, /*isInside=*/true)
              : getReplicatedSharding(argument);
}

ShardingAttr getSharding(Value value) {
  if (auto result = dyn_cast<OpResult>(value)) {
    if (auto reshard = dyn_cast<ReshardOp>(result.getOwner())) {
      return reshard.getTarget();
    }
    return getEntry(result.getOwner(), kResultsAttrName,
                    result.getResultNumber());
  }
  auto argument = cast<BlockArgument>(value);
  Operation *parent = argument.getOwner()->getParentOp();
  if (auto function = dyn_cast_or_null<FunctionOpInterface>(parent)) {
    return function.getArgAttrOfType<ShardingAttr>(argument.getArgNumber(),
                                                   kShardingAttrName);
  }
  auto op = dyn_cast_or_null<DataFlowOpInterface>(parent);
  return op ? getRegionSharding(op, argument) : ShardingAttr();
}

MeshAttr getMesh(Operation *op) {
  for (; op; op = op->getParentOp()) {
    if (auto mesh = op->getAttrOfType<MeshAttr>(kMeshAttrName)) {
      return mesh;
    }
  }
  return {};
}

ShardingAttr getOperandSharding(OpOperand &operand) {
  return getEntry(operand.getOwner(), kOperandsAttrName,
                  operand.getOperandNumber());
}

} // namespace mlir::alpa
