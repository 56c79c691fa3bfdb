//===- ScfDataFlow.cpp - Regions of MLIR's scf dialect --------------------===//

#include "dialects/scf/ScfDataFlow.h"

#include "dialects/alpa/DataFlow.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"

using namespace mlir;

namespace {

/// Carried values; the bounds and the induction variable are on no edge.
struct ForDataFlow
    : alpa::DataFlowOpInterface::ExternalModel<ForDataFlow, scf::ForOp> {
  SmallVector<alpa::DataFlowEdge> getDataFlowEdges(Operation *op) const {
    return llvm::map_to_vector(
        llvm::seq(op->getNumResults()),
        [&](unsigned index) { return getEdge(cast<scf::ForOp>(op), index); });
  }

  alpa::DataFlowEdge getDataFlowEdge(Operation *op,
                                     BlockArgument argument) const {
    auto loop = cast<scf::ForOp>(op);
    unsigned first = loop.getNumInductionVars();
    return argument.getArgNumber() < first
               ? alpa::DataFlowEdge()
               : getEdge(loop, argument.getArgNumber() - first);
  }

  std::optional<double> getRegionRuns(Operation *op) const {
    std::optional<APInt> trips = cast<scf::ForOp>(op).getStaticTripCount();
    return trips ? std::optional(trips->roundToDouble()) : std::nullopt;
  }

private:
  static alpa::DataFlowEdge getEdge(scf::ForOp loop, unsigned index) {
    alpa::DataFlowEdge edge;
    edge.sources = {&loop.getInitArgsMutable()[index],
                    &loop.getBody()->getTerminator()->getOpOperand(index)};
    edge.targets = {loop.getRegionIterArg(index), loop.getResult(index)};
    return edge;
  }
};

/// Two sets of edges: what the condition takes, and what it hands on.
struct WhileDataFlow
    : alpa::DataFlowOpInterface::ExternalModel<WhileDataFlow, scf::WhileOp> {
  SmallVector<alpa::DataFlowEdge> getDataFlowEdges(Operation *op) const {
    auto loop = cast<scf::WhileOp>(op);
    SmallVector<alpa::DataFlowEdge> edges;
    for (unsigned index = 0; index < loop->getNumOperands(); ++index) {
      edges.push_back(getTaken(loop, index));
    }
    for (unsigned index = 0; index < loop->getNumResults(); ++index) {
      edges.push_back(getHandedOn(loop, index));
    }
    return edges;
  }

  alpa::DataFlowEdge getDataFlowEdge(Operation *op,
                                     BlockArgument argument) const {
    auto loop = cast<scf::WhileOp>(op);
    bool isTaken = argument.getParentRegion() == &loop.getBefore();
    return (isTaken ? getTaken : getHandedOn)(loop, argument.getArgNumber());
  }

  std::optional<double> getRegionRuns(Operation *) const {
    return std::nullopt;
  }

private:
  static alpa::DataFlowEdge getTaken(scf::WhileOp loop, unsigned index) {
    alpa::DataFlowEdge edge;
    edge.sources = {&loop->getOpOperand(index),
                    &loop.getYieldOp()->getOpOperand(index)};
    edge.targets = {loop.getBefore().getArgument(index)};
    return edge;
  }

  static alpa::DataFlowEdge getHandedOn(scf::WhileOp loop, unsigned index) {
    alpa::DataFlowEdge edge;
    edge.sources = {&loop.getConditionOp().getArgsMutable()[index]};
    edge.targets = {loop.getAfter().getArgument(index), loop.getResult(index)};
    return edge;
  }
};

struct IfDataFlow
    : alpa::DataFlowOpInterface::ExternalModel<IfDataFlow, scf::IfOp> {
  SmallVector<alpa::DataFlowEdge> getDataFlowEdges(Operation *op) const {
    SmallVector<alpa::DataFlowEdge> edges;
    for (OpResult result : op->getResults()) {
      alpa::DataFlowEdge &edge = edges.emplace_back();
      // With results there is an else region.
      for (Region &region : op->getRegions()) {
        edge.sources.push_back(&region.front().getTerminator()->getOpOperand(
            result.getResultNumber()));
      }
      edge.targets = {result};
    }
    return edges;
  }
};

} // namespace

void alpa::registerScfDataFlow(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, scf::SCFDialect *) {
    scf::ForOp::attachInterface<ForDataFlow>(*context);
    scf::WhileOp::attachInterface<WhileDataFlow>(*context);
    scf::IfOp::attachInterface<IfDataFlow>(*context);
  });
}
