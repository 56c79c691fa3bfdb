//===- ApplyStrategies.cpp - Writes the chosen shardings ------------------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/FactorMapping.h"
#include "cpp/analysis/OperatorRoles.h"
#include "cpp/analysis/StrategyGraph.h"
#include "dialects/alpa/DataFlow.h"
#include "passes/Passes.h"
#include <map>

namespace mlir::alpa {

#define GEN_PASS_DEF_APPLYSTRATEGIES
#include "passes/Passes.h.inc"

namespace {

unsigned getRank(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor ? tensor.getRank() : 0;
}

/// Writes one solution of a strategy graph into its module.
class Applier {
public:
  Applier(func::FuncOp entry, const StrategyGraph &graph,
          ArrayRef<int64_t> solution)
      : entry(entry), graph(graph), solution(solution),
        context(entry.getContext()) {}

  void run() {
    SmallVector<Operation *> operators;
    entry.walk([&](Operation *op) {
      if (op->getParentOfType<ManualOp>()) {
        // A program of one device already.
        return;
      }
      if (isa<DataFlowOpInterface>(op) ||
          graph.operatorPlacements.contains(op) || isPlannedTerminator(op)) {
        operators.push_back(op);
      } else if (op->hasAttr(kRoleAttrName)) {
        rematerialized.push_back(op);
      }
    });
    for (Operation *op : operators) {
      apply(op);
    }
    // Users come after what they use: erase from the back.
    for (Operation *op : llvm::reverse(rematerialized)) {
      if (op->use_empty()) {
        op->erase();
      }
    }
    writeBoundary();
  }

private:
  bool isPlannedTerminator(Operation *op) const {
    Operation *parent = op->getParentOp();
    return op->hasTrait<OpTrait::IsTerminator>() &&
           (parent == entry || isa<DataFlowOpInterface>(parent));
  }

  ShardingRow getRow(ValuePlacement place) const {
    return graph.getRow(place.node, place.table, solution);
  }

  void apply(Operation *op) {
    SmallVector<ShardingRow> operandRows, resultRows;
    auto placement = graph.operatorPlacements.find(op);
    if (placement != graph.operatorPlacements.end()) {
      const OperatorPlacement &place = placement->second;
      for (int table : place.operandTables) {
        operandRows.push_back(graph.getRow(place.node, table, solution));
      }
      for (int table : place.resultTables) {
        resultRows.push_back(graph.getRow(place.node, table, solution));
      }
    } else {
      getDataFlowRows(op, operandRows, resultRows);
    }
    for (auto [operand, row] : llvm::zip(op->getOpOperands(), operandRows)) {
      operand.set(materialize(operand.get(), row));
    }
    forEachCapture(op, [&](OpOperand &operand) {
      ShardingRow whole(graph.meshShape.size(), kReplicated);
      operand.set(materialize(operand.get(), whole));
    });
    writeShardings(op, operandRows, resultRows);
    if (placement != graph.operatorPlacements.end()) {
      insertImmediateReductions(op, resultRows);
    }
    op->removeAttr(kRoleAttrName);
    op->removeAttr(kFollowsAttrName);
  }

  void getDataFlowRows(Operation *op, SmallVector<ShardingRow> &operandRows,
                       SmallVector<ShardingRow> &resultRows) const {
    for (Value result : op->getResults()) {
      resultRows.push_back(getRow(graph.valuePlacements.lookup(result)));
    }
    if (op->getParentOp() == entry && op->hasTrait<OpTrait::IsTerminator>()) {
      for (const auto &output : graph.outputs) {
        operandRows.push_back(getRow(output.placement));
      }
      return;
    }
    bool isInside = op->hasTrait<OpTrait::IsTerminator>();
    auto owner = cast<DataFlowOpInterface>(isInside ? op->getParentOp() : op);
    DataFlowEdges edges(owner);
    ArrayRef<ValuePlacement> places = graph.edgePlacements.find(owner)->second;
    for (OpOperand &operand : op->getOpOperands()) {
      std::optional<unsigned> edge = edges.find(operand);
      ShardingRow row = getRow(edge ? places[*edge] : ValuePlacement());
      bool isSlice = edge && edges[*edge].sliced && isInside;
      operandRows.push_back(isSlice ? dropDim(row, *edges[*edge].sliced) : row);
    }
  }

  void writeShardings(Operation *op, ArrayRef<ShardingRow> operandRows,
                      ArrayRef<ShardingRow> resultRows) {
    auto write = [&](StringRef name, ValueRange values,
                     ArrayRef<ShardingRow> rows) {
      SmallVector<Attribute> shardings;
      for (auto [value, row] : llvm::zip(values, rows)) {
        shardings.push_back(getShardingAttr(context, row, getRank(value)));
      }
      op->setAttr(name, ArrayAttr::get(context, shardings));
    };
    write(kOperandsAttrName, op->getOperands(), operandRows);
    write(kResultsAttrName, op->getResults(), resultRows);
  }

  /// A light reduction hands on its sum, reduced right behind it.
  void insertImmediateReductions(Operation *op,
                                 ArrayRef<ShardingRow> resultRows) {
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    for (auto [result, made] : llvm::zip(op->getResults(), resultRows)) {
      ShardingRow handedOn = getRow(graph.valuePlacements.lookup(result));
      if (handedOn == made) {
        continue;
      }
      auto reshard = ReshardOp::create(
          builder, op->getLoc(), result,
          getShardingAttr(context, made, getRank(result)),
          getShardingAttr(context, handedOn, getRank(result)));
      result.replaceAllUsesExcept(reshard.getResult(), reshard);
    }
  }

  /// `value` itself, or, if it is rematerialized, a copy of its operator in
  /// the sharding in which it is needed.
  Value materialize(Value value, ShardingRowRef row) {
    Operation *op = value.getDefiningOp();
    if (!op || !isRematerialized(op)) {
      return value;
    }
    std::string key(row.begin(), row.end());
    auto [it, isNew] = copies.try_emplace({op, key}, Value());
    if (!isNew) {
      return it->second;
    }
    ShardingRule rule = cast<ShardingRuleOpInterface>(op).getShardingRule();
    FactorRow factorRow =
        getFactorRow(rule, rule.results[0], row, graph.meshShape, kNoFactor);
    std::optional<OperatorRows> rows =
        getOperatorRows(rule, factorRow, graph.meshShape);
    if (!rows) {
      FactorRow none(graph.meshShape.size(), kNoFactor);
      rows = getOperatorRows(rule, none, graph.meshShape);
    }
    SmallVector<Value> operands;
    for (auto [operand, operandRow] :
         llvm::zip(op->getOperands(), rows->operands)) {
      operands.push_back(materialize(operand, operandRow));
    }
    OpBuilder builder(op->getContext());
    builder.setInsertionPointAfter(op);
    Operation *copy = builder.clone(*op);
    copy->setOperands(operands);
    copy->removeAttr(kRoleAttrName);
    copy->removeAttr(kFollowsAttrName);
    writeShardings(copy, rows->operands, rows->results);
    return copies[{op, key}] = copy->getResult(0);
  }

  static bool isRematerialized(Operation *op) {
    auto role = op->getAttrOfType<StringAttr>(kRoleAttrName);
    return role && role.getValue() == kRematerializedRole;
  }

  void writeBoundary() {
    for (auto [index, input] : llvm::enumerate(graph.inputs)) {
      entry.setArgAttr(index, kShardingAttrName,
                       getShardingAttr(context, getRow(input.placement),
                                       getRank(entry.getArgument(index))));
    }
    Operation *terminator = entry.getBody().front().getTerminator();
    for (auto [index, output] : llvm::enumerate(graph.outputs)) {
      entry.setResultAttr(
          index, kShardingAttrName,
          getShardingAttr(context, getRow(output.placement),
                          getRank(terminator->getOperand(index))));
    }
  }

  func::FuncOp entry;
  const StrategyGraph &graph;
  ArrayRef<int64_t> solution;
  MLIRContext *context;
  SmallVector<Operation *> rematerialized;
  std::map<std::pair<Operation *, std::string>, Value> copies;
};

struct ApplyStrategies : impl::ApplyStrategiesBase<ApplyStrategies> {
  using ApplyStrategiesBase::ApplyStrategiesBase;

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
    Applier(*entry, *graph, choices).run();
    module->setAttr(kMeshAttrName, *meshAttr);
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
