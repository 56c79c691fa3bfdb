//===- SplitStacks.cpp - Stacks of layers in parts ------------------------===//

#include "cpp/transforms/StackSplitting.h"

#include "cpp/analysis/Entry.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_SPLITSTACKS
#include "passes/Passes.h.inc"

namespace {

struct SplitStacks : impl::SplitStacksBase<SplitStacks> {
  using SplitStacksBase::SplitStacksBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    DenseMap<unsigned, unsigned> results;
    for (StringRef pair : aliases) {
      auto [argument, result] = pair.split(':');
      unsigned from = 0, to = 0;
      if (argument.getAsInteger(10, from) || result.getAsInteger(10, to) ||
          from >= entry->getNumArguments() || to >= entry->getNumResults()) {
        entry->emitOpError()
            << "alias '" << pair << "' names no argument and result of the "
            << entry->getNumArguments() << " and " << entry->getNumResults();
        return signalPassFailure();
      }
      results[from] = to;
    }
    llvm::DenseSet<unsigned> fixed;
    for (int64_t argument : whole) {
      fixed.insert(argument);
    }
    splitStacks(*entry, fixed, results);
  }
};

} // namespace
} // namespace mlir::alpa
