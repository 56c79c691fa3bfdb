//===- RegionStrategies.cpp - Values through regions ----------------------===//
//
// Values on one edge of an operator with regions keep one sharding: a node of
// the graph, to which what goes in is resharded.
//
//===----------------------------------------------------------------------===//

#include "cpp/analysis/OperatorRoles.h"
#include "cpp/analysis/StrategyGraphBuilder.h"

namespace mlir::alpa {

/// A word for what the node of an edge stands for.
static StringRef getKind(const DataFlowEdge &edge) {
  bool leavesRegions = llvm::any_of(edge.sources, [](OpOperand *source) {
    return source->getOwner()->hasTrait<OpTrait::IsTerminator>();
  });
  if (!edge.entersRegions()) {
    return "branch result";
  }
  return leavesRegions ? "carry" : "region input";
}

ValuePlacement StrategyGraphBuilder::placeSlices(ValuePlacement whole,
                                                 unsigned dim) {
  if (whole.node < 0) {
    return whole;
  }
  Table slices;
  for (unsigned row = 0; row < graph.tables[whole.table].numRows; ++row) {
    slices.push_back(dropDim(getRow(whole.table, row), dim));
  }
  return {whole.node, internTable(slices)};
}

void StrategyGraphBuilder::placeEdges(DataFlowOpInterface op,
                                      const DataFlowEdges &edges) {
  std::string name = getReadableName(op);
  auto partial = op->getAttrOfType<DenseI64ArrayAttr>(kPartialEdgesAttrName);
  SmallVector<ValuePlacement> places;
  for (size_t number = 0; number < edges.size(); ++number) {
    const DataFlowEdge &edge = edges[number];
    ValuePlacement place;
    if (partial && llvm::is_contained(partial.asArrayRef(), number)) {
      place = placeSum(edge.getOuter(op), name, getKind(edge));
    } else if (!isTinyEdge(op, edge)) {
      place = placeFreely(
          edge.getOuter(op), name, getKind(edge), [&](ShardingRowRef row) {
            return !edge.sliced ||
                   !llvm::is_contained(row, static_cast<int8_t>(*edge.sliced));
          });
    }
    places.push_back(place);
    for (Value target : edge.targets) {
      bool isSlice = edge.sliced && isa<BlockArgument>(target);
      graph.valuePlacements[target] =
          isSlice ? placeSlices(place, *edge.sliced) : place;
    }
  }
  // What is on no edge is the same on every device.
  auto placeOther = [&](Value value) {
    if (!edges.find(value)) {
      graph.valuePlacements[value] = {};
    }
  };
  llvm::for_each(op->getResults(), placeOther);
  for (Region &region : op->getRegions()) {
    llvm::for_each(region.getArguments(), placeOther);
  }
  graph.edgePlacements[op] = std::move(places);
}

LogicalResult StrategyGraphBuilder::visitRegions(DataFlowOpInterface op,
                                                 double weight) {
  DataFlowEdges edges(op);
  placeEdges(op, edges);
  SmallVector<ValuePlacement> places = graph.edgePlacements[op];
  auto join = [&](OpOperand &source, double joinWeight) {
    std::optional<unsigned> edge = edges.find(source);
    ValuePlacement place = edge ? places[*edge] : ValuePlacement();
    if (edge && edges[*edge].sliced && source.getOwner() != op) {
      place = placeSlices(place, *edges[*edge].sliced);
    }
    if (place.node < 0) {
      requireReplicated(source.get(), joinWeight);
    } else {
      connect(source.get(), place.node, place.table, joinWeight);
    }
  };
  for (OpOperand &operand : op->getOpOperands()) {
    join(operand, weight);
  }
  double regionWeight = weight * getRegionRuns(op);
  for (Region &region : op->getRegions()) {
    for (Block &block : region) {
      if (failed(visit(block, regionWeight))) {
        return failure();
      }
      for (OpOperand &operand : block.getTerminator()->getOpOperands()) {
        join(operand, regionWeight);
      }
    }
  }
  return success();
}

} // namespace mlir::alpa
