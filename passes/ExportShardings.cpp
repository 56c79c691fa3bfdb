//===- ExportShardings.cpp - The plan for XLA's partitioners --------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/PlanVerification.h"
#include "cpp/transforms/AttentionOutlining.h"
#include "dialects/stablehlo/ShardingRules/Convolution.h"
#include "dialects/stablehlo/ShardingRules/SelectAndScatter.h"
#include "passes/CallbackForm.h"
#include "passes/Passes.h"
#include "passes/PlanRemoval.h"
#include "passes/ShardingNotation.h"
#include "llvm/ADT/DenseMap.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_EXPORTSHARDINGS
#include "passes/Passes.h.inc"

namespace {

/// Replaces everything of the dialect by constraints.
class Exporter {
public:
  Exporter(func::FuncOp entry, const ShardingNotation &notation)
      : entry(entry), notation(notation), builder(entry.getContext()) {}

  LogicalResult run() {
    if (failed(exportBlock(entry.getBody().front()))) {
      return failure();
    }
    joinBarriers(entry.getBody().front());
    writePaddingOut();
    writeBatchGroupsOut();
    entry->getParentOfType<ModuleOp>().walk(removePlan);
    describeBoundary();
    return success();
  }

private:
  /// A sharding that can be asked for: partial sums cannot, and a scalar has
  /// only one.
  bool canConstrain(Value value, ShardingAttr sharding) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.getRank() > 0 && sharding && !sharding.hasPartial();
  }

  Value constrain(Value value, ShardingAttr sharding, Location loc) {
    Value made = notation.createConstraint(builder, loc, value, sharding);
    constrained[made] = sharding;
    return made;
  }

  LogicalResult exportBlock(Block &block) {
    SmallVector<Operation *> operators;
    for (Operation &op : block) {
      operators.push_back(&op);
    }
    builder.setInsertionPointToStart(&block);
    for (BlockArgument argument : block.getArguments()) {
      exportValue(argument, argument.getLoc());
    }
    for (Operation *op : operators) {
      if (failed(exportOperator(op))) {
        return failure();
      }
    }
    return success();
  }

  LogicalResult exportOperator(Operation *op) {
    if (isa<AccumulateOp>(op)) {
      return op->emitOpError()
             << "belongs to a stage of a pipeline, which has no form for XLA's "
                "partitioner";
    }
    if (isa<ManualOp>(op)) {
      return op->emitOpError()
             << "is split by hand (shard_map), which has no form for XLA's "
                "partitioner here: take backend \"alpa\"";
    }
    if (auto callback = dyn_cast<CallbackOp>(op)) {
      exportCallback(callback);
      return success();
    }
    if (isa<ReshardOp, ResolveOp, ConstrainOp>(op)) {
      forward(op);
      return success();
    }
    if (auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op);
        convolution && gatherWindows(convolution)) {
      return success();
    }
    for (Region &region : op->getRegions()) {
      for (Block &inner : region) {
        if (failed(exportBlock(inner))) {
          return failure();
        }
      }
    }
    // What takes nothing costs nothing to make in any sharding.
    if (op->getNumOperands() != 0) {
      builder.setInsertionPointAfter(op);
      for (Value result : op->getResults()) {
        exportValue(result, op->getLoc());
      }
    }
    return success();
  }

  /// A sharding that leaves dimensions whole over which a window moves.
  static ShardingAttr withoutWindows(ShardingAttr sharding,
                                     const TensorFactors &dims,
                                     const ShardingRule &rule) {
    SmallVector<int8_t> axes(sharding.getAxes());
    for (int8_t &dim : axes) {
      bool isWindowed =
          dim >= 0 && llvm::any_of(dims[dim], [&](unsigned factor) {
            return rule.factors[factor].isWindowed;
          });
      dim = isWindowed ? kReplicated : dim;
    }
    return getShardingAttr(sharding.getContext(), axes, sharding.getRank());
  }

  /// Where some axes of the mesh, and not all, split the image, XLA's
  /// partitioners compute other numbers for some windows, and add up the
  /// gradient of a kernel over the other axes as well (jaxlib 0.10.2). They are
  /// given all of the image, and what comes out is split behind. False if there
  /// is nothing to do.
  bool gatherWindows(stablehlo::ConvolutionOp op) {
    std::optional<ShardingRule> rule = getShardingRule(op);
    if (!rule) {
      return false;
    }
    builder.setInsertionPoint(op);
    for (OpOperand &operand : op->getOpOperands()) {
      ShardingAttr sharding = constrained.lookup(operand.get());
      if (!sharding) {
        continue;
      }
      ShardingAttr whole = withoutWindows(
          sharding, rule->operands[operand.getOperandNumber()], *rule);
      if (whole != sharding) {
        operand.set(constrain(operand.get(), whole, op.getLoc()));
      }
    }
    Value result = op.getResult();
    ShardingAttr sharding = getSharding(result);
    ShardingAttr whole =
        sharding ? withoutWindows(sharding, rule->results[0], *rule) : sharding;
    if (whole == sharding || !canConstrain(result, whole)) {
      return false;
    }
    builder.setInsertionPointAfter(op);
    for (ShardingAttr next : {whole, sharding}) {
      Value made = constrain(result, next, op.getLoc());
      result.replaceAllUsesExcept(made, made.getDefiningOp());
      result = made;
    }
    return true;
  }

  /// Nothing but our own lowering knows what such padding holds.
  void writePaddingOut() {
    entry.walk([&](stablehlo::SelectAndScatterOp op) {
      if (stablehlo::hasExplicitPadding(op)) {
        builder.setInsertionPoint(op);
        op->getResult(0).replaceAllUsesWith(
            stablehlo::writePaddingOut(builder, op));
        op->erase();
      }
    });
  }

  /// XLA's partitioners compute something else, or end the process, where
  /// groups of the batch are split (jaxlib 0.10.2); groups of features they
  /// know.
  void writeBatchGroupsOut() {
    entry.walk([&](stablehlo::ConvolutionOp op) {
      if (op.getBatchGroupCount() > 1) {
        builder.setInsertionPoint(op);
        op->replaceAllUsesWith(stablehlo::writeBatchGroupsOut(builder, op));
        op->erase();
      }
    });
  }

  /// XLA brings the operands to one device, and the results back.
  void exportCallback(CallbackOp callback) {
    builder.setInsertionPoint(callback);
    auto call = emitCallbackCall(builder, callback, callback->getOperands());
    callback->replaceAllUsesWith(call->getResults());
    callback->erase();
  }

  /// Everyone uses the value in the sharding that it is planned to have.
  void exportValue(Value value, Location loc) {
    ShardingAttr sharding = getSharding(value);
    if (!canConstrain(value, sharding)) {
      return;
    }
    Value made = constrain(value, sharding, loc);
    value.replaceAllUsesExcept(made, made.getDefiningOp());
  }

  /// The identity, in another sharding.
  void forward(Operation *op) {
    Value from = op->getOperand(0);
    ShardingAttr target = getSharding(op->getResult(0));
    Value to = from;
    if (canConstrain(from, target) && target != constrained.lookup(from)) {
      builder.setInsertionPoint(op);
      to = constrain(from, target, op->getLoc());
    }
    op->getResult(0).replaceAllUsesWith(to);
    op->erase();
  }

  void describeBoundary() {
    StringRef name = notation.getAttributeName();
    for (unsigned index = 0; index < entry.getNumArguments(); ++index) {
      auto sharding =
          entry.getArgAttrOfType<ShardingAttr>(index, kShardingAttrName);
      entry.removeArgAttr(index, kShardingAttrName);
      entry.removeArgAttr(index, kAliasAttrName);
      entry.removeArgAttr(index, kDonorAttrName);
      if (sharding) {
        entry.setArgAttr(index, name, notation.getAttribute(sharding));
      }
    }
    for (unsigned index = 0; index < entry.getNumResults(); ++index) {
      auto sharding =
          entry.getResultAttrOfType<ShardingAttr>(index, kShardingAttrName);
      entry.removeResultAttr(
          index, StringAttr::get(entry.getContext(), kShardingAttrName));
      if (sharding) {
        entry.setResultAttr(index, name, notation.getAttribute(sharding));
      }
    }
  }

  func::FuncOp entry;
  const ShardingNotation &notation;
  OpBuilder builder;
  /// Constraints that were made, and what they ask for.
  DenseMap<Value, ShardingAttr> constrained;
};

struct ExportShardings : impl::ExportShardingsBase<ExportShardings> {
  using ExportShardingsBase::ExportShardingsBase;

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
    std::unique_ptr<ShardingNotation> notation =
        ShardingNotation::get(form, *mesh);
    if (!notation) {
      module.emitError() << "option 'form' is '" << form
                         << "', must be shardy or gspmd";
      return signalPassFailure();
    }
    if (failed(verifyPlan(*entry, *mesh)) ||
        failed(Exporter(*entry, *notation).run())) {
      return signalPassFailure();
    }
    // Another partitioner knows nothing of it.
    inlineAttention(module);
    module->removeDiscardableAttr(kMeshAttrName);
  }
};

} // namespace
} // namespace mlir::alpa
