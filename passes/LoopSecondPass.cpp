//===- LoopSecondPass.cpp - A second way through the batch as a loop ------===//

#include "cpp/analysis/Entry.h"
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
    if (microBatches <= 1 || !mayHaveSecondPass(*entry)) {
      return;
    }
    MicroBatchOptions options;
    options.numMicroBatches = microBatches;
    options.batch.assign(batch.begin(), batch.end());
    std::unique_ptr<MicroBatchStates> states =
        MicroBatchChoice(*entry, options).findSecondPass();
    if (!states) {
      return;
    }
    std::optional<SecondPass> second;
    ModuleOp module;
    bool canCut = false;
    for (bool keepsExamples : {false, true}) {
      second.emplace(*entry, *states, keepsExamples);
      if (second->isOfNoBatch()) {
        return runWhole(*second, *entry);
      }
      module = second->outline();
      canCut = choose(*second, module, options);
      if (canCut) {
        break;
      }
      if (!keepsExamples) {
        module.erase();
      }
    }
    if (!canCut) {
      return refuse(module, options);
    }
    if (failed(cut(module, options)) || failed(second->embed(module))) {
      return signalPassFailure();
    }
    module.erase();
    emitRemark(entry->getLoc())
        << "gradients are taken at what the first ones of the step have made: "
           "behind these, the "
        << microBatches.getValue()
        << " micro-batches are gone through once more, in a loop";
    OpPassManager clean(ModuleOp::getOperationName());
    clean.addPass(createCanonicalizerPass());
    clean.addPass(createCSEPass());
    if (failed(runPipeline(clean, getOperation()))) {
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
      if (MicroBatchChoice(*function, options).canCut()) {
        return true;
      }
      // The third has to be shorter than the second.
      std::unique_ptr<MicroBatchStates> next =
          MicroBatchChoice(*function, options).findSecondPass();
      if (next && SecondPass(*function, *next, /*keepsExamples=*/false)
                          .getNumOperators() < second.getNumOperators()) {
        return true;
      }
    }
    return false;
  }

  /// Says why the second pass cannot be cut.
  void refuse(ModuleOp module, const MicroBatchOptions &options) {
    FailureOr<func::FuncOp> function = getEntryFunction(module);
    if (succeeded(function) &&
        succeeded(MicroBatchChoice(*function, options).run())) {
      function->emitOpError() << "cannot be cut into micro-batches";
    }
    signalPassFailure();
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
