//===- PlanVerification.cpp - Does a plan follow from itself --------------===//

#include "cpp/analysis/PlanVerification.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/OperatorShardings.h"
#include "cpp/analysis/ProductRings.h"
#include "cpp/analysis/StrategyGraph.h"

namespace mlir::alpa {

namespace {

class PlanVerifier {
public:
  PlanVerifier(func::FuncOp entry, MeshAttr mesh, PlanState state)
      : entry(entry), mesh(mesh), state(state), rings(mesh) {}

  LogicalResult run() {
    Block &block = entry.getBody().front();
    return success(succeeded(verifyArguments(block)) &&
                   succeeded(visit(block)) &&
                   succeeded(verifyResults(block.getTerminator())));
  }

private:
  static bool isTensor(Value value) {
    return isa<RankedTensorType>(value.getType());
  }

  //===--------------------------------------------------------------------===//
  // The boundary
  //===--------------------------------------------------------------------===//

  /// Only between the phases of a stage are there partial sums that are kept.
  template <typename GetAttr>
  LogicalResult verifyPartial(StringRef what, unsigned index,
                              ShardingAttr sharding, GetAttr getAttr) {
    if (!sharding.hasPartial() || getAttr(kLocalAttrName) ||
        getAttr(kAccumulatorAttrName)) {
      return success();
    }
    return entry.emitOpError()
           << what << " " << index << " is the partial sum " << sharding
           << ", which only what stays within a stage can be";
  }

  LogicalResult verifyArguments(Block &block) {
    for (BlockArgument argument : block.getArguments()) {
      ShardingAttr sharding = getSharding(argument);
      if (!sharding && isTensor(argument)) {
        return emitError(argument.getLoc())
               << getReadableName(argument)
               << " has no sharding: run alpa-apply-strategies first";
      }
      unsigned index = argument.getArgNumber();
      if (sharding && failed(verifyPartial(
                          "argument", index, sharding, [&](StringRef name) {
                            return entry.getArgAttr(index, name) != nullptr;
                          }))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult verifyResults(Operation *exit) {
    SmallVector<ShardingAttr> wanted;
    for (auto [index, value] : llvm::enumerate(exit->getOperands())) {
      wanted.push_back(
          entry.getResultAttrOfType<ShardingAttr>(index, kShardingAttrName));
      if (!wanted.back() && isTensor(value)) {
        return entry.emitOpError()
               << "result " << index
               << " has no sharding: run alpa-apply-strategies first";
      }
      if (wanted.back() &&
          failed(verifyPartial("result", index, wanted.back(),
                               [&, index = index](StringRef name) {
                                 return entry.getResultAttr(index, name) !=
                                        nullptr;
                               }))) {
        return failure();
      }
    }
    return verifyTerminator(exit, wanted, "the function's results are");
  }

  /// What leaves a block is what its user says it is.
  LogicalResult verifyTerminator(Operation *exit, ArrayRef<ShardingAttr> wanted,
                                 StringRef who) {
    if (exit->getNumOperands() != wanted.size()) {
      return exit->emitOpError()
             << "has " << exit->getNumOperands() << " operands, " << who << " "
             << wanted.size();
    }
    auto written = exit->getAttrOfType<ArrayAttr>(kOperandsAttrName);
    if (!written && !state.isResharded) {
      return exit->emitOpError()
             << "has no shardings: run alpa-apply-strategies first";
    }
    for (auto [operand, sharding] : llvm::zip(exit->getOpOperands(), wanted)) {
      if (!isTensor(operand.get())) {
        continue;
      }
      ShardingAttr needed = written ? getOperandSharding(operand) : sharding;
      if (needed != sharding) {
        return exit->emitOpError()
               << "operand " << operand.getOperandNumber() << " is needed as "
               << needed << ", " << who << " " << sharding;
      }
      if (failed(verifyArrival(operand, needed))) {
        return failure();
      }
    }
    return success();
  }

  //===--------------------------------------------------------------------===//
  // Operators
  //===--------------------------------------------------------------------===//

  LogicalResult visit(Block &block) {
    for (Operation &op : block.without_terminator()) {
      if (failed(visit(&op))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult visit(Operation *op) {
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      return verifyArrival(op->getOpOperand(0), reshard.getSource());
    }
    if (!op->hasAttr(kResultsAttrName) || !op->hasAttr(kOperandsAttrName)) {
      return op->emitOpError()
             << "has no shardings: run alpa-apply-strategies first";
    }
    for (OpOperand &operand : op->getOpOperands()) {
      if (isTensor(operand.get()) &&
          failed(verifyArrival(operand, getOperandSharding(operand)))) {
        return failure();
      }
    }
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
      return verifyRegions(dataFlow);
    }
    if (state.isTime && isa<AccumulateOp>(op)) {
      return verifyJoin(op);
    }
    FailureOr<OperatorRows> rows = getPlannedRows(
        op, mesh, state.isTime ? Shares::OfMicroBatches : Shares::OfDevices);
    return success(succeeded(rows) && succeeded(verifyShardings(op, *rows)) &&
                   succeeded(verifyCaptures(op)) && succeeded(verifyRing(op)));
  }

  /// What goes around beside a product can.
  LogicalResult verifyRing(Operation *op) {
    std::optional<RingSide> side = getRingSide(op);
    if (!side) {
      return success();
    }
    if (*side == RingSide::Result) {
      auto reshard = op->hasOneUse() ? dyn_cast<ReshardOp>(*op->user_begin())
                                     : ReshardOp();
      return reshard && rings.findWrittenScatter(reshard)
                 ? success()
                 : LogicalResult(
                       op->emitOpError()
                       << "cannot be done beside a reduce-scatter: its result "
                          "needs one use, a reshard that begins with one over "
                          "one axis");
    }
    auto reshard =
        op->getOperand(static_cast<unsigned>(*side)).getDefiningOp<ReshardOp>();
    return reshard && rings.findWrittenGather(reshard)
               ? success()
               : LogicalResult(
                     op->emitOpError()
                     << "cannot be done beside an all-gather: its "
                     << toString(*side)
                     << " has to be a reshard that ends with one over one "
                        "axis, "
                        "and its other operand there before that is used");
  }

  /// A value comes in the sharding in which it is needed; before there are
  /// reshards, in any.
  LogicalResult verifyArrival(OpOperand &operand, ShardingAttr needed) {
    ShardingAttr made = getSharding(operand.get());
    if (made && (made == needed || !state.isResharded)) {
      return success();
    }
    InFlightDiagnostic error = operand.getOwner()->emitOpError();
    error << "operand " << operand.getOperandNumber();
    if (!made) {
      return error << " has no sharding: run alpa-apply-strategies first";
    }
    return error << " arrives as " << made << " and is needed as " << needed
                 << ": run alpa-insert-reshards first";
  }

  /// What is written on an operator is what follows from its strategy.
  LogicalResult verifyShardings(Operation *op, const OperatorRows &rows) {
    auto verify = [&](StringRef name, StringRef what, ValueRange values,
                      ArrayRef<ShardingRow> expected) -> LogicalResult {
      auto written = op->getAttrOfType<ArrayAttr>(name);
      for (auto [index, value, row] : llvm::enumerate(values, expected)) {
        auto sharding = dyn_cast<ShardingAttr>(written[index]);
        if (isTensor(value) &&
            (!sharding || getRow(sharding, mesh.getNumAxes()) != row)) {
          return refuse(op, what, index, sharding, row);
        }
      }
      return success();
    };
    return success(succeeded(verify(kOperandsAttrName, "operand",
                                    op->getOperands(), rows.operands)) &&
                   succeeded(verify(kResultsAttrName, "result",
                                    op->getResults(), rows.results)));
  }

  LogicalResult refuse(Operation *op, StringRef what, unsigned index,
                       ShardingAttr sharding, ShardingRowRef row) {
    if (!hasShardingRule(op) && !isa<ManualOp>(op)) {
      return op->emitOpError()
             << "has no sharding rule and cannot be split as " << sharding;
    }
    InFlightDiagnostic error = op->emitOpError();
    error << what << " " << index << " is " << sharding << ", ";
    if (Attribute strategy = op->getAttr(kStrategyAttrName)) {
      error << "under " << strategy << " ";
    }
    return error << "it is "
                 << getShardingAttr(op->getContext(), row,
                                    sharding ? sharding.getRank() : 0);
  }

  /// A combiner or a comparator runs on whole values.
  LogicalResult verifyCaptures(Operation *op) {
    LogicalResult verified = success();
    forEachCapture(op, [&](OpOperand &operand) {
      ShardingAttr sharding = getSharding(operand.get());
      bool isRight =
          sharding && (sharding.isReplicated() || !state.isResharded);
      if (succeeded(verified) && isTensor(operand.get()) && !isRight) {
        verified = op->emitOpError()
                   << "uses a value in its region that is " << sharding
                   << ", it can only use what every device has";
      }
    });
    return verified;
  }

  //===--------------------------------------------------------------------===//
  // Regions through which data flows
  //===--------------------------------------------------------------------===//

  LogicalResult verifyRegions(DataFlowOpInterface op) {
    DataFlowEdges edges(op);
    if (failed(verifyEdges(op, edges))) {
      return failure();
    }
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        Operation *exit = block.getTerminator();
        if (failed(visit(block)) ||
            failed(verifyTerminator(exit, getReturnedShardings(op, edges, exit),
                                    "the operator around it needs"))) {
          return failure();
        }
      }
    }
    return success();
  }

  /// Values on one edge have one sharding. By what is on no edge all devices
  /// take the same branch and as many turns.
  LogicalResult verifyEdges(DataFlowOpInterface op,
                            const DataFlowEdges &edges) {
    auto verify = [&](StringRef what, unsigned index, Value value,
                      std::optional<unsigned> edge,
                      ShardingAttr sharding) -> LogicalResult {
      ShardingAttr expected =
          edge ? getEdgeSharding(op, edges[*edge], /*isInside=*/false)
               : getReplicatedSharding(value);
      if (!isTensor(value) || sharding == expected) {
        return success();
      }
      InFlightDiagnostic error = op->emitOpError();
      error << what << " " << index << " is " << sharding << ", ";
      return edge ? error << "its data-flow edge is " << expected
                  : error << "on no data-flow edge: every device has to have "
                             "the same";
    };
    for (OpOperand &operand : op->getOpOperands()) {
      if (failed(verify("operand", operand.getOperandNumber(), operand.get(),
                        edges.find(operand), getOperandSharding(operand)))) {
        return failure();
      }
    }
    for (auto [index, result] : llvm::enumerate(op->getResults())) {
      if (failed(verify("result", index, result, edges.find(result),
                        getSharding(result)))) {
        return failure();
      }
    }
    return verifySlices(op, edges);
  }

  /// Regions run through all slices on every device.
  LogicalResult verifySlices(DataFlowOpInterface op,
                             const DataFlowEdges &edges) {
    for (const DataFlowEdge &edge : edges) {
      ShardingAttr outer = getEdgeSharding(op, edge, /*isInside=*/false);
      if (edge.sliced &&
          llvm::is_contained(outer.getAxes(),
                             static_cast<int8_t>(*edge.sliced))) {
        return op->emitOpError()
               << "runs through slices along dimension " << *edge.sliced
               << " of " << outer << ", which splits it";
      }
    }
    return success();
  }

  /// Behind the micro-batches a value is whole.
  LogicalResult verifyJoin(Operation *op) {
    ShardingAttr sharding = getSharding(op->getResult(0));
    return sharding && sharding.isReplicated()
               ? success()
               : LogicalResult(op->emitOpError()
                               << "joins micro-batches to " << sharding
                               << ", their join is whole");
  }

  func::FuncOp entry;
  MeshAttr mesh;
  PlanState state;
  ProductRings rings;
};

} // namespace

LogicalResult verifyPlan(func::FuncOp entry, MeshAttr mesh, PlanState state) {
  return PlanVerifier(entry, mesh, state).run();
}

} // namespace mlir::alpa
