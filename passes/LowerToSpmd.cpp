//===- LowerToSpmd.cpp - The module for one device ------------------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/FactorMapping.h"
#include "cpp/analysis/PlanVerification.h"
#include "cpp/analysis/ProductRings.h"
#include "cpp/analysis/StrategyGraph.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/IRMapping.h"
#include "passes/CallbackForm.h"
#include "passes/CollectiveEmitter.h"
#include "passes/Passes.h"
#include "passes/PlanRemoval.h"
#include "passes/ProductRingEmitter.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_LOWERTOSPMD
#include "passes/Passes.h.inc"

namespace {

/// Those of one operator.
class OperatorCollectives final : public LocalCollectives {
public:
  OperatorCollectives(CollectiveEmitter &emitter, Location loc)
      : emitter(emitter), loc(loc) {}

  Value emitOffset(ArrayRef<unsigned> axes, int64_t blockSize,
                   Type elementType) override {
    return emitter.emitOffset(axes, blockSize, elementType, loc);
  }
  Value emitGather(Value local, int64_t dim, ArrayRef<unsigned> axes) override {
    return emitter.emitGather(local, dim, axes, loc);
  }
  Value emitShift(Value local, int64_t distance,
                  ArrayRef<unsigned> axes) override {
    return emitter.emitShift(local, distance, axes, loc);
  }
  Value emitRotation(Value local, ArrayRef<unsigned> axes) override {
    return emitter.emitRotation(local, axes, loc);
  }
  Value emitPermutation(Value local, ArrayRef<int64_t> targets,
                        ArrayRef<unsigned> axes) override {
    return emitter.emitPermutation(local, targets, axes, loc);
  }
  Value emitDeal(Value local, ArrayRef<unsigned> axes) override {
    return emitter.emitAllToAll(local, 0, 0, axes, loc);
  }

private:
  CollectiveEmitter &emitter;
  Location loc;
};

/// Rewrites the body of a planned function operator by operator.
class SpmdLowering {
public:
  SpmdLowering(func::FuncOp entry, MeshAttr mesh, bool isTime)
      : entry(entry), mesh(mesh), isTime(isTime), builder(entry.getContext()),
        planner(mesh.getSizes()), rings(mesh), emitter(builder, mesh) {}

  LogicalResult run() {
    Block &global = entry.getBody().front();
    auto *local = new Block();
    entry.getBody().push_back(local);
    addArguments(global, *local);
    if (isTime && failed(setNumber(*local))) {
      return failure();
    }
    builder.setInsertionPointToEnd(local);
    if (failed(lower(global))) {
      return failure();
    }
    remapCaptures(*local);
    joinBarriers(*local);
    // Nothing of the new block uses the old one any more.
    global.dropAllReferences();
    global.dropAllDefinedValueUses();
    global.erase();
    // Clones carry the plan of the operators that they are made from; functions
    // that operators name may carry rules.
    entry->getParentOfType<ModuleOp>().walk([&](Operation *op) {
      Attribute trips = op->getDiscardableAttr(kTripCountAttrName);
      removePlan(op);
      // A micro-batch is still to be planned.
      if (trips && isTime) {
        op->setDiscardableAttr(kTripCountAttrName, trips);
      }
      // A hint for XLA's partitioner, in terms of the global shapes.
      op->removeDiscardableAttr("sdy.sharding_rule");
    });
    Operation *terminator = local->getTerminator();
    entry.setFunctionType(FunctionType::get(entry.getContext(),
                                            local->getArgumentTypes(),
                                            terminator->getOperandTypes()));
    removeBoundary();
    return success();
  }

private:
  /// Positions on the axis of time are an argument.
  LogicalResult setNumber(Block &local) {
    for (auto [index, argument] : llvm::enumerate(local.getArguments())) {
      if (entry.getArgAttr(index, kMicroBatchAttrName)) {
        number = argument;
        emitter.setPosition(number);
        return success();
      }
    }
    return entry.emitOpError()
           << "has no argument with '" << kMicroBatchAttrName
           << "': run alpa-split-micro-batches first";
  }

  /// Donation and layout belong to the caller, which knows the global types.
  void removeBoundary() {
    if (!isTime) {
      entry.removeArgAttrsAttr();
      entry.removeResAttrsAttr();
      return;
    }
    for (unsigned index = 0; index < entry.getNumArguments(); ++index) {
      entry.removeArgAttr(index, kShardingAttrName);
    }
    for (unsigned index = 0; index < entry.getNumResults(); ++index) {
      entry.removeResultAttr(
          index, StringAttr::get(entry.getContext(), kShardingAttrName));
    }
  }

  Type getLocal(Value value) {
    return getLocalType(value.getType(), getSharding(value), mesh);
  }

  /// Comparators and combiners were copied as they are; constants that folding
  /// has moved out of them are used from the old block.
  void remapCaptures(Block &local) {
    local.walk([&](Operation *op) {
      for (OpOperand &operand : op->getOpOperands()) {
        operand.set(mapping.lookupOrDefault(operand.get()));
      }
    });
  }

  void addArguments(Block &global, Block &local) {
    for (BlockArgument argument : global.getArguments()) {
      mapping.map(argument,
                  local.addArgument(getLocal(argument), argument.getLoc()));
    }
  }

  LogicalResult lower(Block &block) {
    for (Operation &op : block) {
      if (failed(lower(&op))) {
        return failure();
      }
    }
    return success();
  }

  SmallVector<Value> getLocalOperands(Operation *op) {
    return llvm::to_vector(llvm::map_range(
        op->getOperands(), [&](Value value) { return mapping.lookup(value); }));
  }

  LogicalResult lower(Operation *op) {
    lowerGathers(op);
    if (auto reshard = dyn_cast<ReshardOp>(op)) {
      lowerReshard(reshard);
      return success();
    }
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
      return lowerRegions(dataFlow);
    }
    if (op->hasTrait<OpTrait::IsTerminator>()) {
      OperationState state(op->getLoc(), op->getName());
      state.addOperands(getLocalOperands(op));
      state.addAttributes(op->getAttrs());
      builder.create(state);
      return success();
    }
    if (auto join = dyn_cast<AccumulateOp>(op); join && isTime) {
      lowerJoin(join);
      return success();
    }
    if (auto callback = dyn_cast<CallbackOp>(op)) {
      mapping.map(op->getResults(),
                  emitCallbackCall(builder, callback, getLocalOperands(op))
                      ->getResults());
      return success();
    }
    if (auto manual = dyn_cast<ManualOp>(op)) {
      lowerManual(manual);
      return success();
    }
    if (std::optional<RingSide> side = getRingSide(op)) {
      if (*side == RingSide::Result) {
        lowerInRing(
            *rings.findWrittenScatter(cast<ReshardOp>(*op->user_begin())),
            /*block=*/{});
      }
      return success();
    }
    if (std::optional<ShardingRule> rule = getShardingRule(op)) {
      return lowerByRule(op, *rule);
    }
    builder.clone(*op, mapping);
    return success();
  }

  void lowerReshard(ReshardOp reshard) {
    unsigned numAxes = mesh.getNumAxes();
    Value local = mapping.lookup(reshard.getOperand());
    ArrayRef<ReshardStep> steps = planner.getPlan(
        reshard.getType().getShape(), getRow(reshard.getSource(), numAxes),
        getRow(reshard.getTarget(), numAxes));
    if (isScatteredInRing(reshard)) {
      // The product in front of it has done so.
      steps = steps.drop_front();
    }
    bool isGathered = isGatheredInRing(reshard);
    for (const ReshardStep &step : isGathered ? steps.drop_back() : steps) {
      local = emitter.emit(step, local, reshard.getLoc());
    }
    if (isGathered) {
      waiting[getFirstUser(reshard)].push_back({reshard, local});
    } else {
      mapping.map(reshard.getResult(), local);
    }
  }

  /// The products that gathers are done beside of which `user` is the first to
  /// use one. Where it is one of them it may need what another one gathers.
  void lowerGathers(Operation *user) {
    auto found = waiting.find(user);
    if (found == waiting.end()) {
      return;
    }
    for (bool isOwn : {false, true}) {
      for (auto [reshard, block] : found->second) {
        if (isGatheredBeside(reshard, user) == isOwn) {
          lowerInRing(*rings.findWrittenGather(reshard), block);
        }
      }
    }
  }

  static bool isGatheredBeside(ReshardOp reshard, Operation *product) {
    std::optional<RingSide> side = getRingSide(product);
    return side && *side != RingSide::Result &&
           product->getOperand(static_cast<unsigned>(*side)) ==
               reshard.getResult();
  }

  /// All products of a ring. Of a gather, `block` is what the device has.
  void lowerInRing(const ProductRing &ring, Value block) {
    SmallVector<ProductRingEmitter::Local> locals;
    for (const RingProduct &product : ring.products) {
      stablehlo::DotGeneralOp op = product.op;
      ProductRingEmitter::Local local;
      for (Value operand : op->getOperands()) {
        local.operands.push_back(mapping.lookupOrNull(operand));
      }
      local.type = cast<RankedTensorType>(getLocal(op.getResult()));
      locals.push_back(local);
    }
    ProductRingEmitter products(builder, emitter, ring);
    if (!ring.isGather()) {
      mapping.map(ring.products.front().op->getResult(0),
                  products.emitScatter(locals.front()));
      return;
    }
    ProductRingEmitter::Gathered made = products.emitGather(block, locals);
    for (auto [product, result] : llvm::zip(ring.products, made.results)) {
      mapping.map(product.op->getResult(0), result);
    }
    if (made.whole) {
      mapping.map(ring.reshard->getResult(0), made.whole);
    }
  }

  /// Summands are added up, parts are put side by side.
  void lowerJoin(AccumulateOp join) {
    Value local = mapping.lookup(join.getOperand());
    int8_t entry = getRow(getOperandSharding(join->getOpOperand(0)), 1).front();
    Value whole;
    if (entry >= 0) {
      whole = CollectOp::create(builder, join.getLoc(), join.getType(), local,
                                number, entry);
    } else {
      whole = AccumulateOp::create(builder, join.getLoc(), local);
    }
    mapping.map(join.getResult(), whole);
  }

  LogicalResult lowerRegions(DataFlowOpInterface op) {
    SmallVector<Type> types = llvm::map_to_vector(
        op->getResults(), [&](Value result) { return getLocal(result); });
    Operation *local = op.cloneWithTypes(builder, getLocalOperands(op), types);
    if (failed(lowerBlocks(op, local))) {
      return failure();
    }
    if (needsNumber(local)) {
      local = handNumber(cast<DataFlowOpInterface>(local));
    }
    if (!local) {
      return op.emitOpError()
             << "'" << getReadableName(op)
             << "' cannot be handed the number of the micro-batch, by which "
                "its region takes a part of what is whole: use "
                "num_micro_batches=1, or a scan that is not associative";
    }
    mapping.map(op->getResults(),
                local->getResults().take_front(op->getNumResults()));
    return success();
  }

  LogicalResult lowerBlocks(Operation *op, Operation *local) {
    OpBuilder::InsertionGuard guard(builder);
    for (auto [from, to] : llvm::zip(op->getRegions(), local->getRegions())) {
      for (Block &block : from) {
        auto *localBlock = new Block();
        to.push_back(localBlock);
        addArguments(block, *localBlock);
        builder.setInsertionPointToEnd(localBlock);
        if (failed(lower(block))) {
          return failure();
        }
      }
    }
    return success();
  }

  /// Whether regions that see nothing around them ask for the micro-batch.
  bool needsNumber(Operation *local) {
    return isTime && local->hasTrait<OpTrait::IsIsolatedFromAbove>() &&
           llvm::any_of(number.getUsers(), [&](Operation *user) {
             return local->isProperAncestor(user);
           });
  }

  /// before: scan(%x) { (%a): slice of %a at %number }
  /// after:  scan(%x, %number) { (%a, %n): slice of %a at %n, which is returned
  /// }
  ///
  /// Null if the operator has no edge for it.
  Operation *handNumber(DataFlowOpInterface local) {
    Operation *handed = local.addDataFlowEdge(builder, number);
    if (!handed) {
      return nullptr;
    }
    DataFlowEdge edge =
        cast<DataFlowOpInterface>(handed).getDataFlowEdges().back();
    for (Value target : edge.targets) {
      if (!isa<BlockArgument>(target)) {
        continue;
      }
      number.replaceUsesWithIf(target, [&](OpOperand &use) {
        return target.getParentRegion()->isAncestor(
            use.getOwner()->getParentRegion());
      });
    }
    return handed;
  }

  /// The body as it is: it is a program of one device already.
  void lowerManual(ManualOp op) {
    Block &body = op.getBody().front();
    mapping.map(body.getArguments(), getLocalOperands(op));
    for (Operation &inner : body.without_terminator()) {
      builder.clone(inner, mapping);
    }
    for (auto [result, made] :
         llvm::zip(op.getResults(), body.getTerminator()->getOperands())) {
      mapping.map(result, mapping.lookup(made));
    }
  }

  LogicalResult lowerByRule(Operation *op, const ShardingRule &rule) {
    FactorRow factorRow = op->getAttrOfType<StrategyAttr>(kStrategyAttrName)
                              .getRow(mesh.getNumAxes());
    SmallVector<SmallVector<unsigned, 2>> factorAxes(rule.factors.size());
    SmallVector<int64_t> factorShards =
        getFactorShards(rule, factorRow, mesh.getSizes());
    for (auto [axis, factor] : llvm::enumerate(factorRow)) {
      if (factor >= 0) {
        factorAxes[factor].push_back(axis);
      }
    }
    SmallVector<Value> operands = getLocalOperands(op);
    SmallVector<Type> resultTypes;
    for (Value result : op->getResults()) {
      resultTypes.push_back(getLocal(result));
    }
    OperatorCollectives collectives(emitter, op->getLoc());
    LocalContext context(builder, rule, factorAxes, factorShards, operands,
                         resultTypes, collectives);
    FailureOr<SmallVector<Value>> results = localize(op, context);
    if (failed(results)) {
      return op->emitOpError() << "could not be written for one device";
    }
    if (results->size() != op->getNumResults()) {
      return op->emitOpError() << "was lowered to " << results->size()
                               << " results instead of " << op->getNumResults();
    }
    for (auto [result, local, type] :
         llvm::zip(op->getResults(), *results, resultTypes)) {
      Value combined = combine(rule, factorAxes, local, op->getLoc());
      // Micro-batches are no devices.
      if (isDeviceDependent(op) && !isTime) {
        combined = emitter.emitFirst(combined, op->getLoc());
      }
      if (combined.getType() != type) {
        return op->emitOpError() << "was lowered to " << combined.getType()
                                 << " instead of " << type;
      }
      mapping.map(result, combined);
    }
    return success();
  }

  /// Reductions other than sums are completed right behind their operator.
  Value combine(const ShardingRule &rule,
                ArrayRef<SmallVector<unsigned, 2>> factorAxes, Value local,
                Location loc) {
    for (ReductionKind kind :
         {ReductionKind::Product, ReductionKind::Max, ReductionKind::Min,
          ReductionKind::And, ReductionKind::Or}) {
      SmallVector<unsigned, 2> axes;
      for (auto [factor, axesOfFactor] : llvm::zip(rule.factors, factorAxes)) {
        if (factor.kind == FactorKind::Reduction && factor.reduction == kind) {
          axes.append(axesOfFactor);
        }
      }
      if (!axes.empty()) {
        llvm::sort(axes);
        local = emitter.emitCombination(local, axes, kind, loc);
      }
    }
    return local;
  }

  func::FuncOp entry;
  MeshAttr mesh;
  bool isTime;
  Value number;
  OpBuilder builder;
  ReshardPlanner planner;
  ProductRings rings;
  CollectiveEmitter emitter;
  IRMapping mapping;
  /// What is gathered beside products, before it is, by its first user.
  DenseMap<Operation *, SmallVector<std::pair<ReshardOp, Value>>> waiting;
};

struct LowerToSpmd : impl::LowerToSpmdBase<LowerToSpmd> {
  using LowerToSpmdBase::LowerToSpmdBase;

  void runOnOperation() override {
    ModuleOp module = getOperation();
    FailureOr<func::FuncOp> entry = getEntryFunction(module);
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> mesh = getPlannedMesh(module);
    if (failed(mesh)) {
      return signalPassFailure();
    }
    // What is relied on from here on.
    if (failed(
            verifyPlan(*entry, *mesh, {/*isResharded=*/true, microBatches})) ||
        failed(SpmdLowering(*entry, *mesh, microBatches).run())) {
      return signalPassFailure();
    }
    module->removeDiscardableAttr(kMeshAttrName);
  }
};

} // namespace
} // namespace mlir::alpa
