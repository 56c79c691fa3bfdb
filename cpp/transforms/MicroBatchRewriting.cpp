//===- MicroBatchRewriting.cpp - A step on the axis of time ---------------===//

#include "cpp/transforms/MicroBatchRewriting.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Exactness.h"
#include "cpp/analysis/OperatorShardings.h"
#include "cpp/transforms/LockstepLoops.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

namespace {

TimeRows getSameRows(Operation *op) {
  TimeRows rows;
  rows.operands.assign(op->getNumOperands(), kReplicated);
  rows.results.assign(op->getNumResults(), kReplicated);
  return rows;
}

} // namespace

MicroBatchRewriting::MicroBatchRewriting(func::FuncOp function,
                                         MicroBatchStates &states)
    : function(function), states(states), builder(function.getContext()) {}

void MicroBatchRewriting::run() {
  Block &old = function.getBody().front();
  findBeside(old);
  for (Value value : old.getTerminator()->getOperands()) {
    needAfter(value);
  }
  plan(old);
  auto *made = new Block();
  function.getBody().push_back(made);
  addArguments(*made);
  builder.setInsertionPointToEnd(made);
  emit(old);
  Operation *end = old.getTerminator();
  SmallVector<Value> results = llvm::map_to_vector(
      end->getOperands(), [&](Value value) { return lookUpAfter(value); });
  auto exit = func::ReturnOp::create(builder, end->getLoc(), results);
  annotateSame(exit);
  for (unsigned index = 0; index < results.size(); ++index) {
    function.setResultAttr(
        index, kShardingAttrName,
        cast<ArrayAttr>(exit->getAttr(kOperandsAttrName))[index]);
  }
  old.dropAllReferences();
  old.dropAllDefinedValueUses();
  old.erase();
  function.setFunctionType(FunctionType::get(
      function.getContext(), made->getArgumentTypes(), exit.getOperandTypes()));
}

//===----------------------------------------------------------------------===//
// What is needed
//===----------------------------------------------------------------------===//

void MicroBatchRewriting::need(Value value, TimeEntry entry) {
  needed[value].insert(entry);
}

bool MicroBatchRewriting::isNeeded(Value value, TimeEntry entry) const {
  auto found = needed.find(value);
  return found != needed.end() && found->second.contains(entry);
}

/// A loop over layers hands on activations of a micro-batch and, beside them,
/// how many layers there were, or a penalty on weights.
void MicroBatchRewriting::findBeside(Block &block) {
  for (Operation &op : block.without_terminator()) {
    auto isOwn = [](TimeEntry entry) { return entry != kReplicated; };
    const TimeRows *rows = states.getRows(&op);
    bool isLoop = rows && isa<DataFlowOpInterface>(op) &&
                  (llvm::any_of(rows->operands, isOwn) ||
                   llvm::any_of(rows->results, isOwn));
    bool isBehind = false;
    forEachUsedValue(&op,
                     [&](Value value) { isBehind |= beside.contains(value); });
    for (Value result : op.getResults()) {
      // Of what has parts, the whole may be made, too.
      if (isBehind || (isLoop && states.getState(result) == kReplicated)) {
        beside.insert(result);
      }
    }
  }
}

/// Behind the micro-batches everything is whole.
void MicroBatchRewriting::needAfter(Value value) {
  TimeEntry state = states.getState(value);
  if (state == kAfter) {
    return;
  }
  bool isSame = state == kReplicated && !beside.contains(value);
  if (isSame || isa<BlockArgument>(value)) {
    need(value, kReplicated);
    return;
  }
  joins.insert(value);
  need(value, state);
}

void MicroBatchRewriting::plan(Block &block) {
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    plan(&op);
  }
}

void MicroBatchRewriting::plan(Operation *op) {
  if (states.isAfter(op)) {
    forEachUsedValue(op, [&](Value value) { needAfter(value); });
  } else if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    planBarrier(op);
  } else if (const TimeRows *rows = states.getRows(op)) {
    planChosen(op, *rows);
  } else {
    planSame(op);
  }
}

void MicroBatchRewriting::planBarrier(Operation *op) {
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    // A copy: the map grows.
    for (TimeEntry entry : needed.lookup(result)) {
      need(operand, entry);
    }
  }
}

void MicroBatchRewriting::planChosen(Operation *op, const TimeRows &rows) {
  bool isWhole = false, isOwn = false;
  for (auto [result, entry] : llvm::zip(op->getResults(), rows.results)) {
    for (TimeEntry wanted : needed[result]) {
      (wanted == entry || entry == kReplicated ? isOwn : isWhole) = true;
    }
  }
  if (isWhole && isCompared(op)) {
    // Parts are cut of the whole.
    isOwn = false;
  }
  if (isOwn) {
    execute(op, rows);
    planRegions(op, rows);
  }
  if (isWhole) {
    execute(op, getSameRows(op));
  }
}

/// True if parts of what an operator makes may be compared with what is picked
/// of the whole, where both are rounded for themselves.
bool MicroBatchRewriting::isCompared(Operation *op) const {
  return !isExact(op) && llvm::any_of(op->getResults(), [&](Value result) {
    return picked.contains(result) && states.getState(result) >= 0;
  });
}

/// What is the same for all micro-batches is made in parts where only parts are
/// needed, if its rule knows how.
void MicroBatchRewriting::planSame(Operation *op) {
  bool isWhole = false, isUsed = false, isPart = false;
  SmallVector<TimeEntry> wanted(op->getNumResults(), kAfter);
  SmallVector<TimeRows> parts;
  for (auto [index, result] : llvm::enumerate(op->getResults())) {
    for (TimeEntry entry : needed[result]) {
      isUsed = true;
      wanted[index] = entry;
      std::optional<TimeRows> rows;
      if (entry != kReplicated) {
        isPart = true;
        rows = states.getRowsFor(cast<OpResult>(result), entry);
      }
      isWhole |= !rows;
      if (rows) {
        parts.push_back(*rows);
      }
    }
  }
  if (!isUsed) {
    return;
  }
  auto dataFlow = dyn_cast<DataFlowOpInterface>(op);
  if (isPart && dataFlow && !op->hasAttr(kOnceAttrName) &&
      states.splitRegions(dataFlow, wanted)) {
    planChosen(op, *states.getRows(op));
    return;
  }
  // What costs nothing is made in each form that is needed.
  bool isFree = op->getNumOperands() == 0 || isZero(op->getResult(0));
  if (!isWhole || isFree) {
    for (const TimeRows &rows : parts) {
      execute(op, rows);
    }
  }
  if (!isWhole) {
    return;
  }
  execute(op, getSameRows(op));
  forEachUsedValue(op, [&](Value value) { need(value, kReplicated); });
}

void MicroBatchRewriting::execute(Operation *op, const TimeRows &rows) {
  executions[op].push_back(rows);
  bool isPicked = picksElements(op) ||
                  (isExact(op) && llvm::any_of(op->getResults(), [&](Value v) {
                     return picked.contains(v);
                   }));
  for (auto [operand, entry] : llvm::zip(op->getOperands(), rows.operands)) {
    need(operand, entry);
    if (isPicked && entry == kReplicated) {
      picked.insert(operand);
    }
  }
  if (!isa<DataFlowOpInterface>(op)) {
    // Combiners and comparators use constants at most.
    forEachCapture(
        op, [&](OpOperand &operand) { need(operand.get(), kReplicated); });
  }
}

void MicroBatchRewriting::planRegions(Operation *op, const TimeRows &rows) {
  auto dataFlow = dyn_cast<DataFlowOpInterface>(op);
  if (!dataFlow) {
    return;
  }
  DataFlowEdges edges(dataFlow);
  SmallVector<TimeEntry> entries = getEdgeEntries(op, edges, rows);
  for (Region &region : op->getRegions()) {
    for (Block &block : region) {
      for (OpOperand &source : block.getTerminator()->getOpOperands()) {
        std::optional<unsigned> edge = edges.find(source);
        need(source.get(),
             edge ? *getInnerEntry(edges[*edge], entries[*edge]) : kReplicated);
      }
      plan(block);
    }
  }
}

//===----------------------------------------------------------------------===//
// The new body
//===----------------------------------------------------------------------===//

ArrayAttr MicroBatchRewriting::getShardings(ValueRange values,
                                            ArrayRef<TimeEntry> entries) {
  SmallVector<Attribute> shardings;
  for (auto [value, entry] : llvm::zip(values, entries)) {
    auto tensor = dyn_cast<RankedTensorType>(value.getType());
    int8_t row[] = {entry};
    shardings.push_back(getShardingAttr(builder.getContext(), row,
                                        tensor ? tensor.getRank() : 0));
  }
  return builder.getArrayAttr(shardings);
}

void MicroBatchRewriting::annotate(Operation *op, ArrayRef<TimeEntry> operands,
                                   ArrayRef<TimeEntry> results) {
  OperatorRows rows;
  for (TimeEntry entry : operands) {
    rows.operands.push_back({entry});
  }
  for (TimeEntry entry : results) {
    rows.results.push_back({entry});
  }
  setPlan(op, rows, {states.getNumMicroBatches()}, Shares::OfMicroBatches);
}

void MicroBatchRewriting::annotateSame(Operation *op) {
  TimeRows rows = getSameRows(op);
  annotate(op, rows.operands, rows.results);
  if (isa<DataFlowOpInterface>(op)) {
    for (Region &region : op->getRegions()) {
      for (Operation &inner : region.getOps()) {
        annotateSame(&inner);
      }
    }
  }
}

/// An argument that is needed in parts and whole is two arguments.
void MicroBatchRewriting::addArguments(Block &target) {
  MLIRContext *context = builder.getContext();
  Block &old = function.getBody().front();
  unsigned numInputs = old.getNumArguments();
  SmallVector<NamedAttrList> attributes;
  auto add = [&](BlockArgument argument, TimeEntry entry) {
    Value made = target.addArgument(argument.getType(), argument.getLoc());
    record(argument, entry, made);
    unsigned index = argument.getArgNumber();
    NamedAttrList list;
    if (target.getNumArguments() <= numInputs) {
      list = NamedAttrList(function.getArgAttrDict(index));
    }
    if (entry == 0) {
      // A part is no value of the next step.
      list.erase(kAliasAttrName);
      list.erase(kDonorAttrName);
    }
    list.set(entry == 0 ? kBatchAttrName : kInputAttrName,
             builder.getI64IntegerAttr(index));
    list.set(kShardingAttrName, getShardings(made, entry)[0]);
    attributes.push_back(list);
  };
  for (BlockArgument argument : old.getArguments()) {
    bool isSplit = states.getState(argument) == 0 && isNeeded(argument, 0);
    add(argument, isSplit ? TimeEntry(0) : kReplicated);
  }
  for (BlockArgument argument : old.getArguments()) {
    bool isSplit = versions.contains({argument, 0});
    if (isSplit && needed.lookup(argument).size() > 1) {
      add(argument, kReplicated);
    }
  }
  Type number = RankedTensorType::get(
      {}, IntegerType::get(context, 32, IntegerType::Unsigned));
  Value made = target.addArgument(number, function.getLoc());
  NamedAttrList list;
  list.set(kMicroBatchAttrName, builder.getI64IntegerAttr(0));
  list.set(kShardingAttrName, getShardings(made, {kReplicated})[0]);
  attributes.push_back(list);
  // Attributes are counted by the type.
  function.setFunctionType(FunctionType::get(context, target.getArgumentTypes(),
                                             function.getResultTypes()));
  function.setAllArgAttrs(
      llvm::map_to_vector(attributes, [&](NamedAttrList &each) {
        return each.getDictionary(context);
      }));
}

void MicroBatchRewriting::record(Value value, TimeEntry entry, Value made) {
  if (!versions.try_emplace({value, entry}, made).second ||
      !joins.contains(value) || entry != states.getState(value)) {
    return;
  }
  auto join = AccumulateOp::create(builder, made.getLoc(), made);
  // What is the same for all is a summand of the first.
  annotate(join, {entry == kReplicated ? kPartial : entry}, {kReplicated});
  joined[value] = join.getResult();
}

/// A value as it is needed, or whole: then a slice of it is.
Value MicroBatchRewriting::lookUp(Value value, TimeEntry entry) const {
  if (Value made = versions.lookup({value, entry})) {
    return made;
  }
  return versions.lookup({value, kReplicated});
}

Value MicroBatchRewriting::lookUpAfter(Value value) const {
  if (Value made = joined.lookup(value)) {
    return made;
  }
  TimeEntry state = states.getState(value);
  return versions.lookup({value, state == kAfter ? kAfter : kReplicated});
}

void MicroBatchRewriting::emit(Block &block) {
  for (Operation &op : block.without_terminator()) {
    emit(&op);
  }
}

void MicroBatchRewriting::emit(Operation *op) {
  if (isGradientBarrier(op)) {
    for (auto [operand, result] :
         llvm::zip(op->getOperands(), op->getResults())) {
      record(result, kAfter, lookUpAfter(operand));
    }
  } else if (states.isAfter(op)) {
    emitAfter(op);
  } else if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    emitBarrier(op);
  } else if (auto found = executions.find(op); found != executions.end()) {
    for (const TimeRows &rows : found->second) {
      emitExecution(op, rows);
    }
  }
}

/// Each form of each operand waits for the others, as operator merging has it.
void MicroBatchRewriting::emitBarrier(Operation *op) {
  auto group = builder.getI64IntegerAttr(numBarriers++);
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    for (TimeEntry entry : needed.lookup(result)) {
      auto made = stablehlo::OptimizationBarrierOp::create(
          builder, op->getLoc(), operand.getType(), lookUp(operand, entry));
      made->setAttr(kBarrierAttrName, group);
      annotate(made, {entry}, {entry});
      record(result, entry, made->getResult(0));
    }
  }
}

void MicroBatchRewriting::mapCaptured(Operation *op, IRMapping &mapping,
                                      bool isAfter) {
  forEachUsedValue(op, [&](Value value) {
    Value made = isAfter ? lookUpAfter(value) : lookUp(value, kReplicated);
    if (made) {
      mapping.map(value, made);
    }
  });
}

/// Of the rows of the micro-batch alone, as no sharding of a reduction says.
void MicroBatchRewriting::emitLockstep(stablehlo::ReduceOp op,
                                       const TimeRows &rows) {
  MLIRContext *context = builder.getContext();
  Value wants = lookUp(op.getInputs()[0], rows.operands[0]);
  auto type = cast<RankedTensorType>(wants.getType());
  auto time = MeshAttr::get(context, {StringAttr::get(context, "time")},
                            {states.getNumMicroBatches()});
  SmallVector<Attribute> dims(type.getRank(), builder.getArrayAttr({}));
  dims[rows.operands[0]] = builder.getStrArrayAttr({"time"});
  auto made =
      ManualOp::create(builder, op.getLoc(), op->getResultTypes(), wants, time,
                       builder.getArrayAttr(builder.getArrayAttr(dims)),
                       builder.getArrayAttr(builder.getArrayAttr({})));
  OpBuilder::InsertionGuard guard(builder);
  Block &body = made.getBody().emplaceBlock();
  SmallVector<int64_t> shape(type.getShape());
  shape[rows.operands[0]] /= states.getNumMicroBatches();
  Value own = body.addArgument(type.clone(shape), op.getLoc());
  builder.setInsertionPointToStart(&body);
  ElementsAttr initial;
  matchPattern(op.getInitValues()[0], m_Constant(&initial));
  IRMapping mapping;
  mapping.map(op.getInputs()[0], own);
  mapping.map(
      op.getInitValues()[0],
      stablehlo::ConstantOp::create(builder, op.getLoc(), initial).getResult());
  Operation *reduced = builder.clone(*op, mapping);
  YieldOp::create(builder, op.getLoc(), reduced->getResults());
  annotate(made, {rows.operands[0]}, rows.results);
  record(op->getResult(0), rows.results[0], made->getResult(0));
}

void MicroBatchRewriting::emitExecution(Operation *op, const TimeRows &rows) {
  if (isLockstepReduction(op) && rows.operands[0] >= 0) {
    emitLockstep(cast<stablehlo::ReduceOp>(op), rows);
    return;
  }
  const TimeRows *chosen = states.getRows(op);
  auto dataFlow = dyn_cast<DataFlowOpInterface>(op);
  bool isRewritten =
      chosen && dataFlow && llvm::equal(chosen->results, rows.results);
  Operation *made = nullptr;
  if (isRewritten) {
    SmallVector<Value> operands;
    for (auto [operand, entry] : llvm::zip(op->getOperands(), rows.operands)) {
      operands.push_back(lookUp(operand, entry));
    }
    made = dataFlow.cloneWithTypes(builder, operands, op->getResultTypes());
  } else {
    IRMapping mapping;
    mapCaptured(op, mapping, /*isAfter=*/false);
    made = builder.clone(*op, mapping);
    for (auto [index, entry] : llvm::enumerate(rows.operands)) {
      made->setOperand(index, lookUp(op->getOperand(index), entry));
    }
    annotateSame(made);
  }
  annotate(made, rows.operands, rows.results);
  if (isRewritten) {
    emitRegions(dataFlow, made, rows);
  }
  for (auto [result, entry, copy] :
       llvm::zip(op->getResults(), rows.results, made->getResults())) {
    record(result, entry, copy);
  }
}

void MicroBatchRewriting::emitRegions(DataFlowOpInterface op, Operation *made,
                                      const TimeRows &rows) {
  OpBuilder::InsertionGuard guard(builder);
  DataFlowEdges edges(op);
  SmallVector<TimeEntry> entries = getEdgeEntries(op, edges, rows);
  auto getInner = [&](std::optional<unsigned> edge) {
    return edge ? *getInnerEntry(edges[*edge], entries[*edge]) : kReplicated;
  };
  for (auto [from, to] : llvm::zip(op->getRegions(), made->getRegions())) {
    if (from.empty()) {
      continue;
    }
    Block &block = to.emplaceBlock();
    for (BlockArgument argument : from.getArguments()) {
      record(argument, getInner(edges.find(argument)),
             block.addArgument(argument.getType(), argument.getLoc()));
    }
    builder.setInsertionPointToEnd(&block);
    emit(from.front());
    Operation *end = from.front().getTerminator();
    OperationState state(end->getLoc(), end->getName());
    state.addAttributes(end->getAttrs());
    SmallVector<TimeEntry> returned;
    for (OpOperand &source : end->getOpOperands()) {
      returned.push_back(getInner(edges.find(source)));
      state.addOperands(lookUp(source.get(), returned.back()));
    }
    annotate(builder.create(state), returned, {});
  }
}

void MicroBatchRewriting::emitAfter(Operation *op) {
  IRMapping mapping;
  mapCaptured(op, mapping, /*isAfter=*/true);
  Operation *made = builder.clone(*op, mapping);
  annotateSame(made);
  for (auto [result, copy] : llvm::zip(op->getResults(), made->getResults())) {
    record(result, kAfter, copy);
  }
}

} // namespace mlir::alpa
