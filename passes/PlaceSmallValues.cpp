//===- PlaceSmallValues.cpp - Strategies of what has few elements ---------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/OperatorRoles.h"
#include "dialects/alpa/Alpa.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_PLACESMALLVALUES
#include "passes/Passes.h.inc"

namespace {

LogicalResult verify(func::FuncOp entry, ArrayRef<int64_t> numbers,
                     int64_t count, StringRef kind) {
  for (int64_t number : numbers) {
    if (number < 0 || number >= count) {
      return entry.emitOpError() << "has " << count << " " << kind
                                 << "s, none has the number " << number;
    }
  }
  return success();
}

/// What reads a small value takes all of it.
void placeArgument(func::FuncOp entry, int64_t number) {
  BlockArgument argument = entry.getArgument(number);
  auto builder = OpBuilder::atBlockBegin(&entry.getBody().front());
  entry.setArgAttr(number, kPlacedAttrName, builder.getUnitAttr());
  if (argument.use_empty()) {
    return;
  }
  auto whole = ResolveOp::create(builder, argument.getLoc(), argument);
  whole->setAttr(kRoleAttrName, builder.getStringAttr(kReplicatedRole));
  argument.replaceAllUsesExcept(whole.getResult(), whole);
}

struct PlaceSmallValues : impl::PlaceSmallValuesBase<PlaceSmallValues> {
  using PlaceSmallValuesBase::PlaceSmallValuesBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    FunctionType type = entry->getFunctionType();
    if (failed(verify(*entry, inputs, type.getNumInputs(), "argument")) ||
        failed(verify(*entry, results, type.getNumResults(), "result"))) {
      return signalPassFailure();
    }
    for (int64_t number : inputs) {
      if (isTiny(type.getInput(number))) {
        placeArgument(*entry, number);
      }
    }
    auto unit = UnitAttr::get(&getContext());
    for (int64_t number : results) {
      if (isTiny(type.getResult(number))) {
        entry->setResultAttr(number, kPlacedAttrName, unit);
      }
    }
  }
};

} // namespace
} // namespace mlir::alpa
