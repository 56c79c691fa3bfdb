//===- ControlFlow.cpp - Regions of loops and branches --------------------===//

#include "dialects/alpa/DataFlow.h"
#include "dialects/stablehlo/DataFlow/DataFlow.h"
#include "dialects/stablehlo/DataFlow/Scan.h"
#include "dialects/stablehlo/DataFlow/TripCount.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;

namespace {

Operation *getReturn(Region &region) { return region.front().getTerminator(); }

void appendToReturn(Region &region, Value value) {
  Operation *end = getReturn(region);
  end->insertOperands(end->getNumOperands(), value);
}

/// Every operand is carried from turn to turn; both regions see it.
struct WhileDataFlow
    : alpa::DataFlowOpInterface::ExternalModel<WhileDataFlow, WhileOp> {
  SmallVector<alpa::DataFlowEdge> getDataFlowEdges(Operation *op) const {
    return llvm::map_to_vector(
        llvm::seq(op->getNumOperands()),
        [&](unsigned index) { return getEdge(cast<WhileOp>(op), index); });
  }

  alpa::DataFlowEdge getDataFlowEdge(Operation *op,
                                     BlockArgument argument) const {
    return getEdge(cast<WhileOp>(op), argument.getArgNumber());
  }

  std::optional<double> getRegionRuns(Operation *op) const {
    std::optional<int64_t> trips = getTripCount(cast<WhileOp>(op));
    return trips ? std::optional(static_cast<double>(*trips)) : std::nullopt;
  }

  Operation *addDataFlowEdge(Operation *op, OpBuilder &builder,
                             Value initial) const {
    auto loop = cast<WhileOp>(op);
    Type type = initial.getType();
    loop.getCond().addArgument(type, op->getLoc());
    appendToReturn(loop.getBody(),
                   loop.getBody().addArgument(type, op->getLoc()));
    SmallVector<Value> operands(op->getOperands());
    operands.push_back(initial);
    return alpa::replaceWithMoreResults(op, builder, operands, type);
  }

private:
  static alpa::DataFlowEdge getEdge(WhileOp loop, unsigned index) {
    alpa::DataFlowEdge edge;
    edge.sources = {&loop->getOpOperand(index),
                    &getReturn(loop.getBody())->getOpOperand(index)};
    edge.targets = {loop.getCond().getArgument(index),
                    loop.getBody().getArgument(index), loop->getResult(index)};
    return edge;
  }
};

/// The region that is chosen makes the results, from what it sees around it.
template <typename BranchOp>
struct BranchDataFlow
    : alpa::DataFlowOpInterface::ExternalModel<BranchDataFlow<BranchOp>,
                                               BranchOp> {
  SmallVector<alpa::DataFlowEdge> getDataFlowEdges(Operation *op) const {
    SmallVector<alpa::DataFlowEdge> edges;
    for (OpResult result : op->getResults()) {
      alpa::DataFlowEdge &edge = edges.emplace_back();
      for (Region &region : op->getRegions()) {
        edge.sources.push_back(
            &getReturn(region)->getOpOperand(result.getResultNumber()));
      }
      edge.targets = {result};
    }
    return edges;
  }

  Operation *addDataFlowEdge(Operation *op, OpBuilder &builder,
                             Value initial) const {
    for (Region &region : op->getRegions()) {
      appendToReturn(region, initial);
    }
    return alpa::replaceWithMoreResults(op, builder, op->getOperands(),
                                        initial.getType());
  }
};

} // namespace

void stablehlo::registerDataFlow(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, StablehloDialect *) {
    WhileOp::attachInterface<WhileDataFlow>(*context);
    CaseOp::attachInterface<BranchDataFlow<CaseOp>>(*context);
    IfOp::attachInterface<BranchDataFlow<IfOp>>(*context);
  });
  registry.addExtension(+[](MLIRContext *context, chlo::ChloDialect *) {
    attachScanDataFlow(*context);
  });
}
