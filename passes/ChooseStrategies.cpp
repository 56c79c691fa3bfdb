//===- ChooseStrategies.cpp - Names the chosen strategies -----------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/OperatorShardings.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/WholeRemarks.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_CHOOSESTRATEGIES
#include "passes/Passes.h.inc"

namespace {

/// Writes one solution of a strategy graph on the operators of its module.
class Chooser {
public:
  Chooser(func::FuncOp entry, const StrategyGraph &graph,
          ArrayRef<int64_t> solution)
      : entry(entry), graph(graph), solution(solution),
        context(entry.getContext()) {}

  void run() {
    for (auto &[op, placement] : graph.operatorPlacements) {
      setStrategy(op, graph.getFactorRow(placement, solution));
    }
    for (auto &[op, places] : graph.edgePlacements) {
      writeEdges(cast<DataFlowOpInterface>(op), places);
    }
    writeBoundary();
  }

private:
  ShardingAttr getSharding(ValuePlacement place, Type type) const {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return getShardingAttr(context,
                           graph.getRow(place.node, place.table, solution),
                           tensor ? tensor.getRank() : 0);
  }

  /// Values that flow through regions have no operator of their own.
  void writeEdges(DataFlowOpInterface op, ArrayRef<ValuePlacement> places) {
    DataFlowEdges edges(op);
    auto getRow = [&](std::optional<unsigned> edge) {
      ValuePlacement place = edge ? places[*edge] : ValuePlacement();
      return graph.getRow(place.node, place.table, solution);
    };
    OperatorRows rows;
    for (OpOperand &operand : op->getOpOperands()) {
      rows.operands.push_back(getRow(edges.find(operand)));
    }
    for (Value result : op->getResults()) {
      rows.results.push_back(getRow(edges.find(result)));
    }
    setShardings(op, rows);
  }

  void writeBoundary() {
    for (auto [index, input] : llvm::enumerate(graph.inputs)) {
      entry.setArgAttr(
          index, kShardingAttrName,
          getSharding(input.placement, entry.getArgumentTypes()[index]));
    }
    for (auto [index, output] : llvm::enumerate(graph.outputs)) {
      entry.setResultAttr(
          index, kShardingAttrName,
          getSharding(output.placement, entry.getResultTypes()[index]));
    }
  }

  func::FuncOp entry;
  const StrategyGraph &graph;
  ArrayRef<int64_t> solution;
  MLIRContext *context;
};

struct ChooseStrategies : impl::ChooseStrategiesBase<ChooseStrategies> {
  using ChooseStrategiesBase::ChooseStrategiesBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> entry = getEntryFunction(module);
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> meshAttr =
        parseMesh(&getContext(), mesh, [&] { return module.emitError(); });
    if (failed(meshAttr)) {
      return signalPassFailure();
    }
    FailureOr<StrategyGraph> graph = buildStrategyGraph(*entry, *meshAttr);
    if (failed(graph) || failed(verifySolution(*graph))) {
      return signalPassFailure();
    }
    SmallVector<int64_t> choices(solution.begin(), solution.end());
    Chooser(*entry, *graph, choices).run();
    module->setAttr(kMeshAttrName, *meshAttr);
    if (meshAttr->getNumDevices() > 1) {
      remarkKeptWhole(*entry);
    }
  }

  LogicalResult verifySolution(const StrategyGraph &graph) {
    if (solution.size() != graph.nodes.size()) {
      return getOperation().emitError()
             << "solution has " << solution.size() << " entries, the graph has "
             << graph.nodes.size() << " nodes";
    }
    for (size_t index = 0; index < graph.nodes.size(); ++index) {
      int64_t choice = solution[index];
      if (choice < 0 || choice >= graph.nodes[index].numStrategies) {
        return getOperation().emitError()
               << "solution chooses strategy " << choice << " of node " << index
               << " (" << graph.nodes[index].name << "), which has "
               << graph.nodes[index].numStrategies;
      }
    }
    return success();
  }
};

} // namespace
} // namespace mlir::alpa
