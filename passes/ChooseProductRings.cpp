//===- ChooseProductRings.cpp - Products beside collectives ---------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/ProductRings.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_CHOOSEPRODUCTRINGS
#include "passes/Passes.h.inc"

namespace {

struct ChooseProductRings : impl::ChooseProductRingsBase<ChooseProductRings> {
  using ChooseProductRingsBase::ChooseProductRingsBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (failed(entry)) {
      return signalPassFailure();
    }
    FailureOr<MeshAttr> mesh = getPlannedMesh(getOperation());
    if (failed(mesh)) {
      return signalPassFailure();
    }
    std::vector<ProductRing> found = ProductRings(*mesh).findAll(*entry);
    for (int64_t number : rings) {
      if (number < 0 || number >= static_cast<int64_t>(found.size())) {
        entry->emitOpError() << "has " << found.size()
                             << " collectives that products can be done "
                                "beside, there is no number "
                             << number;
        return signalPassFailure();
      }
      if (failed(write(found[number]))) {
        return signalPassFailure();
      }
    }
  }

  static LogicalResult write(const ProductRing &ring) {
    for (const RingProduct &product : ring.products) {
      stablehlo::DotGeneralOp op = product.op;
      if (std::optional<RingSide> side = getRingSide(op)) {
        return op->emitOpError()
               << "is done beside what becomes of its " << toString(*side)
               << ", not beside what becomes of its " << toString(product.side)
               << " as well";
      }
      op->setDiscardableAttr(
          kProductRingAttrName,
          StringAttr::get(op->getContext(), toString(product.side)));
    }
    return success();
  }
};

} // namespace
} // namespace mlir::alpa
