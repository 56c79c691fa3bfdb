//===- tiny-opt.cpp - A compiler of its own operations, planned -----------===//
//
// The `tiny` dialect has operations that stablehlo_alpa has never seen. A
// sharding rule is attached to one from outside, and to the other how values
// flow through its region; then they are planned like all others, and written
// for one device of a 2x4 mesh.
//
//===----------------------------------------------------------------------===//

#include "Repeat.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/solver/Minimize.h"
#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Passes.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

namespace {

/// `tiny.scale_rows(x: tensor<n x m>, s: tensor<n>) -> tensor<n x m>`
struct ScaleRowsOp : Op<ScaleRowsOp, OpTrait::NOperands<2>::Impl,
                        OpTrait::OneResult, OpTrait::ZeroRegions> {
  using Op::Op;
  static StringRef getOperationName() { return "tiny.scale_rows"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};

struct TinyDialect : Dialect {
  explicit TinyDialect(MLIRContext *context)
      : Dialect(getDialectNamespace(), context, TypeID::get<TinyDialect>()) {
    addOperations<ScaleRowsOp, RepeatOp, DoneOp>();
  }
  static StringRef getDialectNamespace() { return "tiny"; }
};

/// Two loops, over rows and over columns; the scales have the rows.
struct ScaleRowsRule
    : alpa::ShardingRuleOpInterface::ExternalModel<ScaleRowsRule, ScaleRowsOp> {
  alpa::ShardingRule getShardingRule(Operation *op) const {
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    alpa::ShardingRule rule;
    unsigned row =
        rule.addFactor(type.getDimSize(0), alpa::FactorKind::Parallel);
    unsigned column =
        rule.addFactor(type.getDimSize(1), alpa::FactorKind::Parallel);
    rule.operands = {{{row}, {column}}, {{row}}};
    rule.results = {{{row}, {column}}};
    rule.flops = static_cast<double>(type.getNumElements());
    return rule;
  }
};

/// Seconds on devices of 100 GFLOP/s with links of 1 GB/s.
alpa::Core getCosts(const alpa::StrategyGraph &graph) {
  auto seconds = [&](int32_t plan) {
    double bytes = 0;
    for (const alpa::VolumeStep &step : graph.plans[plan]) {
      bytes += step.bytes;
    }
    return bytes / 1e9;
  };
  std::vector<std::vector<double>> nodes;
  for (const alpa::StrategyNode &node : graph.nodes) {
    nodes.emplace_back();
    for (double flops : node.flops) {
      nodes.back().push_back(flops / 1e11);
    }
  }
  for (const alpa::UnaryTerm &term : graph.unaryTerms) {
    for (auto [cost, plan] : llvm::zip(nodes[term.node], term.plans)) {
      cost += term.weight * seconds(plan);
    }
  }
  alpa::Core core(std::move(nodes));
  for (const alpa::StrategyEdge &edge : graph.edges) {
    std::vector<double> costs;
    for (int32_t plan : edge.plans) {
      costs.push_back(edge.weight * seconds(plan));
    }
    core.addEdge(edge.source, edge.target, costs);
  }
  return core;
}

LogicalResult run(ModuleOp module, StringRef pipeline) {
  PassManager manager(module.getContext());
  return success(succeeded(parsePassPipeline(pipeline, manager)) &&
                 succeeded(manager.run(module)));
}

LogicalResult plan(ModuleOp module) {
  MLIRContext *context = module.getContext();
  auto mesh = alpa::MeshAttr::get(
      context, {StringAttr::get(context, "x"), StringAttr::get(context, "y")},
      {2, 4});
  if (failed(run(module, "alpa-prepare-pipeline"))) {
    return failure();
  }
  FailureOr<func::FuncOp> entry = alpa::getEntryFunction(module);
  if (failed(entry)) {
    return failure();
  }
  FailureOr<alpa::StrategyGraph> graph = alpa::buildStrategyGraph(*entry, mesh);
  if (failed(graph)) {
    return failure();
  }
  alpa::TableCache cache;
  std::vector<int32_t> choices =
      alpa::minimize(getCosts(*graph), {}, cache).choices;
  std::string pipeline = "alpa-plan-pipeline{mesh=x:2,y:4 solution=";
  llvm::raw_string_ostream os(pipeline);
  llvm::interleave(choices, os, ",");
  os << "},alpa-spmd-pipeline";
  return run(module, pipeline);
}

} // namespace

int main(int argc, char **argv) {
  DialectRegistry registry;
  registry.insert<TinyDialect>();
  registry.addExtension(+[](MLIRContext *context, TinyDialect *) {
    ScaleRowsOp::attachInterface<ScaleRowsRule>(*context);
    RepeatOp::attachInterface<RepeatDataFlow>(*context);
  });
  alpa::registerAlpaDialects(registry);
  alpa::registerAlpaPasses();
  alpa::registerAlpaPipelines();
  MLIRContext context(registry);
  context.loadAllAvailableDialects();
  OwningOpRef<ModuleOp> module =
      parseSourceFile<ModuleOp>(argc > 1 ? argv[1] : "-", &context);
  if (!module || failed(plan(*module))) {
    return EXIT_FAILURE;
  }
  module->print(llvm::outs());
  return EXIT_SUCCESS;
}
