//===- ApplyStrategies.cpp - Shardings of the named strategies ------------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/OperatorRoles.h"
#include "cpp/analysis/OperatorShardings.h"
#include "passes/Passes.h"
#include <map>
#include <vector>

namespace mlir::alpa {

#define GEN_PASS_DEF_APPLYSTRATEGIES
#include "passes/Passes.h.inc"

namespace {

StringRef getRole(Operation *op) {
  auto role = op->getAttrOfType<StringAttr>(kRoleAttrName);
  return role ? role.getValue() : StringRef();
}

/// The sum that a light reduction leaves is reduced right behind it, for all
/// its uses; what was partial before it stays so.
OperatorRows getHandedOn(Operation *op, OperatorRows rows) {
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttrName);
  if (getRole(op) != kFollowerRole || !strategy || delaysReduction(op)) {
    return rows;
  }
  for (auto [axis, entry] : llvm::enumerate(strategy.getAxes())) {
    for (ShardingRow &row : rows.results) {
      if (entry >= 0 && row[axis] == kPartial) {
        row[axis] = kReplicated;
      }
    }
  }
  return rows;
}

/// Shardings of an operator.
struct PlannedOperator {
  Operation *op;
  /// As it needs its operands and makes its results.
  OperatorRows rows;
  /// As its users find its results.
  SmallVector<ShardingRow, 2> handedOn;
};

/// Writes what follows from the strategies on the operators of a module.
class Applier {
public:
  Applier(func::FuncOp entry, MeshAttr mesh)
      : entry(entry), mesh(mesh), numAxes(mesh.getNumAxes()) {}

  LogicalResult run() {
    // All before any: what an operator hands on depends on its users.
    Block &body = entry.getBody().front();
    if (failed(collect(body)) || failed(collectResults(body.getTerminator()))) {
      return failure();
    }
    for (const PlannedOperator &planned : operators) {
      apply(planned);
    }
    // Users come after what they use: erase from the back.
    for (Operation *op : llvm::reverse(rematerialized)) {
      if (op->use_empty()) {
        op->erase();
      }
    }
    return success();
  }

private:
  LogicalResult collect(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (getRole(&op) == kRematerializedRole) {
        rematerialized.push_back(&op);
      } else if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
        if (failed(collectRegions(dataFlow))) {
          return failure();
        }
      } else {
        FailureOr<OperatorRows> rows = getPlannedRows(&op, mesh);
        if (failed(rows)) {
          return failure();
        }
        operators.push_back({&op, *rows, getHandedOn(&op, *rows).results});
      }
    }
    return success();
  }

  LogicalResult collectRegions(DataFlowOpInterface op) {
    for (StringRef name :
         {StringRef(kOperandsAttrName), StringRef(kResultsAttrName)}) {
      if (!op->hasAttr(name)) {
        return op->emitOpError()
               << "has no '" << name << "': run alpa-choose-strategies first";
      }
    }
    OperatorRows rows;
    for (OpOperand &operand : op->getOpOperands()) {
      rows.operands.push_back(getRow(getOperandSharding(operand), numAxes));
    }
    for (Value result : op->getResults()) {
      rows.results.push_back(getRow(getSharding(result), numAxes));
    }
    operators.push_back({op, rows, rows.results});
    DataFlowEdges edges(op);
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        Operation *exit = block.getTerminator();
        if (failed(collect(block))) {
          return failure();
        }
        collectTerminator(exit, getReturnedShardings(op, edges, exit));
      }
    }
    return success();
  }

  void collectTerminator(Operation *exit, ArrayRef<ShardingAttr> shardings) {
    OperatorRows rows;
    for (ShardingAttr sharding : shardings) {
      rows.operands.push_back(getRow(sharding, numAxes));
    }
    operators.push_back({exit, rows, {}});
  }

  LogicalResult collectResults(Operation *exit) {
    SmallVector<ShardingAttr> shardings;
    for (unsigned index = 0; index < exit->getNumOperands(); ++index) {
      shardings.push_back(
          entry.getResultAttrOfType<ShardingAttr>(index, kShardingAttrName));
      if (!shardings.back()) {
        return entry.emitOpError() << "result " << index
                                   << " has no sharding: run "
                                      "alpa-choose-strategies first";
      }
    }
    collectTerminator(exit, shardings);
    return success();
  }

  void apply(const PlannedOperator &planned) {
    Operation *op = planned.op;
    for (auto [operand, row] :
         llvm::zip(op->getOpOperands(), planned.rows.operands)) {
      operand.set(materialize(operand.get(), row));
    }
    forEachCapture(op, [&](OpOperand &operand) {
      ShardingRow whole(numAxes, kReplicated);
      operand.set(materialize(operand.get(), whole));
    });
    setShardings(op, planned.rows);
    insertImmediateReductions(planned);
    op->removeAttr(kRoleAttrName);
    op->removeAttr(kFollowsAttrName);
  }

  void insertImmediateReductions(const PlannedOperator &planned) {
    OpBuilder builder(planned.op->getContext());
    builder.setInsertionPointAfter(planned.op);
    for (auto [result, made, handedOn] :
         llvm::zip(planned.op->getResults(), planned.rows.results,
                   planned.handedOn)) {
      if (handedOn == made) {
        continue;
      }
      unsigned rank = cast<RankedTensorType>(result.getType()).getRank();
      auto reshard = ReshardOp::create(
          builder, planned.op->getLoc(), result,
          getShardingAttr(builder.getContext(), made, rank),
          getShardingAttr(builder.getContext(), handedOn, rank));
      result.replaceAllUsesExcept(reshard.getResult(), reshard);
    }
  }

  /// `value` itself, or, if it is rematerialized, a copy of its operator in
  /// the sharding in which it is needed.
  Value materialize(Value value, ShardingRowRef row) {
    Operation *op = value.getDefiningOp();
    if (!op || getRole(op) != kRematerializedRole) {
      return value;
    }
    std::string key(row.begin(), row.end());
    auto [it, isNew] = copies.try_emplace({op, key}, Value());
    if (!isNew) {
      return it->second;
    }
    ShardingRule rule = *getShardingRule(op);
    FactorRow factorRow =
        getFactorRow(rule, rule.results[0], row, mesh.getSizes(), kNoFactor);
    std::optional<OperatorRows> rows =
        getOperatorRows(rule, factorRow, mesh.getSizes());
    if (!rows) {
      factorRow.assign(numAxes, kNoFactor);
      rows = getOperatorRows(rule, factorRow, mesh.getSizes());
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
    setShardings(copy, *rows);
    setStrategy(copy, factorRow);
    return copies[{op, key}] = copy->getResult(0);
  }

  func::FuncOp entry;
  MeshAttr mesh;
  unsigned numAxes;
  std::vector<PlannedOperator> operators;
  SmallVector<Operation *> rematerialized;
  std::map<std::pair<Operation *, std::string>, Value> copies;
};

struct ApplyStrategies : impl::ApplyStrategiesBase<ApplyStrategies> {
  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> mesh = getPlannedMesh(getOperation());
    if (failed(mesh) || failed(Applier(*entry, *mesh).run())) {
      return signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
