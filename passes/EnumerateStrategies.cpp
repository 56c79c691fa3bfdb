//===- EnumerateStrategies.cpp - Shows the strategies of every node -------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/StrategyGraph.h"
#include "passes/Passes.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_ENUMERATESTRATEGIES
#include "passes/Passes.h.inc"

namespace {

struct EnumerateStrategies
    : impl::EnumerateStrategiesBase<EnumerateStrategies> {
  using EnumerateStrategiesBase::EnumerateStrategiesBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> meshAttr = parseMesh(
        &getContext(), mesh, [&] { return getOperation().emitError(); });
    if (failed(meshAttr)) {
      return signalPassFailure();
    }
    FailureOr<StrategyGraph> graph = buildStrategyGraph(*entry, *meshAttr);
    if (failed(graph)) {
      return signalPassFailure();
    }
    for (auto [index, node] : llvm::enumerate(graph->nodes)) {
      entry->emitRemark() << "node " << index << " " << node.op << ": "
                          << llvm::join(node.labels, " | ");
    }
  }
};

} // namespace
} // namespace mlir::alpa
