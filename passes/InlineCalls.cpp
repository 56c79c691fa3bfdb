//===- InlineCalls.cpp - Bodies of called functions -----------------------===//

#include "cpp/transforms/Inlining.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_INLINECALLS
#include "passes/Passes.h.inc"

namespace {

/// Public functions that operators name, such as the comparator that JAX gives
/// to `ApproxTopK`, are none to plan, be the operator left out later or not.
void hideNamed(ModuleOp module) {
  auto isDefined = [](func::FuncOp function) {
    return function.isPublic() && !function.isExternal();
  };
  SmallVector<func::FuncOp> functions = llvm::to_vector(
      llvm::make_filter_range(module.getOps<func::FuncOp>(), isDefined));
  if (functions.size() < 2) {
    return;
  }
  for (func::FuncOp function : functions) {
    if (!SymbolTable::symbolKnownUseEmpty(function, module)) {
      function.setPrivate();
    }
  }
}

struct InlineCalls : impl::InlineCallsBase<InlineCalls> {
  using InlineCallsBase::InlineCallsBase;

  void runOnOperation() override {
    hideNamed(getOperation());
    FailureOr<int64_t> numVisits = inlineCalls(getOperation());
    if (failed(numVisits)) {
      signalPassFailure();
      return;
    }
    if (report) {
      getOperation().emitRemark()
          << "inlining read, moved or copied " << *numVisits << " operators";
    }
  }
};

} // namespace
} // namespace mlir::alpa
