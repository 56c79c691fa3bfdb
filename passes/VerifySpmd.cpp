//===- VerifySpmd.cpp - Proves that nothing of the dialect is left --------===//

#include "mlir/Interfaces/FunctionInterfaces.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_VERIFYSPMD
#include "passes/Passes.h.inc"

namespace {

struct VerifySpmd : impl::VerifySpmdBase<VerifySpmd> {
  void runOnOperation() override {
    WalkResult result = getOperation().walk([&](Operation *op) {
      if (isa_and_nonnull<AlpaDialect>(op->getDialect())) {
        op->emitOpError() << "is left after lowering";
        return WalkResult::interrupt();
      }
      if (failed(verifyAttributes(op, op->getDiscardableAttrs()))) {
        return WalkResult::interrupt();
      }
      if (auto function = dyn_cast<FunctionOpInterface>(op)) {
        for (unsigned index = 0; index < function.getNumArguments(); ++index) {
          if (failed(verifyAttributes(op, function.getArgAttrs(index)))) {
            return WalkResult::interrupt();
          }
        }
        for (unsigned index = 0; index < function.getNumResults(); ++index) {
          if (failed(verifyAttributes(op, function.getResultAttrs(index)))) {
            return WalkResult::interrupt();
          }
        }
      }
      return WalkResult::advance();
    });
    if (result.wasInterrupted()) {
      signalPassFailure();
    }
  }

  template <typename Attributes>
  LogicalResult verifyAttributes(Operation *op, Attributes &&attributes) {
    for (NamedAttribute attribute : attributes) {
      if (attribute.getName().getValue().starts_with("alpa.")) {
        return op->emitOpError()
               << "attribute '" << attribute.getName().getValue()
               << "' is left after lowering";
      }
    }
    return success();
  }
};

} // namespace
} // namespace mlir::alpa
