//===- ManualStrategies.cpp - The one strategy of what is split by hand ---===//

#include "cpp/analysis/ManualVolumes.h"
#include "cpp/analysis/StrategyGraphBuilder.h"

namespace mlir::alpa {

/// FLOPs of one device's run of the body.
static double getBodyFlops(ManualOp op) {
  double flops = 0;
  op.getBody().walk([&](Operation *inner) {
    std::optional<ShardingRule> rule = getShardingRule(inner);
    flops += rule ? rule->flops * getRunsInBody(inner, op) : 0;
  });
  return flops;
}

LogicalResult StrategyGraphBuilder::visitManual(ManualOp op, double weight) {
  if (op.getMesh() != mesh) {
    InFlightDiagnostic error = op.emitError();
    error << "a shard_map on the mesh " << op.getMesh()
          << " cannot run on the mesh " << mesh
          << " that is planned for: axes must have the same names and sizes in "
             "the same order, as ManualSharding(mesh_shape=(";
    llvm::interleaveComma(op.getMesh().getSizes(), error);
    error << "), names=(";
    llvm::interleaveComma(op.getMesh().getNames(), error);
    return error << ")) gives them";
  }
  OperatorRows rows;
  std::string label;
  auto append = [&](auto &list, ShardingRow row, Type type, bool isFirst) {
    label += (isFirst ? "" : ",") +
             toString(row, cast<RankedTensorType>(type).getRank());
    list.push_back(std::move(row));
  };
  for (auto [index, type] : llvm::enumerate(op.getOperandTypes())) {
    append(rows.operands, op.getOperandRow(index), type, index == 0);
  }
  label += "->";
  for (auto [index, type] : llvm::enumerate(op.getResultTypes())) {
    append(rows.results, op.getResultRow(index), type, index == 0);
  }
  int node = addNode(getReadableName(op), op->getName().getStringRef(), 1);
  graph.nodes[node].labels[0] = label;
  ShardingRule rule;
  // What one device does, however many there are.
  rule.flops = op.getNumOperands() > 0 ? getBodyFlops(op) : 0;
  placeOperator(op, node, rule,
                tabulate(rule, {FactorRow(numAxes, kNoFactor)},
                         {std::move(rows)}, /*sumsAtOnce=*/false),
                weight);
  for (const ManualVolume &volume : getManualVolumes(op)) {
    graph.unaryTerms.push_back(
        {node, weight * volume.runs, {internPlan({volume.step})}});
  }
  return success();
}

} // namespace mlir::alpa
