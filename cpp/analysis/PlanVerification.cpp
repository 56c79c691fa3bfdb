//===- PlanVerification.cpp - Does a plan follow from itself --------------===//

#include "cpp/analysis/PlanVerification.h"

#include "cpp/analysis/OperatorShardings.h"
#include "cpp/analysis/StrategyGraph.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

namespace {

class PlanVerifier {
public:
  PlanVerifier(func::FuncOp entry, MeshAttr mesh, PlanState state)
      : entry(entry), mesh(mesh), state(state) {}

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
    if (isa<stablehlo::WhileOp>(op)) {
      return verifyLoop(op);
    }
    if (isa<stablehlo::CaseOp, stablehlo::IfOp>(op)) {
      return verifyBranches(op);
    }
    if (state.isTime && isa<AccumulateOp>(op)) {
      return verifyJoin(op);
    }
    FailureOr<OperatorRows> rows = getPlannedRows(op, mesh);
    return success(succeeded(rows) && succeeded(verifyShardings(op, *rows)) &&
                   succeeded(verifyCaptures(op)));
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
    if (op->getNumRegions() == 0 || isa<ManualOp>(op)) {
      return success();
    }
    WalkResult walk = op->walk([&](Operation *inner) {
      for (Value value : inner->getOperands()) {
        bool isInside = inner == op ||
                        op->isAncestor(value.getParentRegion()->getParentOp());
        ShardingAttr sharding = isInside ? ShardingAttr() : getSharding(value);
        if (!isInside && (!sharding || !sharding.isReplicated())) {
          op->emitOpError() << "uses a value in its region that is " << sharding
                            << ", it can only use what every device has";
          return WalkResult::interrupt();
        }
      }
      return WalkResult::advance();
    });
    return failure(walk.wasInterrupted());
  }

  //===--------------------------------------------------------------------===//
  // Regions through which data flows
  //===--------------------------------------------------------------------===//

  SmallVector<ShardingAttr> getResultShardings(Operation *op) {
    return llvm::map_to_vector(op->getResults(), getSharding);
  }

  SmallVector<ShardingAttr> getReplicated(ValueRange values) {
    return llvm::map_to_vector(values, [&](Value value) {
      auto tensor = dyn_cast<RankedTensorType>(value.getType());
      return getShardingAttr(entry.getContext(), {},
                             tensor ? tensor.getRank() : 0);
    });
  }

  LogicalResult verifyRegion(Operation *op, Region &region,
                             ArrayRef<ShardingAttr> wanted, StringRef who) {
    Block &block = region.front();
    return success(
        succeeded(visit(block)) &&
        succeeded(verifyTerminator(block.getTerminator(), wanted, who)));
  }

  /// What a loop carries has one sharding; all devices take as many turns.
  LogicalResult verifyLoop(Operation *op) {
    SmallVector<ShardingAttr> carried = getResultShardings(op);
    for (auto [operand, sharding] : llvm::zip(op->getOpOperands(), carried)) {
      if (isTensor(operand.get()) && getOperandSharding(operand) != sharding) {
        return op->emitOpError()
               << "carries operand " << operand.getOperandNumber() << " in as "
               << getOperandSharding(operand) << " and out as " << sharding;
      }
    }
    Region &condition = op->getRegion(0);
    ValueRange predicate = condition.front().getTerminator()->getOperands();
    return success(
        succeeded(verifyRegion(op, condition, getReplicated(predicate),
                               "a condition is")) &&
        succeeded(
            verifyRegion(op, op->getRegion(1), carried, "the loop carries")));
  }

  /// All devices take the same branch.
  LogicalResult verifyBranches(Operation *op) {
    for (auto [operand, sharding] :
         llvm::zip(op->getOpOperands(), getReplicated(op->getOperands()))) {
      if (getOperandSharding(operand) != sharding) {
        return op->emitOpError() << "chooses by " << getOperandSharding(operand)
                                 << ", every device has to choose alike";
      }
    }
    SmallVector<ShardingAttr> results = getResultShardings(op);
    for (Region &region : op->getRegions()) {
      if (failed(verifyRegion(op, region, results, "a branch returns"))) {
        return failure();
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
};

} // namespace

LogicalResult verifyPlan(func::FuncOp entry, MeshAttr mesh, PlanState state) {
  return PlanVerifier(entry, mesh, state).run();
}

} // namespace mlir::alpa
