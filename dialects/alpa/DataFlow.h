//===- DataFlow.h - Values through regions ----------------------*- C++ -*-===//
//
// The one thing an operator whose regions are part of the program supplies to
// be planned and lowered: which of its operands, results, region arguments and
// terminator operands are one value on its way.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_ALPA_DATAFLOW_H
#define DIALECTS_ALPA_DATAFLOW_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/SmallVector.h"
#include <optional>

namespace mlir::alpa {

/// Values of one operator that lie on the mesh in the same way.
///
/// The `i`th value that a `stablehlo.while` carries:
///   sources = {operand i, value i that the body returns}
///   targets = {argument i of the condition, argument i of the body, result i}
/// The `i`th result of a `stablehlo.case`:
///   sources = {value i that each branch returns};  targets = {result i}
struct DataFlowEdge {
  /// Operands of the operator and of terminators of its regions.
  SmallVector<OpOperand *, 2> sources;
  /// Arguments of its regions, and results.
  SmallVector<Value, 3> targets;
  /// The dimension of operands and results that regions run through, slice by
  /// slice: values inside of the regions lack it, and no mesh axis splits it.
  std::optional<unsigned> sliced;

  explicit operator bool() const { return !sources.empty(); }

  /// An operand or a result of `op`, which has all dimensions.
  Value getOuter(Operation *op) const;
  /// True if arguments of regions are on the edge.
  bool entersRegions() const;
};

/// Defaults of the interface.
DataFlowEdge findDataFlowEdge(Operation *op, BlockArgument argument);
Operation *cloneWithEmptyRegions(Operation *op, OpBuilder &builder,
                                 ValueRange operands, TypeRange resultTypes);

} // namespace mlir::alpa

#include "dialects/alpa/DataFlowInterface.h.inc"

namespace mlir::alpa {

/// The edges of one operator, to be looked up by their values.
class DataFlowEdges {
public:
  explicit DataFlowEdges(DataFlowOpInterface op);

  size_t size() const { return edges.size(); }
  auto begin() const { return edges.begin(); }
  auto end() const { return edges.end(); }
  const DataFlowEdge &operator[](size_t index) const { return edges[index]; }

  /// The number of the edge that a value comes from or goes to, if any.
  std::optional<unsigned> find(OpOperand &source) const;
  std::optional<unsigned> find(Value target) const;

private:
  SmallVector<DataFlowEdge> edges;
  DenseMap<OpOperand *, unsigned> bySource;
  DenseMap<Value, unsigned> byTarget;
};

/// Checks constraints (C1) to (C4) of the interface.
LogicalResult verifyDataFlow(DataFlowOpInterface op);

/// How often each region of `op` runs when it runs once: what stands on it
/// (`alpa.trip_count`), or what it says itself; 1 if that is not known.
double getRegionRuns(DataFlowOpInterface op);

/// For models of `addDataFlowEdge`: puts an operator in the place of `op` that
/// has its attributes and takes its regions, with `operands` and one result
/// more, of `type`.
Operation *replaceWithMoreResults(Operation *op, OpBuilder &builder,
                                  ValueRange operands, Type type);

} // namespace mlir::alpa

#endif // DIALECTS_ALPA_DATAFLOW_H
