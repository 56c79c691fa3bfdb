//===- StrategyTables.cpp - Interned tables, plans and joins --------------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/FusionRole.h"
#include "cpp/analysis/OperatorRoles.h"
#include "cpp/analysis/StrategyGraphBuilder.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Elements.h"
#include "dialects/alpa/Sharding.h"
#include <cstring>

namespace mlir::alpa {

/// How much dearer it is to send what lies on the host than what lies on the
/// device: it is moved as it will lie, or where it is needed. Heuristic.
static constexpr double kHostReshard = 1000;

ShardingRow StrategyGraph::getRow(int node, int table,
                                  ArrayRef<int64_t> choices) const {
  unsigned numAxes = meshShape.size();
  if (node < 0 || table < 0) {
    return ShardingRow(numAxes, kReplicated);
  }
  const int8_t *first = tables[table].entries.data() + choices[node] * numAxes;
  return ShardingRow(first, first + numAxes);
}

FactorRow StrategyGraph::getFactorRow(const OperatorPlacement &placement,
                                      ArrayRef<int64_t> choices) const {
  if (placement.node < 0 || placement.factorTable < 0) {
    return FactorRow(meshShape.size(), kNoFactor);
  }
  return factorTables[placement.factorTable][choices[placement.node]];
}

int StrategyGraphBuilder::internFactorTable(ArrayRef<FactorRow> rows) {
  std::string key;
  for (const FactorRow &row : rows) {
    key.append(reinterpret_cast<const char *>(row.data()),
               row.size() * sizeof(int));
  }
  auto [it, isNew] = factorTableIds.try_emplace(
      key, static_cast<int>(graph.factorTables.size()));
  if (isNew) {
    graph.factorTables.emplace_back(rows.begin(), rows.end());
  }
  return it->second;
}

int StrategyGraphBuilder::internTable(const Table &rows) {
  SpecTable table;
  table.numRows = rows.size();
  for (const ShardingRow &row : rows) {
    table.entries.insert(table.entries.end(), row.begin(), row.end());
  }
  std::string key(table.entries.begin(), table.entries.end());
  auto [it, isNew] =
      tableIds.try_emplace(key, static_cast<int>(graph.tables.size()));
  if (isNew) {
    graph.tables.push_back(std::move(table));
  }
  return it->second;
}

int StrategyGraphBuilder::internReplicated(unsigned numRows) {
  return internTable(Table(numRows, ShardingRow(numAxes, kReplicated)));
}

ShardingRowRef StrategyGraphBuilder::getRow(int table, unsigned row) const {
  return ArrayRef(graph.tables[table].entries).slice(row * numAxes, numAxes);
}

std::string StrategyGraphBuilder::makeUnique(std::string name) {
  unsigned count = nameCounts[name]++;
  return count == 0 ? name : name + "#" + std::to_string(count + 1);
}

int StrategyGraphBuilder::addNode(StringRef name, StringRef op,
                                  unsigned numStrategies) {
  StrategyNode node;
  node.name = makeUnique(name.str());
  node.op = op.str();
  node.numStrategies = numStrategies;
  node.flops.resize(numStrategies);
  node.bytes.resize(numStrategies);
  node.labels.resize(numStrategies);
  node.streams.fill(std::vector<double>(numStrategies));
  node.classes.assign(numStrategies * numAxes, kUnsplit);
  graph.nodes.push_back(std::move(node));
  return graph.nodes.size() - 1;
}

OperatorStrategies StrategyGraphBuilder::tabulate(
    const ShardingRule &rule, SmallVector<FactorRow> factorRows,
    SmallVector<OperatorRows> rows, bool sumsAtOnce) {
  OperatorStrategies made;
  made.factorTable = internFactorTable(factorRows);
  for (const FactorRow &factorRow : factorRows) {
    double shards = 1;
    for (auto [axis, entry] : llvm::enumerate(factorRow)) {
      shards *= entry < 0 ? 1 : static_cast<double>(meshShape[axis]);
    }
    made.shards.push_back(shards);
  }
  auto add = [&](auto member, size_t position, auto &tables, auto &shards) {
    Table table;
    std::vector<double> blocks;
    for (const OperatorRows &shardings : rows) {
      table.push_back((shardings.*member)[position]);
      blocks.push_back(
          static_cast<double>(getNumShards(table.back(), meshShape)));
    }
    tables.push_back(internTable(table));
    shards.push_back(std::move(blocks));
    return table;
  };
  for (size_t position = 0; position < rows.front().operands.size();
       ++position) {
    add(&OperatorRows::operands, position, made.operandTables,
        made.operandShards);
  }
  for (size_t position = 0; position < rows.front().results.size();
       ++position) {
    Table handedOn = add(&OperatorRows::results, position, made.resultTables,
                         made.resultShards);
    for (auto [factorRow, row] : llvm::zip(factorRows, handedOn)) {
      for (unsigned axis = 0; sumsAtOnce && axis < numAxes; ++axis) {
        if (factorRow[axis] >= 0 && row[axis] == kPartial) {
          row[axis] = kReplicated;
        }
      }
    }
    made.handedOnTables.push_back(internTable(handedOn));
  }
  made.factorRows = std::move(factorRows);
  made.rows = std::move(rows);
  return made;
}

void StrategyGraphBuilder::label(OperatorStrategies &strategies,
                                 Operation *op) const {
  for (const OperatorRows &shardings : strategies.rows) {
    std::string text;
    auto append = [&](ArrayRef<ShardingRow> list, auto types) {
      for (auto [position, row, type] : llvm::enumerate(list, types)) {
        auto tensor = dyn_cast<RankedTensorType>(type);
        text += (position == 0 ? "" : ",") +
                toString(row, tensor ? tensor.getRank() : 0);
      }
    };
    append(shardings.operands, op->getOperandTypes());
    text += "->";
    append(shardings.results, op->getResultTypes());
    strategies.labels.push_back(std::move(text));
  }
}

int32_t StrategyGraphBuilder::internPlan(std::vector<VolumeStep> steps) {
  std::string key;
  for (const VolumeStep &step : steps) {
    key.append(reinterpret_cast<const char *>(&step.kind), sizeof(step.kind));
    key.append(reinterpret_cast<const char *>(&step.axes), sizeof(step.axes));
    key.append(reinterpret_cast<const char *>(&step.bytes), sizeof(step.bytes));
  }
  auto [it, isNew] =
      planIds.try_emplace(key, static_cast<int32_t>(graph.plans.size()));
  if (isNew) {
    graph.plans.push_back(std::move(steps));
  }
  return it->second;
}

namespace {

/// A reshard without the dimensions that it leaves whole, which are one, last:
/// it moves the same. Tensors of many dimensions have many pairs of shardings,
/// and few that differ in more than which dimensions are split.
struct SplitDims {
  SplitDims(ArrayRef<int64_t> whole, ShardingRowRef from, ShardingRowRef to)
      : from(from), to(to) {
    int64_t left = 1;
    for (auto [dim, size] : llvm::enumerate(whole)) {
      auto number = static_cast<int8_t>(dim);
      if (!llvm::is_contained(from, number) &&
          !llvm::is_contained(to, number)) {
        left *= size;
        continue;
      }
      // Numbers only sink: no dimension is renamed twice.
      auto renamed = static_cast<int8_t>(shape.size());
      llvm::replace(this->from, number, renamed);
      llvm::replace(this->to, number, renamed);
      shape.push_back(size);
    }
    shape.push_back(left);
  }

  SmallVector<int64_t> shape;
  ShardingRow from, to;
};

} // namespace

int32_t StrategyGraphBuilder::getReshardPlan(RankedTensorType type,
                                             ShardingRowRef from,
                                             ShardingRowRef to) {
  if (from == to) {
    return 0;
  }
  // Both rows as one number: a type's pairs come up in many tables.
  uint64_t key = 0;
  bool isPacked = 2 * numAxes <= sizeof(key);
  if (isPacked) {
    std::memcpy(&key, from.data(), numAxes);
    std::memcpy(reinterpret_cast<char *>(&key) + numAxes, to.data(), numAxes);
    auto &known = pairPlans[type.getAsOpaquePointer()];
    if (auto found = known.find(key); found != known.end()) {
      return found->second;
    }
  }
  double elementBytes = getElementBytes(type.getElementType());
  std::vector<VolumeStep> steps;
  SplitDims split(type.getShape(), from, to);
  for (const ReshardStep &step :
       planner.getPlan(split.shape, split.from, split.to)) {
    steps.push_back(
        {step.kind, step.getAxesMask(), step.elements * elementBytes});
  }
  int32_t plan = internPlan(std::move(steps));
  if (isPacked) {
    pairPlans[type.getAsOpaquePointer()][key] = plan;
  }
  return plan;
}

ArrayRef<int32_t> StrategyGraphBuilder::getReshardPlans(int fromTable,
                                                        int toTable,
                                                        RankedTensorType type) {
  auto key = std::make_tuple(fromTable, toTable, type.getAsOpaquePointer());
  auto it = planTables.find(key);
  if (it != planTables.end()) {
    return it->second;
  }
  std::vector<int32_t> plans;
  for (unsigned from = 0; from < graph.tables[fromTable].numRows; ++from) {
    for (unsigned to = 0; to < graph.tables[toTable].numRows; ++to) {
      plans.push_back(
          getReshardPlan(type, getRow(fromTable, from), getRow(toTable, to)));
    }
  }
  return planTables.try_emplace(key, std::move(plans)).first->second;
}

int StrategyGraphBuilder::internCopyTable(RankedTensorType type, int fromTable,
                                          int toTable, bool isWithin) {
  auto key =
      std::make_tuple(type.getAsOpaquePointer(), fromTable, toTable, isWithin);
  auto [it, isNew] = copyTableIds.try_emplace(key, -1);
  if (!isNew) {
    return it->second;
  }
  std::vector<double> from, to, bytes;
  for (auto [table, shards] : {std::pair(fromTable, &from), {toTable, &to}}) {
    for (unsigned row = 0; row < graph.tables[table].numRows; ++row) {
      shards->push_back(getNumShards(getRow(table, row), meshShape));
    }
  }
  double whole = getTensorBytes(type);
  auto add = [&](double source, double target) {
    bytes.push_back(target < source ? whole / target : 0);
  };
  for (auto [row, source] : llvm::enumerate(from)) {
    if (isWithin) {
      add(source, to[row]);
      continue;
    }
    for (double target : to) {
      add(source, target);
    }
  }
  if (llvm::any_of(bytes, [](double size) { return size > 0; })) {
    it->second = static_cast<int>(graph.copyTables.size());
    graph.copyTables.push_back(std::move(bytes));
  }
  return it->second;
}

/// The phase in which an operator runs; what the planner has inserted has none,
/// and runs before the first that needs it (see `alpa-split-phases`).
static int64_t getRunningPhase(Operation *op) {
  int64_t phase = getPhase(op);
  if (phase >= 0 || !isa<ResolveOp>(op)) {
    return phase;
  }
  for (Operation *user : op->getUsers()) {
    int64_t own = getPhase(user);
    phase = own >= 0 && (phase < 0 || own < phase) ? own : phase;
  }
  return phase;
}

int StrategyGraphBuilder::getLastRead(Operation *reader) {
  auto known = lastReads.find(reader);
  if (known != lastReads.end()) {
    return known->second;
  }
  int last = memory.getPoint(reader);
  FusionRole role = getFusionRole(reader, backend);
  bool isRead = role == FusionRole::Fused || role == FusionRole::View;
  int64_t phase = getRunningPhase(reader);
  for (Value result : reader->getResults()) {
    // What is computed of it in the fusion of another operator is read there.
    if (!isRead || memory.isStored(result)) {
      continue;
    }
    for (Operation *user : result.getUsers()) {
      if (user->getBlock() == reader->getBlock() && getPhase(user) == phase &&
          !user->hasTrait<OpTrait::IsTerminator>()) {
        last = std::max(last, getLastRead(user));
      }
    }
  }
  return lastReads[reader] = last;
}

void StrategyGraphBuilder::addCopy(Value value, int node, int table,
                                   Operation *reader) {
  ValuePlacement from = graph.valuePlacements.lookup(value);
  auto type = cast<RankedTensorType>(value.getType());
  int copyTable = internCopyTable(type, from.table, table, from.node == node);
  if (copyTable < 0) {
    return;
  }
  Operation *maker = value.getDefiningOp();
  std::string name =
      maker ? getReadableName(maker) : graph.nodes[from.node].name;
  graph.copies.push_back({from.node, node, memory.getPoint(reader),
                          getLastRead(reader), copyTable, "copy of " + name});
}

void StrategyGraphBuilder::connect(Value value, int node, int table,
                                   double weight, Operation *reader) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.hasStaticShape()) {
    return;
  }
  Operation *op = value.getDefiningOp();
  if (op && !graph.operatorPlacements.contains(op) &&
      !graph.valuePlacements.contains(value)) {
    connectRematerialized(op, node, table, weight, reader);
    return;
  }
  ValuePlacement from = graph.valuePlacements.lookup(value);
  // Splitting what every device has costs nothing.
  if (from.node < 0) {
    return;
  }
  // Several uses of a value in the same sharding share one reshard.
  if (!joined
           .try_emplace(
               std::make_tuple(value.getAsOpaquePointer(), node, table), true)
           .second) {
    return;
  }
  if (reader) {
    addCopy(value, node, table, reader);
  }
  if (memory.isOnHost(value)) {
    weight *= kHostReshard;
  }
  if (from.node == node) {
    UnaryTerm term{node, weight, {}, leeway.get(value)};
    bool moves = false;
    for (unsigned row = 0; row < graph.tables[table].numRows; ++row) {
      term.plans.push_back(
          getReshardPlan(type, getRow(from.table, row), getRow(table, row)));
      moves |= term.plans.back() != 0;
    }
    if (moves) {
      graph.unaryTerms.push_back(std::move(term));
    }
    return;
  }
  ArrayRef<int32_t> plans = getReshardPlans(from.table, table, type);
  graph.edges.push_back(
      {from.node, node, weight, plans.vec(), leeway.get(value)});
}

/// A rematerialized operator is made in the sharding in which it is needed; its
/// operands are needed in the sharding that this implies.
void StrategyGraphBuilder::connectRematerialized(Operation *op, int node,
                                                 int table, double weight,
                                                 Operation *reader) {
  const ShardingRule *rule = rules.get(op);
  if (!rule || op->getNumOperands() == 0) {
    return;
  }
  auto [it, isNew] = rematerializedTables.try_emplace({rule, table});
  if (isNew) {
    SmallVector<Table, 2> operandTables(op->getNumOperands());
    for (unsigned row = 0; row < graph.tables[table].numRows; ++row) {
      std::optional<OperatorRows> rows = getOperatorRows(
          *rule,
          getFactorRow(*rule, rule->results[0], getRow(table, row), meshShape,
                       kNoFactor),
          meshShape);
      for (auto [index, operandTable] : llvm::enumerate(operandTables)) {
        operandTable.push_back(rows ? rows->operands[index]
                                    : ShardingRow(numAxes, kReplicated));
      }
    }
    for (const Table &operandTable : operandTables) {
      it->second.push_back(internTable(operandTable));
    }
  }
  for (auto [operand, operandTable] :
       llvm::zip(op->getOperands(), it->second)) {
    connect(operand, node, operandTable, weight, reader);
  }
}

void StrategyGraphBuilder::requireReplicated(Value value, double weight) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  ValuePlacement from = graph.valuePlacements.lookup(value);
  if (!type || from.node < 0) {
    if (Operation *op = value.getDefiningOp();
        op && !graph.valuePlacements.contains(value)) {
      for (Value operand : op->getOperands()) {
        requireReplicated(operand, weight);
      }
    }
    return;
  }
  if (!joined
           .try_emplace(std::make_tuple(value.getAsOpaquePointer(), -1, -1),
                        true)
           .second) {
    return;
  }
  UnaryTerm term{from.node, weight, {}, leeway.get(value)};
  ShardingRow replicated(numAxes, kReplicated);
  for (unsigned row = 0; row < graph.tables[from.table].numRows; ++row) {
    term.plans.push_back(
        getReshardPlan(type, getRow(from.table, row), replicated));
  }
  graph.unaryTerms.push_back(std::move(term));
}

ValuePlacement
StrategyGraphBuilder::placeFreely(Value value, StringRef name, StringRef op,
                                  function_ref<bool(ShardingRowRef)> allowed) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<ShardingRow> rows;
  if (hasSplittableElements(type)) {
    rows = enumerateShardings(type.getShape(), meshShape);
  } else {
    rows.emplace_back(numAxes, kReplicated);
  }
  if (allowed && llvm::any_of(rows, allowed)) {
    llvm::erase_if(rows, [&](ShardingRowRef row) { return !allowed(row); });
  }
  return placeIn(rows, value, name, op);
}

ValuePlacement StrategyGraphBuilder::placeSum(Value value, StringRef name,
                                              StringRef op) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<ShardingRow> rows =
      enumerateShardings(type.getShape(), meshShape);
  // Every axis that splits nothing may be one that shares are spread over.
  for (unsigned axis = 0; axis < numAxes; ++axis) {
    for (size_t index = 0, count = rows.size(); index < count; ++index) {
      if (rows[index][axis] == kReplicated) {
        rows.push_back(rows[index]);
        rows.back()[axis] = kPartial;
      }
    }
  }
  return placeIn(rows, value, name, op);
}

ValuePlacement StrategyGraphBuilder::placeIn(ArrayRef<ShardingRow> rows,
                                             Value value, StringRef name,
                                             StringRef op) {
  auto type = cast<RankedTensorType>(value.getType());
  int node = addNode(name, op, rows.size());
  graph.nodes[node].tensorClasses.insert_range(classes.get(value));
  for (auto [index, row] : llvm::enumerate(rows)) {
    graph.nodes[node].labels[index] = toString(row, type.getRank());
    for (auto [axis, dim] : llvm::enumerate(row)) {
      if (dim != kReplicated) {
        graph.nodes[node].classes[index * numAxes + axis] =
            dim == kPartial ? kSharesHandedOn : classes.get(value, dim);
      }
    }
  }
  return {node, internTable(Table(rows.begin(), rows.end()))};
}

ValuePlacement StrategyGraphBuilder::placeArgument(BlockArgument argument,
                                                   StringRef name) {
  if (isTiny(argument.getType()) &&
      !function.getArgAttr(argument.getArgNumber(), kPlacedAttrName)) {
    return {};
  }
  auto constraint = argument.hasOneUse()
                        ? dyn_cast<ConstrainOp>(*argument.user_begin())
                        : ConstrainOp();
  if (!constraint) {
    return placeFreely(argument, name, "input");
  }
  return placeFreely(argument, name, "input", [&](ShardingRowRef row) {
    return constraint.allows(row, mesh);
  });
}

} // namespace mlir::alpa
