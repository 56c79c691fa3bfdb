//===- LayerMarking.cpp - Layers and phases of a train step ---------------===//

#include "cpp/transforms/LayerMarking.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/LayerScopes.h"
#include "cpp/transforms/Phases.h"
#include "cpp/transforms/SpreadValues.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/IR/IRMapping.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include <optional>

namespace mlir::alpa {

namespace {

class LayerMarking {
public:
  LayerMarking(func::FuncOp function, int64_t numMicroBatches)
      : function(function), block(function.getBody().front()),
        numMicroBatches(numMicroBatches) {}

  LogicalResult run() {
    for (BlockArgument argument : block.getArguments()) {
      unsigned index = argument.getArgNumber();
      if (function.getArgAttr(index, kBatchAttrName) ||
          function.getArgAttr(index, kMicroBatchAttrName)) {
        batchValues.insert(argument);
      }
    }
    addBatchValues();
    findComputed();
    if (failed(verifyJoinedLast())) {
      return failure();
    }
    findClosed();
    findFront();
    markComputed();
    copyForms();
    if (failed(markApplied())) {
      return failure();
    }
    function->setAttr(kMicroBatchesAttrName, getInteger(numMicroBatches));
    return success();
  }

private:
  IntegerAttr getInteger(int64_t value) {
    return IntegerAttr::get(IntegerType::get(function.getContext(), 64), value);
  }

  /// What goes through a barrier beside a value of one micro-batch, a parameter
  /// of a layer that is computed again, is none itself.
  void addBatchValues() {
    for (Operation &op : block) {
      if (isa<stablehlo::OptimizationBarrierOp>(op)) {
        for (auto [operand, result] :
             llvm::zip(op.getOperands(), op.getResults())) {
          if (batchValues.contains(operand)) {
            batchValues.insert(result);
          }
        }
        continue;
      }
      bool isOfBatch = false;
      forEachUsedValue(
          &op, [&](Value value) { isOfBatch |= batchValues.contains(value); });
      if (isOfBatch) {
        batchValues.insert(op.result_begin(), op.result_end());
      }
    }
  }

  /// What goes through a join is made once per micro-batch.
  void findComputed() {
    for (Operation &op : block) {
      if (isJoin(&op)) {
        joins.insert(&op);
        addAncestors(&op, computed);
      }
    }
  }

  /// Sums over the micro-batches are there when the last one is through: none
  /// is a part of one.
  LogicalResult verifyJoinedLast() {
    for (Operation &op : block) {
      Operation *join = nullptr;
      forEachUsedValue(&op, [&](Value value) {
        Operation *maker = value.getDefiningOp();
        join = maker && joins.contains(maker) ? maker : join;
      });
      if (!join || !computed.contains(&op)) {
        continue;
      }
      Operation *maker = join->getOperand(0).getDefiningOp();
      return op.emitOpError()
             << "'" << getReadableName(&op) << "' uses '"
             << getReadableName(maker ? maker : join)
             << "', which leaves the differentiated function, and gradients "
                "are taken again of what it makes: stablehlo_alpa.grad or "
                "value_and_grad stands once in a step, take the other "
                "gradients by jax or in a step of their own";
    }
    return success();
  }

  /// What depends on nothing from outside the function.
  void findClosed() {
    for (Operation &op : block) {
      bool isClosed = isClonable(&op);
      forEachUsedValue(&op, [&](Value value) {
        Operation *maker = value.getDefiningOp();
        isClosed &= maker && closed.contains(maker);
      });
      if (isClosed) {
        closed.insert(&op);
      }
    }
  }

  /// What the forward phase of some layer is made of.
  void findFront() {
    for (Operation &op : block) {
      std::string scope = getScope(op.getLoc());
      if (getScopeLayer(scope) && !isBackwardScope(scope)) {
        addAncestors(&op, front);
      }
    }
  }

  /// Gradients that are in no layer, and in front of some: by the batch, as
  /// adversarial examples are made.
  bool isInFront(Operation *op, StringRef scope) const {
    return !getScopeLayer(scope) && front.contains(op);
  }

  /// Forward layers ascend along the data, backward layers descend; what has no
  /// scope runs as early as it can.
  void markComputed() {
    DenseMap<Operation *, int64_t> layers;
    for (Operation &op : block) {
      if (!computed.contains(&op) || closed.contains(&op)) {
        continue;
      }
      std::string scope = getScope(op.getLoc());
      bool isBackward = isBackwardScope(scope) && !isInFront(&op, scope);
      std::optional<int64_t> lastForward, firstBackward;
      forEachUsedValue(&op, [&](Value value) {
        Operation *maker = value.getDefiningOp();
        auto it = maker ? layers.find(maker) : layers.end();
        if (it == layers.end()) {
          return;
        }
        if (getPhase(maker) == kBackwardPhase) {
          isBackward = true;
          firstBackward =
              std::min(it->second, firstBackward.value_or(it->second));
        } else {
          lastForward = std::max(it->second, lastForward.value_or(it->second));
        }
      });
      std::optional<int64_t> layer = getScopeLayer(scope);
      std::optional<int64_t> flow =
          isBackward && firstBackward ? firstBackward : lastForward;
      if (!layer) {
        layer = flow.value_or(0);
      } else if (isBackward && firstBackward) {
        layer = std::min(*layer, *firstBackward);
      } else if (!isBackward && lastForward) {
        layer = std::max(*layer, *lastForward);
      }
      layers[&op] = *layer;
      op.setAttr(kLayerAttrName, getInteger(*layer));
      setPhase(&op, isBackward ? kBackwardPhase : kForwardPhase);
    }
  }

  /// True if an operator gives an argument that is the same for all
  /// micro-batches another type or shape.
  bool isForm(Operation *op) const {
    while (isa_and_nonnull<stablehlo::ConvertOp, stablehlo::ReshapeOp,
                           stablehlo::TransposeOp>(op)) {
      auto argument = dyn_cast<BlockArgument>(op->getOperand(0));
      if (argument) {
        return argument.getOwner() == &block && !batchValues.contains(argument);
      }
      op = op->getOperand(0).getDefiningOp();
    }
    return false;
  }

  /// What is spread goes around barriers: behind them it is made again, too,
  /// and in front of them it would have to lie in memory.
  void passBarriers() {
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (!isa<stablehlo::OptimizationBarrierOp>(op)) {
        continue;
      }
      SmallVector<Value> operands, results;
      for (auto [operand, result] :
           llvm::zip_equal(op.getOperands(), op.getResults())) {
        if (spread.contains(operand)) {
          result.replaceAllUsesWith(operand);
        } else {
          operands.push_back(operand);
          results.push_back(result);
        }
      }
      if (operands.size() < op.getNumOperands()) {
        replaceBarrier(&op, operands, results);
      }
    }
  }

  /// \param results of the old barrier, one for each operand of the new one.
  void replaceBarrier(Operation *old, ValueRange operands, ValueRange results) {
    if (!operands.empty()) {
      OpBuilder builder(old);
      auto made = stablehlo::OptimizationBarrierOp::create(
          builder, old->getLoc(), operands.getTypes(), operands);
      made->setAttrs(old->getAttrs());
      computed.insert(made);
      for (auto [from, to] : llvm::zip_equal(results, made->getResults())) {
        if (batchValues.contains(from)) {
          batchValues.insert(to);
        }
        from.replaceAllUsesWith(to);
      }
    }
    computed.erase(old);
    old->erase();
  }

  /// Every layer makes the forms of arguments that it uses, in each phase, and
  /// what spreads numbers: a parameter in its narrow type would be sent from
  /// stage to stage, and be kept for every micro-batch that is between its
  /// phases. A layer that does nothing else keeps what it does.
  void copyForms() {
    llvm::DenseSet<int64_t> layers;
    SmallVector<Operation *> forms;
    spread = findSpreadValues(block);
    passBarriers();
    for (Operation &op : llvm::reverse(block)) {
      if (op.hasAttr(kLayerAttrName) &&
          (isForm(&op) ||
           (op.getNumResults() == 1 && spread.contains(op.getResult(0))))) {
        forms.push_back(&op);
      } else {
        layers.insert(getPlace(&op).first);
      }
    }
    for (Operation *form : forms) {
      if (layers.contains(getPlace(form).first)) {
        copyForm(form);
      }
    }
  }

  /// The layer and the phase of an operator.
  using Place = std::pair<int64_t, int64_t>;

  static Place getPlace(Operation *op) {
    auto layer = op->getAttrOfType<IntegerAttr>(kLayerAttrName);
    return {layer ? layer.getInt() : -1, getPhase(op)};
  }

  /// Right before the first operator of each place that uses it.
  void copyForm(Operation *form) {
    llvm::MapVector<Place, SmallVector<OpOperand *>> uses;
    for (OpOperand &use : form->getUses()) {
      Place place = getPlace(block.findAncestorOpInBlock(*use.getOwner()));
      if (place.second >= 0 && place != getPlace(form)) {
        uses[place].push_back(&use);
      }
    }
    for (auto &[place, own] : uses) {
      Operation *first = nullptr;
      for (OpOperand *use : own) {
        Operation *user = block.findAncestorOpInBlock(*use->getOwner());
        first = !first || user->isBeforeInBlock(first) ? user : first;
      }
      OpBuilder builder(first);
      Operation *made = builder.clone(*form);
      made->setAttr(kLayerAttrName, getInteger(place.first));
      setPhase(made, place.second);
      computed.insert(made);
      for (OpOperand *use : own) {
        use->set(made->getResult(0));
      }
    }
    if (form->use_empty()) {
      computed.erase(form);
      form->erase();
    }
  }

  /// A join belongs where its value is made.
  void markJoin(Operation *join) {
    Operation *maker = join->getOperand(0).getDefiningOp();
    if (!maker || getPhase(maker) < 0) {
      join->setAttr(kLayerAttrName, getInteger(0));
      setPhase(join, kForwardPhase);
      return;
    }
    join->setAttr(kLayerAttrName, maker->getAttr(kLayerAttrName));
    setPhase(join, getPhase(maker));
  }

  /// Everything else runs once per step. What it uses of the micro-batches'
  /// work, other than sums, is made again, or handed on where it may differ
  /// from time to time; nothing of it may be of one micro-batch.
  LogicalResult markApplied() {
    DenseMap<Value, Value> again;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (joins.contains(&op)) {
        markJoin(&op);
        continue;
      }
      if (computed.contains(&op)) {
        continue;
      }
      if (numMicroBatches > 1 && failed(verifyWholeBatch(&op))) {
        return failure();
      }
      if (!closed.contains(&op) && !op.hasTrait<OpTrait::IsTerminator>()) {
        setPhase(&op, kApplyPhase);
      }
      op.walk([&](Operation *inner) {
        for (OpOperand &operand : inner->getOpOperands()) {
          Operation *maker = operand.get().getDefiningOp();
          if (maker && computed.contains(maker) && !closed.contains(maker)) {
            operand.set(makeAgain(operand.get(), &op, again));
          }
        }
      });
    }
    return success();
  }

  LogicalResult verifyWholeBatch(Operation *op) {
    LogicalResult result = success();
    forEachUsedValue(op, [&](Value value) {
      if (failed(result) || !batchValues.contains(value)) {
        return;
      }
      Operation *maker = value.getDefiningOp();
      if (maker && (joins.contains(maker) || !computed.contains(maker))) {
        return;
      }
      std::string what = maker ? "'" + getReadableName(maker) + "'"
                               : getReadableName(cast<BlockArgument>(value));
      result = op->emitOpError() << "runs once per step and uses " << what
                                 << ", which is of one of " << numMicroBatches
                                 << " micro-batches: it has to be joined first";
    });
    return result;
  }

  Value makeAgain(Value value, Operation *user, DenseMap<Value, Value> &again) {
    Operation *maker = value.getDefiningOp();
    if (!maker || !computed.contains(maker) || closed.contains(maker)) {
      return value;
    }
    if (Value made = again.lookup(value)) {
      return made;
    }
    // Made again, numbers that are drawn would be others.
    if (!isClonable(maker)) {
      return value;
    }
    // It waits for nothing of the micro-batches.
    if (isa<stablehlo::OptimizationBarrierOp>(maker)) {
      unsigned position = cast<OpResult>(value).getResultNumber();
      return makeAgain(maker->getOperand(position), user, again);
    }
    OpBuilder builder(user);
    IRMapping mapping;
    forEachUsedValue(maker, [&](Value used) {
      mapping.map(used, makeAgain(used, user, again));
    });
    Operation *copy = builder.clone(*maker, mapping);
    copy->removeAttr(kLayerAttrName);
    setPhase(copy, kApplyPhase);
    for (auto [old, made] :
         llvm::zip(maker->getResults(), copy->getResults())) {
      again[old] = made;
    }
    return again.lookup(value);
  }

  func::FuncOp function;
  Block &block;
  int64_t numMicroBatches;
  /// Operators that joined values are made from.
  llvm::DenseSet<Operation *> computed;
  /// Operators that depend on constants alone.
  llvm::DenseSet<Operation *> closed;
  /// Operators that forward layers are made from.
  llvm::DenseSet<Operation *> front;
  /// See SpreadValues.h.
  llvm::DenseSet<Value> spread;
  /// Operators through which values leave the micro-batches.
  llvm::DenseSet<Operation *> joins;
  /// Values that differ from micro-batch to micro-batch.
  llvm::DenseSet<Value> batchValues;
};

} // namespace

LogicalResult markLayers(func::FuncOp function, int64_t numMicroBatches) {
  return LayerMarking(function, numMicroBatches).run();
}

} // namespace mlir::alpa
