//===- LayerMarking.cpp - Layers and phases of a train step ---------------===//

#include "cpp/analysis/LayerMarking.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/IR/IRMapping.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/DenseSet.h"
#include <optional>

namespace mlir::alpa {

namespace {

/// Scopes that the front end opens.
constexpr StringLiteral kGradientScope = "alpa_gradients";
constexpr StringLiteral kLayerScope = "alpa_layer_";
/// JAX's name for what reverse-mode differentiation makes.
constexpr StringLiteral kTransposeScope = "transpose(";

/// The number behind the first `alpa_layer_` of a scope.
std::optional<int64_t> getScopeLayer(StringRef scope) {
  size_t start = scope.find(kLayerScope);
  if (start == StringRef::npos) {
    return std::nullopt;
  }
  StringRef digits =
      scope.substr(start + kLayerScope.size()).take_while([](char c) {
        return c >= '0' && c <= '9';
      });
  int64_t layer = 0;
  if (digits.getAsInteger(10, layer)) {
    return std::nullopt;
  }
  return layer;
}

class LayerMarking {
public:
  LayerMarking(func::FuncOp function, int64_t numMicroBatches)
      : function(function), block(function.getBody().front()),
        numMicroBatches(numMicroBatches) {}

  LogicalResult run(ArrayRef<int64_t> batch) {
    for (int64_t argument : batch) {
      if (argument < 0 || argument >= function.getNumArguments()) {
        return function.emitOpError()
               << "batch argument " << argument << " is none of the "
               << function.getNumArguments();
      }
      batchValues.insert(block.getArgument(argument));
      function.setArgAttr(argument, kBatchAttrName,
                          UnitAttr::get(function.getContext()));
    }
    FailureOr<stablehlo::OptimizationBarrierOp> barrier = findBarrier();
    if (failed(barrier)) {
      return failure();
    }
    findComputed(*barrier);
    addDependents(block, batchValues);
    findClosed();
    markComputed();
    if (failed(replaceBarrier(*barrier))) {
      return failure();
    }
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

  FailureOr<stablehlo::OptimizationBarrierOp> findBarrier() {
    stablehlo::OptimizationBarrierOp found;
    for (auto barrier : block.getOps<stablehlo::OptimizationBarrierOp>()) {
      if (!StringRef(getScope(barrier.getLoc())).contains(kGradientScope)) {
        continue;
      }
      if (found) {
        return barrier.emitOpError()
               << "a second set of gradients: a step to be cut into stages "
                  "calls stablehlo_alpa.grad or value_and_grad once";
      }
      found = barrier;
    }
    if (!found) {
      return function.emitOpError()
             << "has no gradients that a pipeline can see: use "
                "stablehlo_alpa.grad or value_and_grad instead of jax's";
    }
    return found;
  }

  /// What the gradients are made from runs once per micro-batch.
  void findComputed(Operation *barrier) {
    SmallVector<Operation *> work = {barrier};
    while (!work.empty()) {
      forEachUsedValue(work.pop_back_val(), [&](Value value) {
        Operation *maker = value.getDefiningOp();
        if (maker && computed.insert(maker).second) {
          work.push_back(maker);
        }
      });
    }
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

  /// Forward layers ascend along the data, backward layers descend; what has no
  /// scope runs as early as it can.
  void markComputed() {
    DenseMap<Operation *, int64_t> layers;
    for (Operation &op : block) {
      if (!computed.contains(&op) || closed.contains(&op)) {
        continue;
      }
      std::string scope = getScope(op.getLoc());
      bool isBackward = StringRef(scope).contains(kTransposeScope);
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

  /// before: %2:2 = optimization_barrier %loss, %gradient
  /// after:  %2 = alpa.accumulate %gradient
  ///         %3 = multiply %2, 1 / micro-batches
  LogicalResult replaceBarrier(stablehlo::OptimizationBarrierOp barrier) {
    OpBuilder builder(barrier);
    for (auto [index, operand, result] :
         llvm::enumerate(barrier.getOperands(), barrier.getResults())) {
      if (result.use_empty()) {
        continue;
      }
      auto type = dyn_cast<RankedTensorType>(operand.getType());
      if (!batchValues.contains(operand) || !type) {
        result.replaceAllUsesWith(operand);
        continue;
      }
      if (!isa<FloatType, ComplexType>(type.getElementType())) {
        if (numMicroBatches == 1) {
          result.replaceAllUsesWith(operand);
          continue;
        }
        return barrier.emitOpError()
               << "value " << index << " that leaves the differentiated "
               << "function has type " << type << ", which has no mean over "
               << numMicroBatches
               << " micro-batches: return a floating-point number";
      }
      auto sum = AccumulateOp::create(builder, operand.getLoc(), type, operand);
      Operation *maker = operand.getDefiningOp();
      for (StringRef name :
           {StringRef(kLayerAttrName), StringRef(kPhaseAttrName)}) {
        if (Attribute value = maker ? maker->getAttr(name) : Attribute()) {
          sum->setAttr(name, value);
        }
      }
      if (getPhase(sum) < 0) {
        sum->setAttr(kLayerAttrName, getInteger(0));
        setPhase(sum, kForwardPhase);
      }
      accumulated.insert(sum);
      result.replaceAllUsesWith(getMean(builder, sum.getResult()));
    }
    barrier.erase();
    return success();
  }

  Value getMean(OpBuilder &builder, Value sum) {
    if (numMicroBatches == 1) {
      return sum;
    }
    auto type = cast<RankedTensorType>(sum.getType());
    auto count = static_cast<double>(numMicroBatches);
    DenseElementsAttr value;
    if (auto complex = dyn_cast<ComplexType>(type.getElementType())) {
      Type real = complex.getElementType();
      std::complex<llvm::APFloat> number(FloatAttr::get(real, count).getValue(),
                                         FloatAttr::get(real, 0).getValue());
      value = DenseElementsAttr::get(type, ArrayRef(number));
    } else {
      value = DenseElementsAttr::get(
          type, FloatAttr::get(type.getElementType(), count).getValue());
    }
    auto constant = stablehlo::ConstantOp::create(builder, sum.getLoc(), value);
    return stablehlo::DivOp::create(builder, sum.getLoc(), sum, constant);
  }

  /// Everything else runs once per step. What it uses of the micro-batches'
  /// work, other than sums, is made again; nothing of it may be of one
  /// micro-batch.
  LogicalResult markApplied() {
    DenseMap<Value, Value> again;
    for (Operation &op : llvm::make_early_inc_range(block)) {
      bool isComputed = computed.contains(&op) || accumulated.contains(&op);
      if (isComputed) {
        continue;
      }
      if (numMicroBatches > 1 && failed(verifyWholeBatch(&op))) {
        return failure();
      }
      if (!closed.contains(&op) && !op.hasTrait<OpTrait::IsTerminator>()) {
        setPhase(&op, kApplyPhase);
      }
      for (OpOperand &operand : op.getOpOperands()) {
        Operation *maker = operand.get().getDefiningOp();
        if (maker && computed.contains(maker) && !closed.contains(maker) &&
            !batchValues.contains(operand.get())) {
          operand.set(makeAgain(operand.get(), &op, again));
        }
      }
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
      if (maker && (accumulated.contains(maker) || !computed.contains(maker))) {
        return;
      }
      std::string what = maker ? "'" + getReadableName(maker) + "'"
                               : getReadableName(cast<BlockArgument>(value));
      result = op->emitOpError()
               << "runs once per step and uses " << what
               << ", which is of one of " << numMicroBatches
               << " micro-batches: only what the differentiated function "
                  "returns (value, auxiliary output, gradients) is averaged "
                  "over them";
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
  /// Operators that the gradients are made from.
  llvm::DenseSet<Operation *> computed;
  /// Operators that depend on constants alone.
  llvm::DenseSet<Operation *> closed;
  llvm::DenseSet<Operation *> accumulated;
  /// Values that differ from micro-batch to micro-batch.
  llvm::DenseSet<Value> batchValues;
};

} // namespace

LogicalResult markLayers(func::FuncOp function, ArrayRef<int64_t> batch,
                         int64_t numMicroBatches) {
  return LayerMarking(function, numMicroBatches).run(batch);
}

} // namespace mlir::alpa
