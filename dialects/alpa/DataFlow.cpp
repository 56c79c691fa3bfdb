//===- DataFlow.cpp - Values through regions ------------------------------===//

#include "dialects/alpa/DataFlow.h"

#include "dialects/alpa/Alpa.h"
#include "llvm/ADT/DenseSet.h"

#include "dialects/alpa/DataFlowInterface.cpp.inc"

namespace mlir::alpa {

Value DataFlowEdge::getOuter(Operation *op) const {
  for (OpOperand *source : sources) {
    if (source->getOwner() == op) {
      return source->get();
    }
  }
  for (Value target : targets) {
    if (target.getDefiningOp() == op) {
      return target;
    }
  }
  return {};
}

bool DataFlowEdge::entersRegions() const {
  return llvm::any_of(targets, llvm::IsaPred<BlockArgument>);
}

DataFlowEdges::DataFlowEdges(DataFlowOpInterface op)
    : edges(op.getDataFlowEdges()) {
  for (auto [index, edge] : llvm::enumerate(edges)) {
    for (OpOperand *source : edge.sources) {
      bySource[source] = index;
    }
    for (Value target : edge.targets) {
      byTarget[target] = index;
    }
  }
}

std::optional<unsigned> DataFlowEdges::find(OpOperand &source) const {
  auto found = bySource.find(&source);
  return found == bySource.end() ? std::nullopt : std::optional(found->second);
}

std::optional<unsigned> DataFlowEdges::find(Value target) const {
  auto found = byTarget.find(target);
  return found == byTarget.end() ? std::nullopt : std::optional(found->second);
}

//===----------------------------------------------------------------------===//
// Constraints
//===----------------------------------------------------------------------===//

/// The type of the values inside of regions; null if there is no such slice.
static Type getInnerType(Type outer, const DataFlowEdge &edge) {
  if (!edge.sliced) {
    return outer;
  }
  auto tensor = dyn_cast<RankedTensorType>(outer);
  if (!tensor || *edge.sliced >= tensor.getRank()) {
    return {};
  }
  SmallVector<int64_t> shape(tensor.getShape());
  shape.erase(shape.begin() + *edge.sliced);
  return tensor.clone(shape);
}

static LogicalResult verifyEdge(Operation *op, unsigned index,
                                const DataFlowEdge &edge) {
  auto fail = [&] { return op->emitOpError() << "data-flow edge " << index; };
  Value outer = edge.getOuter(op);
  if (!outer) {
    return fail() << " has neither an operand nor a result of the operator";
  }
  Type inner = getInnerType(outer.getType(), edge);
  if (!inner) {
    return fail() << " is sliced along dimension " << *edge.sliced << " of "
                  << outer.getType();
  }
  auto check = [&](Type type, bool isOutside) -> LogicalResult {
    Type expected = isOutside ? outer.getType() : inner;
    if (type != expected) {
      return fail() << " joins " << type << " with " << expected;
    }
    return success();
  };
  for (OpOperand *source : edge.sources) {
    if (failed(check(source->get().getType(), source->getOwner() == op))) {
      return failure();
    }
  }
  for (Value target : edge.targets) {
    if (failed(check(target.getType(), target.getDefiningOp() == op))) {
      return failure();
    }
  }
  return success();
}

LogicalResult verifyDataFlow(DataFlowOpInterface op) {
  for (Region &region : op->getRegions()) {
    if (!region.empty() &&
        (!region.hasOneBlock() || !region.front().mightHaveTerminator())) {
      return op->emitOpError()
             << "has data-flow edges, but region " << region.getRegionNumber()
             << " is not one block with a terminator";
    }
  }
  llvm::DenseSet<const void *> seen;
  for (auto [index, edge] : llvm::enumerate(op.getDataFlowEdges())) {
    if (failed(verifyEdge(op, index, edge))) {
      return failure();
    }
    bool isAlone = true;
    for (OpOperand *source : edge.sources) {
      isAlone &= seen.insert(source).second;
    }
    for (Value target : edge.targets) {
      isAlone &= seen.insert(target.getAsOpaquePointer()).second;
    }
    if (!isAlone) {
      return op->emitOpError()
             << "data-flow edge " << index << " has a value of another edge";
    }
  }
  return success();
}

//===----------------------------------------------------------------------===//
// Defaults and helpers
//===----------------------------------------------------------------------===//

double getRegionRuns(DataFlowOpInterface op) {
  if (auto trips = op->getAttrOfType<IntegerAttr>(kTripCountAttrName)) {
    return static_cast<double>(trips.getInt());
  }
  return op.getRegionRuns().value_or(1);
}

DataFlowEdge findDataFlowEdge(Operation *op, BlockArgument argument) {
  for (DataFlowEdge &edge : cast<DataFlowOpInterface>(op).getDataFlowEdges()) {
    if (llvm::is_contained(edge.targets, argument)) {
      return std::move(edge);
    }
  }
  return {};
}

Operation *cloneWithEmptyRegions(Operation *op, OpBuilder &builder,
                                 ValueRange operands, TypeRange resultTypes) {
  OperationState state(op->getLoc(), op->getName());
  state.addOperands(operands);
  state.addTypes(resultTypes);
  state.addAttributes(op->getAttrs());
  for (unsigned index = 0; index < op->getNumRegions(); ++index) {
    state.addRegion();
  }
  return builder.create(state);
}

Operation *replaceWithMoreResults(Operation *op, OpBuilder &builder,
                                  ValueRange operands, Type type) {
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPoint(op);
  SmallVector<Type> types(op->getResultTypes());
  types.push_back(type);
  Operation *made = cloneWithEmptyRegions(op, builder, operands, types);
  for (auto [from, to] :
       llvm::zip_equal(op->getRegions(), made->getRegions())) {
    to.takeBody(from);
  }
  op->replaceAllUsesWith(made->getResults().drop_back());
  op->erase();
  return made;
}

} // namespace mlir::alpa
