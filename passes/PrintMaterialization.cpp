//===- PrintMaterialization.cpp - What lies in memory, as remarks ---------===//
//
// For tests and for people who wonder what a prediction of memory is made of.
//
//===----------------------------------------------------------------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/Schedule.h"
#include "dialects/alpa/DataFlow.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_PRINTMATERIALIZATION
#include "passes/Passes.h.inc"

namespace {

struct PrintMaterialization
    : impl::PrintMaterializationBase<PrintMaterialization> {
  using PrintMaterializationBase::PrintMaterializationBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    auto isDonated = [&](BlockArgument argument) {
      return llvm::is_contained(donated,
                                static_cast<int64_t>(argument.getArgNumber()));
    };
    Materialization memory(*entry, isDonated,
                           {.overlaps = hasCollectives(*entry),
                            .isLocal = true,
                            .splitsSums = splitsSums(platform),
                            .backend = getBackend(platform)});
    for (const StoredValue &stored : memory.getStoredValues()) {
      auto argument = dyn_cast<BlockArgument>(stored.value);
      InFlightDiagnostic remark =
          argument ? entry->emitRemark()
                   : stored.value.getDefiningOp()->emitRemark();
      remark << getPrefix(stored.form);
      if (argument) {
        remark << "argument " << argument.getArgNumber();
      } else {
        remark << "result " << cast<OpResult>(stored.value).getResultNumber();
      }
      remark << " lives from " << stored.start << " to " << stored.end;
      if (stored.ratio != 1) {
        remark << ", " << static_cast<int64_t>(stored.ratio * 100)
               << " % of its bytes";
      }
    }
    entry->walk([&](Operation *op) { printTraffic(op, memory); });
  }

  static StringRef getPrefix(StoredForm form) {
    switch (form) {
    case StoredForm::Value:
      return "";
    case StoredForm::Scratch:
      return "scratch of ";
    case StoredForm::Copy:
      return "copy of ";
    case StoredForm::Place:
      return "place of ";
    }
    llvm_unreachable("not a form");
  }

  static void printTraffic(Operation *op, const Materialization &memory) {
    if (op->hasTrait<OpTrait::IsTerminator>() || isa<DataFlowOpInterface>(op)) {
      return;
    }
    double read = 0, written = 0;
    for (OpOperand &operand : op->getOpOperands()) {
      read += memory.getReadBytes(operand);
    }
    for (OpResult result : op->getResults()) {
      written += memory.getWrittenBytes(result);
    }
    if (read > 0 || written > 0) {
      op->emitRemark() << "reads " << static_cast<int64_t>(read)
                       << " bytes, writes " << static_cast<int64_t>(written)
                       << ", at point " << memory.getPoint(op);
    }
  }
};

} // namespace
} // namespace mlir::alpa
