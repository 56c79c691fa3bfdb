//===- GraphArrays.cpp - Strategy graphs as flat arrays -------------------===//

#include "cpp/capi/GraphArrays.h"

namespace mlir::alpa {

static void addNodes(const StrategyGraph &graph, AlpaResult &result) {
  std::vector<std::string> names, ops, dtypes, labels;
  std::vector<int64_t> offsets = {0}, tensorClasses, classOffsets = {0};
  std::vector<double> flops, bytes, streams;
  std::vector<int32_t> classes;
  std::vector<int8_t> products, productForms;
  std::vector<double> kernels, productRuns, productShapes, productPaddings,
      productBytes;
  for (const StrategyNode &node : graph.nodes) {
    names.push_back(node.name);
    ops.push_back(node.op);
    dtypes.push_back(node.dtype);
    products.push_back(node.isProduct ? 1 : 0);
    offsets.push_back(offsets.back() + node.numStrategies);
    flops.insert(flops.end(), node.flops.begin(), node.flops.end());
    bytes.insert(bytes.end(), node.bytes.begin(), node.bytes.end());
    for (size_t row = 0; row < node.streams.front().size(); ++row) {
      for (const std::vector<double> &stream : node.streams) {
        streams.push_back(stream[row]);
      }
    }
    kernels.push_back(node.kernels);
    productRuns.push_back(node.productRuns);
    productForms.push_back(static_cast<int8_t>(node.productForm));
    // What is in a loop that takes no turn does not run.
    if (node.productRuns > 0) {
      for (const ProductShape &shape : node.productShapes) {
        productShapes.insert(productShapes.end(), shape.begin(), shape.end());
      }
      llvm::append_range(productPaddings, node.productPaddings);
      llvm::append_range(productBytes, node.productBytes);
    }
    labels.insert(labels.end(), node.labels.begin(), node.labels.end());
    classes.insert(classes.end(), node.classes.begin(), node.classes.end());
    tensorClasses.insert(tensorClasses.end(), node.tensorClasses.begin(),
                         node.tensorClasses.end());
    classOffsets.push_back(tensorClasses.size());
  }
  result.addArray("node_class", tensorClasses);
  result.addArray("node_class_offset", classOffsets);
  result.addList("node_name", std::move(names));
  result.addList("node_op", std::move(ops));
  result.addList("node_dtype", std::move(dtypes));
  result.addList("strategy_label", std::move(labels));
  result.addArray("node_is_product", products);
  result.addArray("node_kernels", kernels);
  result.addArray("product_runs", productRuns);
  result.addArray("product_form", productForms);
  result.addArray("product_shape", productShapes, ProductShape().size());
  result.addArray("product_padding", productPaddings);
  result.addArray("product_bytes", productBytes);
  result.addArray("node_offset", offsets);
  result.addArray("strategy_flops", flops);
  result.addArray("strategy_bytes", bytes);
  result.addArray("stream_bytes", streams, kNumStreams);
  result.addArray("strategy_class", classes, graph.meshShape.size());
}

static void addPlans(const StrategyGraph &graph, AlpaResult &result) {
  std::vector<int64_t> offsets = {0};
  std::vector<int8_t> kinds;
  std::vector<int32_t> axes;
  std::vector<double> bytes;
  for (const std::vector<VolumeStep> &plan : graph.plans) {
    for (const VolumeStep &step : plan) {
      kinds.push_back(static_cast<int8_t>(step.kind));
      axes.push_back(static_cast<int32_t>(step.axes));
      bytes.push_back(step.bytes);
    }
    offsets.push_back(kinds.size());
  }
  result.addArray("plan_offset", offsets);
  result.addArray("step_kind", kinds);
  result.addArray("step_axes", axes);
  result.addArray("step_bytes", bytes);
}

static void addTerms(const StrategyGraph &graph, AlpaResult &result) {
  std::vector<int32_t> nodes, sources, targets, unaryPlans, edgePlans;
  std::vector<double> unaryWeights, edgeWeights;
  std::vector<int64_t> unaryOffsets = {0}, edgeOffsets = {0};
  std::vector<int8_t> unaryBeside, edgeBeside;
  for (const UnaryTerm &term : graph.unaryTerms) {
    nodes.push_back(term.node);
    unaryWeights.push_back(term.weight);
    unaryBeside.push_back(static_cast<int8_t>(term.beside));
    unaryPlans.insert(unaryPlans.end(), term.plans.begin(), term.plans.end());
    unaryOffsets.push_back(unaryPlans.size());
  }
  for (const StrategyEdge &edge : graph.edges) {
    sources.push_back(edge.source);
    targets.push_back(edge.target);
    edgeWeights.push_back(edge.weight);
    edgeBeside.push_back(static_cast<int8_t>(edge.beside));
    edgePlans.insert(edgePlans.end(), edge.plans.begin(), edge.plans.end());
    edgeOffsets.push_back(edgePlans.size());
  }
  result.addArray("unary_node", nodes);
  result.addArray("unary_weight", unaryWeights);
  result.addArray("unary_beside", unaryBeside);
  result.addArray("unary_offset", unaryOffsets);
  result.addArray("unary_plan", unaryPlans);
  result.addArray("edge_src", sources);
  result.addArray("edge_dst", targets);
  result.addArray("edge_weight", edgeWeights);
  result.addArray("edge_beside", edgeBeside);
  result.addArray("edge_offset", edgeOffsets);
  result.addArray("edge_plan", edgePlans);
}

static void addCopies(const StrategyGraph &graph, AlpaResult &result) {
  std::vector<int32_t> sources, targets, starts, ends, tables;
  std::vector<int64_t> offsets = {0};
  std::vector<double> bytes;
  std::vector<std::string> names;
  for (const GatheredCopy &copy : graph.copies) {
    sources.push_back(copy.source);
    targets.push_back(copy.target);
    starts.push_back(copy.start);
    ends.push_back(copy.end);
    tables.push_back(copy.table);
    names.push_back(copy.name);
  }
  for (const std::vector<double> &table : graph.copyTables) {
    bytes.insert(bytes.end(), table.begin(), table.end());
    offsets.push_back(bytes.size());
  }
  result.addArray("copy_source", sources);
  result.addArray("copy_target", targets);
  result.addArray("copy_start", starts);
  result.addArray("copy_end", ends);
  result.addArray("copy_table", tables);
  result.addArray("copy_offset", offsets);
  result.addArray("copy_bytes", bytes);
  result.addList("copy_name", std::move(names));
}

static void addValues(const StrategyGraph &graph, AlpaResult &result) {
  std::vector<int32_t> nodes, starts, ends;
  std::vector<int64_t> offsets = {0};
  std::vector<double> bytes;
  std::vector<std::string> names;
  for (const LiveValue &value : graph.values) {
    nodes.push_back(value.node);
    starts.push_back(value.start);
    ends.push_back(value.end);
    names.push_back(value.name);
    bytes.insert(bytes.end(), value.bytes.begin(), value.bytes.end());
    offsets.push_back(bytes.size());
  }
  result.addArray("value_node", nodes);
  result.addArray("value_start", starts);
  result.addArray("value_end", ends);
  result.addArray("value_offset", offsets);
  result.addArray("value_bytes", bytes);
  result.addList("value_name", std::move(names));
  addCopies(graph, result);
  std::vector<int32_t> accumulatorNodes;
  std::vector<double> accumulatorBytes;
  for (const Accumulator &accumulator : graph.accumulators) {
    accumulatorNodes.push_back(accumulator.node);
    accumulatorBytes.insert(accumulatorBytes.end(), accumulator.bytes.begin(),
                            accumulator.bytes.end());
  }
  result.addArray("accumulator_node", accumulatorNodes);
  result.addArray("accumulator_bytes", accumulatorBytes);
  result.addArray("num_points", std::vector<int64_t>{graph.numPoints});
  result.addArray("num_forward_points",
                  std::vector<int64_t>{graph.numForwardPoints});
  result.addArray("num_backward_points",
                  std::vector<int64_t>{graph.numBackwardPoints});
}

/// Sharding rows of the boundary values: "<prefix>_spec" of [rows, axes] with
/// "<prefix>_spec_offset" per value; a replicated value has no rows. Classes of
/// their dimensions, one after the other: "<prefix>_class".
static void addBoundary(const StrategyGraph &graph,
                        const std::vector<StrategyGraph::Boundary> &values,
                        const std::string &prefix, AlpaResult &result) {
  std::vector<int32_t> nodes, aliases;
  std::vector<int8_t> specs, parameters, transfers, batches;
  std::vector<int64_t> offsets = {0}, classes, classOffsets = {0};
  std::vector<std::string> names;
  for (const StrategyGraph::Boundary &value : values) {
    nodes.push_back(value.placement.node);
    aliases.push_back(value.alias);
    parameters.push_back(value.isParameter ? 1 : 0);
    transfers.push_back(value.isTransfer ? 1 : 0);
    batches.push_back(value.isBatch ? 1 : 0);
    names.push_back(value.name);
    classes.insert(classes.end(), value.classes.begin(), value.classes.end());
    classOffsets.push_back(classes.size());
    if (value.placement.node >= 0) {
      const SpecTable &table = graph.tables[value.placement.table];
      specs.insert(specs.end(), table.entries.begin(), table.entries.end());
    }
    offsets.push_back(specs.size() / graph.meshShape.size());
  }
  result.addArray(prefix + "_node", nodes);
  result.addArray(prefix + "_spec", specs, graph.meshShape.size());
  result.addArray(prefix + "_spec_offset", offsets);
  result.addArray(prefix + "_class", classes);
  result.addArray(prefix + "_class_offset", classOffsets);
  result.addArray(prefix + "_alias", aliases);
  result.addArray(prefix + "_is_parameter", parameters);
  result.addArray(prefix + "_is_transfer", transfers);
  result.addArray(prefix + "_is_batch", batches);
  result.addList(prefix + "_name", std::move(names));
}

void addGraphArrays(const StrategyGraph &graph, AlpaResult &result) {
  result.addList("mesh_axes", std::vector<std::string>(graph.meshAxes.begin(),
                                                       graph.meshAxes.end()));
  result.addArray("mesh_shape", std::vector<int64_t>(graph.meshShape.begin(),
                                                     graph.meshShape.end()));
  addNodes(graph, result);
  addPlans(graph, result);
  addTerms(graph, result);
  addValues(graph, result);
  addBoundary(graph, graph.inputs, "input", result);
  addBoundary(graph, graph.outputs, "output", result);
}

} // namespace mlir::alpa
