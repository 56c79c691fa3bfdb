//===- LoopSecondPass.cpp - A second way through the batch as a loop ------===//

#include "cpp/analysis/Entry.h"
#include "cpp/transforms/InnerStep.h"
#include "cpp/transforms/MicroBatchChoice.h"
#include "cpp/transforms/SecondPass.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_LOOPSECONDPASS
#include "passes/Passes.h.inc"

namespace {

struct LoopSecondPass : impl::LoopSecondPassBase<LoopSecondPass> {
  using LoopSecondPassBase::LoopSecondPassBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    if (microBatches <= 1) {
      return;
    }
    MicroBatchOptions options;
    options.numMicroBatches = microBatches;
    options.batch.assign(batch.begin(), batch.end());
    for (RefusedBatch by :
         {RefusedBatch::kMostArguments, RefusedBatch::kMostWork}) {
      if (failed(cutRegions(*entry, options, by))) {
        return signalPassFailure();
      }
    }
    SmallVector<std::unique_ptr<MicroBatchStates>> firsts;
    for (RefusedBatch by :
         {RefusedBatch::kMostArguments, RefusedBatch::kMostWork}) {
      if (auto states = MicroBatchChoice(*entry, options).findSecondPass(by)) {
        firsts.push_back(std::move(states));
      }
    }
    for (const auto &first : firsts) {
      bool isLast = first == firsts.back();
      if (runBehindGradients(*entry, *first, options, isLast)) {
        return;
      }
    }
    if (!firsts.empty()) {
      return signalPassFailure();
    }
    if (!mayMeet(*entry)) {
      return;
    }
    // Terms of a loss that take arguments of their own are refused one by one:
    // what is refused last has the most work, and leaves the others whole.
    for (RefusedBatch by :
         {RefusedBatch::kMostArguments, RefusedBatch::kMostWork}) {
      auto states = MicroBatchChoice(*entry, options).findRefused(by);
      if (states && runBehindMeeting(*entry, *states, options)) {
        return;
      }
    }
  }

  /// Loops and branches that cannot be cut so stay as they are.
  LogicalResult cutRegions(func::FuncOp entry, const MicroBatchOptions &options,
                           RefusedBatch by) {
    auto states = MicroBatchChoice(entry, options).findRefused(by);
    if (!states) {
      return success();
    }
    bool isAny = false;
    for (Operation &op : llvm::make_early_inc_range(entry.getBody().front())) {
      SmallVector<Region *> regions = getInnerSteps(&op, *states);
      // Branches that use nothing of the batch stay, beside others.
      llvm::erase_if(regions, [&](Region *region) {
        return InnerStep(region->front(), *states).isOfNoBatch();
      });
      bool isCut = llvm::all_of(regions, [&](Region *region) {
        return succeeded(cutRegion(region->front(), *states));
      });
      if (regions.empty() || !isCut) {
        continue;
      }
      isAny = true;
      op.setAttr(kOnceAttrName, UnitAttr::get(&getContext()));
      emitRemark(op.getLoc())
          << "goes through the batch by itself: its " << microBatches.getValue()
          << " micro-batches are a loop inside of it";
    }
    return isAny ? clean() : success();
  }

  LogicalResult cutRegion(Block &body, const MicroBatchStates &states) {
    InnerStep step(body, states);
    if (step.getBatch().empty()) {
      return failure();
    }
    ScopedDiagnosticHandler quiet(&getContext(),
                                  [](Diagnostic &) { return success(); });
    MicroBatchOptions options;
    options.numMicroBatches = microBatches;
    options.batch.assign(step.getBatch().begin(), step.getBatch().end());
    ModuleOp module = step.outline();
    LogicalResult done = cut(module, options);
    if (succeeded(done)) {
      done = step.embed(module);
    }
    module.erase();
    return done;
  }

  LogicalResult clean() {
    OpPassManager clean(ModuleOp::getOperationName());
    clean.addPass(createCanonicalizerPass());
    clean.addPass(createCSEPass());
    return runPipeline(clean, getOperation());
  }

  /// False, and says why if that is the last try, if it cannot be cut.
  bool runBehindGradients(func::FuncOp entry, const MicroBatchStates &states,
                          MicroBatchOptions options, bool isLast) {
    std::optional<SecondPass> second;
    ModuleOp module;
    for (KeptExamples kept : {KeptExamples::kNone, KeptExamples::kAll}) {
      if (module) {
        module.erase();
      }
      second.emplace(entry, states, kept);
      if (kept == KeptExamples::kNone && second->isOfNoBatch()) {
        runWhole(*second, entry);
        return true;
      }
      module = second->outline();
      if (choose(*second, module, options)) {
        put(*second, module, options,
            "gradients are taken at what the first ones of the step have made: "
            "behind these");
        return true;
      }
    }
    if (isLast) {
      refuse(states, module, options);
    } else {
      module.erase();
    }
    return false;
  }

  /// What is the same for all micro-batches and made in parts, as parts are all
  /// that is used of it.
  static llvm::DenseSet<Operation *>
  getMadeInParts(Block &block, const MicroBatchStates &states) {
    llvm::DenseSet<Operation *> made;
    auto takesPart = [&](OpOperand &use) {
      Operation *user = use.getOwner();
      const TimeRows *rows = states.getRows(user);
      return rows ? rows->operands[use.getOperandNumber()] >= 0
                  : made.contains(user);
    };
    for (Operation &op : llvm::reverse(block.without_terminator())) {
      if (op.getNumResults() == 1 && !states.isAfter(&op) &&
          !states.getRows(&op) && llvm::all_of(op.getUses(), takesPart) &&
          states.getRowsFor(op.getResult(0), /*entry=*/0)) {
        made.insert(&op);
      }
    }
    return made;
  }

  /// False if most products are those of all examples, behind the place where
  /// they meet: layers that follow one that normalises over the batch.
  static bool isMostlyDivided(func::FuncOp function,
                              const MicroBatchStates &states) {
    Block &block = function.getBody().front();
    llvm::DenseSet<Operation *> made = getMadeInParts(block, states);
    double whole = 0, divided = 0;
    for (Operation &op : block) {
      if (!states.isAfter(&op) && !states.getRows(&op)) {
        (made.contains(&op) ? divided : whole) += getProductFlops(&op);
      }
    }
    return whole <= divided + states.getSplitFlops() + states.getSummandFlops();
  }

  /// False if it cannot be cut so either: it is refused as it is.
  bool runBehindMeeting(func::FuncOp entry, const MicroBatchStates &first,
                        MicroBatchOptions options) {
    for (KeptExamples kept : {KeptExamples::kMeeting, KeptExamples::kLoss}) {
      SecondPass second(entry, first, kept);
      options.batch.assign(second.getBatch().begin(), second.getBatch().end());
      options.batch.truncate(second.getNumInputBatches());
      if (options.batch.empty()) {
        continue;
      }
      ModuleOp module = second.outline();
      FailureOr<func::FuncOp> function = getEntryFunction(module);
      if (failed(function)) {
        signalPassFailure();
        return true;
      }
      std::unique_ptr<MicroBatchStates> states =
          MicroBatchChoice(*function, options).find();
      if (states && isMostlyDivided(*function, *states)) {
        put(second, module, options,
            "examples meet each other in the loss, which is taken of all of "
            "them: for its gradients");
        return true;
      }
      module.erase();
    }
    return false;
  }

  /// Puts the loop in its place, and says why it is there.
  void put(SecondPass &second, ModuleOp module,
           const MicroBatchOptions &options, StringRef why) {
    Location loc = module.getLoc();
    if (failed(cut(module, options)) || failed(second.embed(module))) {
      return signalPassFailure();
    }
    module.erase();
    emitRemark(loc) << why << ", the " << microBatches.getValue()
                    << " micro-batches are gone through once more, in a loop";
    if (failed(clean())) {
      signalPassFailure();
    }
  }

  void runWhole(SecondPass &second, func::FuncOp entry) {
    second.runWhole();
    emitRemark(entry->getLoc())
        << "gradients behind the first ones use nothing of the batch: they are "
           "taken once per step, and not by "
        << microBatches.getValue() << " micro-batches";
  }

  /// Whether the second pass can be cut, and its batch.
  bool choose(SecondPass &second, ModuleOp module, MicroBatchOptions &options) {
    FailureOr<func::FuncOp> function = getEntryFunction(module);
    if (failed(function)) {
      return false;
    }
    ArrayRef<int64_t> all = second.getBatch();
    // What the first pass makes per example may be needed as a whole.
    for (ArrayRef<int64_t> each :
         {all, all.take_front(second.getNumInputBatches())}) {
      options.batch.assign(each.begin(), each.end());
      if (each.empty()) {
        continue;
      }
      if (MicroBatchChoice(*function, options).find()) {
        return true;
      }
      // The third has to be shorter than the second.
      std::unique_ptr<MicroBatchStates> next =
          MicroBatchChoice(*function, options).findSecondPass();
      if (next &&
          SecondPass(*function, *next, KeptExamples::kNone).getNumOperators() <
              second.getNumOperators()) {
        return true;
      }
    }
    return false;
  }

  /// Says why the second pass cannot be cut, or that there has to be one if it
  /// has no batch.
  void refuse(const MicroBatchStates &states, ModuleOp module,
              const MicroBatchOptions &options) {
    FailureOr<func::FuncOp> function = getEntryFunction(module);
    if (failed(function)) {
      return;
    }
    if (options.batch.empty() ||
        succeeded(MicroBatchChoice(*function, options).run())) {
      (void)refuseMicroBatches(states);
    }
  }

  /// Makes the function that of one micro-batch, as that of the step is made.
  LogicalResult cut(ModuleOp module, const MicroBatchOptions &options) {
    // What is remarked on is how the step is cut.
    ScopedDiagnosticHandler quiet(&getContext(), [](Diagnostic &diagnostic) {
      return success(diagnostic.getSeverity() == DiagnosticSeverity::Remark);
    });
    OpPassManager manager(ModuleOp::getOperationName());
    addMicroBatches(manager, microBatches, options.batch);
    if (failed(runPipeline(manager, module))) {
      return failure();
    }
    // Parts of barriers are one barrier by now, and numbers are the step's.
    module.walk(
        [](Operation *op) { op->removeDiscardableAttr(kBarrierAttrName); });
    return success();
  }
};

} // namespace
} // namespace mlir::alpa
