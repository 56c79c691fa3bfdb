//===- StrategyGraphBuilder.cpp - Strategies of a module ------------------===//

#include "cpp/analysis/StrategyGraphBuilder.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/analysis/Combination.h"
#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/HostMoves.h"
#include "cpp/analysis/OperatorRoles.h"
#include "cpp/analysis/Work.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

StrategyGraphBuilder::StrategyGraphBuilder(func::FuncOp function, MeshAttr mesh,
                                           StepAnalyses &analyses,
                                           Backend backend)
    : function(function), mesh(mesh), meshShape(mesh.getSizes()),
      numAxes(mesh.getNumAxes()), planner(mesh.getSizes()),
      rules(analyses.getRules()), classes(analyses.getClasses()),
      backend(backend),
      memory(analyses.getMemory(mesh.getNumDevices(), backend)),
      leeway(analyses.getLeeway()) {
  graph.meshShape = meshShape;
  for (StringAttr name : mesh.getNames()) {
    graph.meshAxes.push_back(name.str());
  }
  internPlan({});
}

FailureOr<StrategyGraph> StrategyGraphBuilder::build() {
  graph.numPoints = memory.getNumPoints();
  for (BlockArgument argument : function.getArguments()) {
    std::string name = getReadableName(argument);
    ValuePlacement placement = placeArgument(argument, name);
    graph.valuePlacements[argument] = placement;
    StrategyGraph::Boundary input{name, placement};
    input.isTransfer = isTransfer(argument);
    input.isBatch =
        function.getArgAttr(argument.getArgNumber(), kBatchAttrName) != nullptr;
    input.classes = classes.get(argument);
    if (auto alias = function.getArgAttrOfType<IntegerAttr>(
            argument.getArgNumber(), kAliasAttrName)) {
      input.alias = static_cast<int>(alias.getInt());
    }
    graph.inputs.push_back(std::move(input));
  }
  if (failed(visit(function.getBody().front(), 1))) {
    return failure();
  }
  finishFunction(function.getBody().front().getTerminator());
  recordLiveRanges();
  recordAccumulators();
  recordParameters();
  return std::move(graph);
}

LogicalResult StrategyGraphBuilder::visit(Block &block, double weight) {
  auto microBatches =
      function->getAttrOfType<IntegerAttr>(kMicroBatchesAttrName);
  bool isStep = &block == &function.getBody().front();
  double repeats = microBatches && isStep ? microBatches.getInt() : 1;
  for (Operation &op : block.without_terminator()) {
    // What applies gradients runs once for all micro-batches.
    double runs = runsOnce(&op) ? 1 : repeats;
    if (failed(visit(&op, weight * runs))) {
      return failure();
    }
  }
  return success();
}

LogicalResult StrategyGraphBuilder::visit(Operation *op, double weight) {
  if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
    return visitRegions(dataFlow, weight);
  }
  forEachCapture(op, [&](OpOperand &operand) {
    requireReplicated(operand.get(), weight);
  });
  auto role = op->getAttrOfType<StringAttr>(kRoleAttrName);
  if (!role) {
    return op->emitOpError() << "has no '" << kRoleAttrName
                             << "': run alpa-merge-operators before planning";
  }
  if (role.getValue() == kReplicatedRole) {
    visitReplicated(op, weight);
    return success();
  }
  if (auto manual = dyn_cast<ManualOp>(op)) {
    return visitManual(manual, weight);
  }
  if (!rules.get(op)) {
    return op->emitOpError()
           << "has the role " << role << " but no sharding rule";
  }
  if (role.getValue() == kLeaderRole) {
    visitLeader(op, weight);
  } else if (role.getValue() == kFollowerRole) {
    auto follows = op->getAttrOfType<IntegerAttr>(kFollowsAttrName);
    if (!follows || follows.getInt() < 0 ||
        follows.getInt() >= op->getNumOperands() ||
        graph.valuePlacements.lookup(op->getOperand(follows.getInt())).node <
            0) {
      return op->emitOpError() << "'" << kFollowsAttrName
                               << "' names no operand that can be followed";
    }
    visitFollower(op, weight);
  } else if (role.getValue() != kRematerializedRole) {
    return op->emitOpError() << "has the unknown role " << role;
  }
  return success();
}

void StrategyGraphBuilder::finishFunction(Operation *terminator) {
  DenseMap<int, int> inputOfOutput;
  for (auto [index, input] : llvm::enumerate(graph.inputs)) {
    if (input.alias >= 0) {
      inputOfOutput[input.alias] = static_cast<int>(index);
    }
  }
  for (OpOperand &operand : terminator->getOpOperands()) {
    Value value = operand.get();
    int index = static_cast<int>(operand.getOperandNumber());
    std::string name = "result " + std::to_string(index);
    ValuePlacement place;
    if (auto it = inputOfOutput.find(index); it != inputOfOutput.end()) {
      place = graph.inputs[it->second].placement;
    } else {
      ValuePlacement made = graph.valuePlacements.lookup(value);
      bool isWhole = isTiny(value.getType()) &&
                     !function.getResultAttr(index, kPlacedAttrName);
      if (made.node >= 0 && !canBePartial(value)) {
        place = made;
      } else if (!isWhole) {
        place = placeFreely(value, name, "output");
      }
    }
    if (place.node < 0) {
      requireReplicated(value, 1);
    } else {
      connect(value, place.node, place.table, 1);
    }
    StrategyGraph::Boundary output{name, place};
    output.classes = classes.get(value);
    graph.outputs.push_back(std::move(output));
  }
}

//===----------------------------------------------------------------------===//
// Operators
//===----------------------------------------------------------------------===//

bool StrategyGraphBuilder::canBePartial(Value value) const {
  ValuePlacement place = graph.valuePlacements.lookup(value);
  return place.node >= 0 &&
         llvm::is_contained(graph.tables[place.table].entries, kPartial);
}

void StrategyGraphBuilder::visitReplicated(Operation *op, double weight) {
  for (Value operand : op->getOperands()) {
    requireReplicated(operand, weight);
  }
  OperatorPlacement placement;
  placement.operandTables.assign(op->getNumOperands(), -1);
  placement.resultTables.assign(op->getNumResults(), -1);
  graph.operatorPlacements[op] = placement;
  for (Value result : op->getResults()) {
    graph.valuePlacements[result] = {};
  }
}

void StrategyGraphBuilder::keepAllowed(ConstrainOp op, MeshAttr mesh,
                                       SmallVector<FactorRow> &factorRows,
                                       SmallVector<OperatorRows> &rows) {
  SmallVector<FactorRow> keptFactorRows;
  SmallVector<OperatorRows> keptRows;
  for (auto [factorRow, shardings] : llvm::zip(factorRows, rows)) {
    if (op.allows(shardings.results.front(), mesh)) {
      keptFactorRows.push_back(factorRow);
      keptRows.push_back(shardings);
    }
  }
  if (keptRows.empty()) {
    op.emitRemark() << "sharding constraint " << op.getDims()
                    << " is ignored: no sharding of " << op.getType() << " on "
                    << mesh << " is what it asks for";
    return;
  }
  factorRows = std::move(keptFactorRows);
  rows = std::move(keptRows);
}

const OperatorStrategies &
StrategyGraphBuilder::getLeaderStrategies(Operation *op,
                                          const ShardingRule &rule) {
  SmallVector<unsigned> linearSets =
      getLinearSets(rule, Shares::OfDevices, [&](unsigned operand) {
        return canBePartial(op->getOperand(operand));
      });
  auto constrain = dyn_cast<ConstrainOp>(op);
  StrategiesKey key{&rule, constrain ? op : nullptr,
                    -1,    0,
                    false, {linearSets.begin(), linearSets.end()}};
  auto [it, isNew] = knownStrategies.try_emplace(std::move(key));
  OperatorStrategies &strategies = it->second;
  if (!isNew) {
    return strategies;
  }
  SmallVector<FactorRow> factorRows;
  SmallVector<OperatorRows> rows;
  llvm::StringSet<> seen;
  for (FactorRow &candidate :
       enumerateFactorRows(rule, meshShape, linearSets)) {
    std::optional<OperatorRows> shardings =
        getOperatorRows(rule, candidate, meshShape);
    if (!shardings) {
      continue;
    }
    std::string key;
    for (const auto &list : {ArrayRef<ShardingRow>(shardings->operands),
                             ArrayRef<ShardingRow>(shardings->results)}) {
      for (const ShardingRow &row : list) {
        key.append(row.begin(), row.end());
      }
    }
    if (seen.insert(key).second) {
      factorRows.push_back(candidate);
      rows.push_back(std::move(*shardings));
    }
  }
  if (constrain) {
    keepAllowed(constrain, mesh, factorRows, rows);
  }
  strategies = tabulate(rule, std::move(factorRows), std::move(rows), false);
  label(strategies, op);
  if (isProduct(rule)) {
    for (ArrayRef<int> factorRow : strategies.factorRows) {
      strategies.productShapes.push_back(
          getProductShape(rule, factorRow, meshShape));
    }
  }
  return strategies;
}

void StrategyGraphBuilder::visitLeader(Operation *op, double weight) {
  const ShardingRule &rule = *rules.get(op);
  const OperatorStrategies &strategies = getLeaderStrategies(op, rule);
  int node = addNode(getReadableName(op), op->getName().getStringRef(),
                     strategies.rows.size());
  graph.nodes[node].labels = strategies.labels;
  graph.nodes[node].isProduct = isProduct(rule);
  if (graph.nodes[node].isProduct) {
    graph.nodes[node].productRuns = weight;
    graph.nodes[node].productForm = getProductForm(op);
    graph.nodes[node].productShapes = strategies.productShapes;
    for (ArrayRef<int> factorRow : strategies.factorRows) {
      graph.nodes[node].productPaddings.push_back(
          getChannelPadding(op, rule, factorRow, meshShape));
    }
  }
  SmallVector<int64_t> factorClasses = classes.getOfFactors(op, rule);
  graph.nodes[node].tensorClasses.insert_range(factorClasses);
  for (auto [index, factorRow] : llvm::enumerate(strategies.factorRows)) {
    for (auto [axis, factor] : llvm::enumerate(factorRow)) {
      if (factor != kNoFactor) {
        graph.nodes[node].classes[index * numAxes + axis] =
            factor >= 0 ? factorClasses[factor] : kSharesHandedOn;
      }
    }
  }
  placeOperator(op, node, rule, strategies, weight);
  if (graph.nodes[node].isProduct) {
    graph.nodes[node].productBytes = graph.nodes[node].bytes;
    addCopies(op, node, strategies, weight);
  }
}

/// Adds what each of a number of devices has of some bytes, per strategy.
static void addShares(std::vector<double> &bytes, double whole,
                      ArrayRef<double> shards) {
  for (auto [own, number] : llvm::zip_equal(bytes, shards)) {
    own += whole / number;
  }
}

void StrategyGraphBuilder::addCopies(Operation *op, int node,
                                     const OperatorStrategies &strategies,
                                     double weight) {
  StrategyNode &target = graph.nodes[node];
  for (OpOperand &operand : op->getOpOperands()) {
    double copied = memory.getCopiedBytes(operand);
    if (copied == 0) {
      continue;
    }
    target.kernels += weight;
    addShares(target.bytes, weight * copied,
              strategies.operandShards[operand.getOperandNumber()]);
  }
}

void StrategyGraphBuilder::visitFollower(Operation *op, double weight) {
  const ShardingRule &rule = *rules.get(op);
  unsigned followed = op->getAttrOfType<IntegerAttr>(kFollowsAttrName).getInt();
  ValuePlacement place = graph.valuePlacements.lookup(op->getOperand(followed));
  bool sumsAtOnce = !delaysReduction(op);
  auto [it, isNew] = knownStrategies.try_emplace(
      StrategiesKey{&rule, nullptr, place.table, followed, sumsAtOnce, {}});
  if (!isNew) {
    placeOperator(op, place.node, rule, it->second, weight);
    return;
  }
  int set = findLinearSet(rule, followed);
  int linearSet = set < 0 ? kNoFactor : kLinearSet - set;
  SmallVector<FactorRow> factorRows;
  SmallVector<OperatorRows> rows;
  for (unsigned row = 0; row < graph.tables[place.table].numRows; ++row) {
    FactorRow factorRow =
        getFactorRow(rule, rule.operands[followed], getRow(place.table, row),
                     meshShape, linearSet);
    std::optional<OperatorRows> shardings =
        getOperatorRows(rule, factorRow, meshShape);
    // An axis that does not fit all tensors is given up, the last one first.
    for (unsigned axis = numAxes; !shardings && axis-- > 0;) {
      factorRow[axis] = kNoFactor;
      shardings = getOperatorRows(rule, factorRow, meshShape);
    }
    factorRows.push_back(factorRow);
    rows.push_back(std::move(*shardings));
  }
  it->second =
      tabulate(rule, std::move(factorRows), std::move(rows), sumsAtOnce);
  placeOperator(op, place.node, rule, it->second, weight);
}

void StrategyGraphBuilder::placeOperator(Operation *op, int node,
                                         const ShardingRule &rule,
                                         const OperatorStrategies &strategies,
                                         double weight) {
  for (auto [operand, table] :
       llvm::zip(op->getOperands(), strategies.operandTables)) {
    connect(operand, node, table, weight, op);
  }
  graph.operatorPlacements[op] = {node, strategies.factorTable,
                                  strategies.operandTables,
                                  strategies.resultTables};
  for (auto [result, made, handedOn] :
       llvm::zip(op->getResults(), strategies.resultTables,
                 strategies.handedOnTables)) {
    graph.valuePlacements[result] = {node, made};
    if (handedOn != made) {
      connect(result, node, handedOn, weight);
      graph.valuePlacements[result] = {node, handedOn};
    }
  }
  addOperatorCosts(op, node, rule, strategies, weight);
}

void StrategyGraphBuilder::addOperatorCosts(
    Operation *op, int node, const ShardingRule &rule,
    const OperatorStrategies &strategies, double weight) {
  StrategyNode &target = graph.nodes[node];
  // What follows a product does not say what the product runs in.
  if (rule.flops > 0 && (!target.isProduct || isProduct(rule))) {
    target.dtype = getElementName(op->getOperand(0).getType());
  }
  target.kernels += weight * memory.getNumKernels(op);
  std::vector<double> *stream = getStreams(target, op, rule).wide;
  for (auto [index, factorRow] : llvm::enumerate(strategies.factorRows)) {
    InnerWork inner =
        getInnerWork(op, rule, getFactorShards(rule, factorRow, meshShape));
    target.flops[index] +=
        weight * rule.flops * inner.doneShare / strategies.shards[index];
    target.bytes[index] += weight * inner.bytes;
    if (stream) {
      (*stream)[index] += weight * inner.bytes;
    }
  }
  addTraffic(op, node, rule, strategies, weight);
  if (!combinesAtOnce(op, rule)) {
    return;
  }
  UnaryTerm reduction{node, weight, {}};
  bool reduces = false;
  for (auto [factorRow, shardings] :
       llvm::zip(strategies.factorRows, strategies.rows)) {
    // The empty plan has the number 0.
    reduction.plans.push_back(internPlan(
        getCombinedVolumes(op, rule, factorRow, shardings.results, meshShape)));
    reduces |= reduction.plans.back() != 0;
  }
  if (reduces) {
    graph.unaryTerms.push_back(std::move(reduction));
  }
}

StrategyGraphBuilder::Streams
StrategyGraphBuilder::getStreams(StrategyNode &node, Operation *op,
                                 const ShardingRule &rule) const {
  auto get = [&](Stream stream) {
    return &node.streams[static_cast<unsigned>(stream)];
  };
  if (isHostMove(op)) {
    return {get(Stream::HostMove), get(Stream::HostMove)};
  }
  bool leads = op->getName().getStringRef() == node.op;
  if (isProduct(rule) || (leads && backend != Backend::Tpu)) {
    return {};
  }
  bool isSum = isa<stablehlo::ReduceOp, stablehlo::ReduceWindowOp>(op);
  return {get(isSum ? Stream::Sum : Stream::Addition),
          get(isSum ? Stream::NarrowSum : Stream::NarrowAddition)};
}

void StrategyGraphBuilder::addTraffic(Operation *op, int node,
                                      const ShardingRule &rule,
                                      const OperatorStrategies &strategies,
                                      double weight) {
  StrategyNode &target = graph.nodes[node];
  auto product = graph.operatorPlacements.find(memory.getProduct(op));
  bool isEpilogue = product != graph.operatorPlacements.end();
  double inProduct = 0;
  Streams streams = getStreams(target, op, rule);
  auto addBytes = [&](double whole, double narrow, ArrayRef<double> shards) {
    if (isEpilogue) {
      inProduct += whole;
      return;
    }
    addShares(target.bytes, weight * whole, shards);
    if (streams.wide) {
      addShares(*streams.wide, weight * (whole - narrow), shards);
      addShares(*streams.narrow, weight * narrow, shards);
    }
  };
  for (OpResult result : op->getResults()) {
    unsigned position = result.getResultNumber();
    double written = memory.getWrittenBytes(result);
    if (written > 0 && !llvm::is_contained(rule.untouchedResults, position)) {
      addBytes(written, memory.isNarrow(result) ? written : 0,
               strategies.resultShards[position]);
    }
  }
  for (OpOperand &operand : op->getOpOperands()) {
    unsigned position = operand.getOperandNumber();
    double read = memory.getReadBytes(operand);
    if (read > 0 && !llvm::is_contained(rule.untouchedOperands, position)) {
      addBytes(read, memory.getNarrowReadBytes(operand),
               strategies.operandShards[position]);
    }
  }
  if (isEpilogue) {
    addEpilogue(product->first->getResult(0), product->second,
                weight * inProduct);
  }
}

void StrategyGraphBuilder::addEpilogue(Value product,
                                       const OperatorPlacement &placement,
                                       double bytes) {
  StrategyNode &target = graph.nodes[placement.node];
  auto type = cast<RankedTensorType>(product.getType());
  std::vector<double> local =
      getLocalBytes(type, {placement.node, placement.resultTables.front()});
  for (auto [index, own] : llvm::enumerate(local)) {
    double share = bytes * own / getTensorBytes(type);
    target.bytes[index] += share;
    target.productBytes[index] += share;
  }
}

//===----------------------------------------------------------------------===//
// Memory and data flow
//===----------------------------------------------------------------------===//

void StrategyGraphBuilder::recordLiveRanges() {
  for (const StoredValue &stored : memory.getStoredValues()) {
    auto place = graph.valuePlacements.find(stored.value);
    auto type = dyn_cast<RankedTensorType>(stored.value.getType());
    if (place == graph.valuePlacements.end() || place->second.node < 0 ||
        !type) {
      continue;
    }
    Operation *maker = stored.value.getDefiningOp();
    LiveValue live{place->second.node, stored.start, stored.end,
                   maker ? getReadableName(maker)
                         : graph.nodes[place->second.node].name,
                   getLocalBytes(type, place->second)};
    for (double &bytes : live.bytes) {
      bytes *= stored.ratio;
    }
    graph.values.push_back(std::move(live));
  }
  for (const GatheredCopy &copy : graph.copies) {
    if (copy.source == copy.target) {
      graph.values.push_back({copy.source, copy.start, copy.end, copy.name,
                              graph.copyTables[copy.table]});
    }
  }
  llvm::erase_if(graph.copies, [](const GatheredCopy &copy) {
    return copy.source == copy.target;
  });
  countPhasePoints();
}

std::vector<double>
StrategyGraphBuilder::getLocalBytes(RankedTensorType type,
                                    ValuePlacement placement) const {
  std::vector<double> bytes;
  const SpecTable &table = graph.tables[placement.table];
  for (unsigned row = 0; row < table.numRows; ++row) {
    ShardingRowRef sharding = getRow(placement.table, row);
    bytes.push_back(getTensorBytes(type) /
                    static_cast<double>(getNumShards(sharding, meshShape)));
  }
  return bytes;
}

void StrategyGraphBuilder::recordAccumulators() {
  for (auto accumulate : function.getBody().front().getOps<AccumulateOp>()) {
    Value sum = accumulate.getResult();
    auto type = dyn_cast<RankedTensorType>(sum.getType());
    ValuePlacement placement = graph.valuePlacements.lookup(sum);
    if (type && placement.node >= 0) {
      graph.accumulators.push_back(
          {placement.node, getLocalBytes(type, placement)});
    }
  }
}

/// Points up to the last operator of the forward phase that the backward phase
/// waits for, and up to the last of the backward phase.
void StrategyGraphBuilder::countPhasePoints() {
  int backward = graph.numPoints;
  Block &block = function.getBody().front();
  for (Operation &op : block) {
    if (getPhase(&op) == kBackwardPhase) {
      int point = memory.getPoint(&op);
      backward = std::min(backward, point);
      graph.numBackwardPoints = std::max(graph.numBackwardPoints, point + 1);
    }
  }
  for (Operation &op : block) {
    int point = memory.getPoint(&op);
    if (getPhase(&op) == kForwardPhase && point < backward) {
      graph.numForwardPoints = std::max(graph.numForwardPoints, point + 1);
    }
  }
}

/// Walks backwards: a value from which an operator with FLOPs (or a table
/// look-up) is reached makes the arguments behind it parameters.
void StrategyGraphBuilder::recordParameters() {
  llvm::DenseSet<Value> reaching;
  Block &block = function.getBody().front();
  for (Operation &op : llvm::reverse(block)) {
    bool reaches = llvm::any_of(op.getResults(), [&](Value result) {
      return reaching.contains(result);
    });
    op.walk([&](Operation *inner) {
      if (const ShardingRule *rule = rules.get(inner)) {
        reaches |= isa<stablehlo::GatherOp>(inner) || rule->flops > 0;
      }
    });
    if (reaches) {
      reaching.insert(op.operand_begin(), op.operand_end());
    }
  }
  for (auto [index, argument] : llvm::enumerate(block.getArguments())) {
    graph.inputs[index].isParameter = reaching.contains(argument);
  }
}

FailureOr<StrategyGraph> buildStrategyGraph(func::FuncOp function,
                                            MeshAttr mesh,
                                            StepAnalyses &analyses,
                                            Backend backend) {
  return StrategyGraphBuilder(function, mesh, analyses, backend).build();
}

FailureOr<StrategyGraph> buildStrategyGraph(func::FuncOp function,
                                            MeshAttr mesh, Backend backend) {
  StepAnalyses analyses(function);
  return buildStrategyGraph(function, mesh, analyses, backend);
}

} // namespace mlir::alpa
