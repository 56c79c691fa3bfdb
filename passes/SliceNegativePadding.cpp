//===- SliceNegativePadding.cpp - Convolutions of what padding leaves -----===//

#include "passes/Passes.h"

#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/Support/MathExtras.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_SLICENEGATIVEPADDING
#include "passes/Passes.h.inc"

namespace {

/// What is cut off at one end of a dimension.
struct Edge {
  int64_t cut = 0;
  int64_t padding = 0;
};

/// Negative padding cuts off elements and the holes between them; of the last
/// hole that it cuts into something is left.
Edge getEdge(int64_t padding, int64_t dilation) {
  if (padding >= 0) {
    return {0, padding};
  }
  int64_t cut = llvm::divideCeil(-padding, dilation);
  return {cut, cut * dilation + padding};
}

class Slicing {
public:
  explicit Slicing(stablehlo::ConvolutionOp op) : op(op) {}

  void run() {
    auto type = cast<RankedTensorType>(op.getLhs().getType());
    std::optional<DenseIntElementsAttr> padding = op.getPadding();
    if (!padding || !type.hasStaticShape()) {
      return;
    }
    SmallVector<int64_t> starts(type.getRank()), limits(type.getShape());
    auto ends = llvm::to_vector(padding->getValues<int64_t>());
    bool isCut = false;
    for (auto [place, dim] : llvm::enumerate(
             op.getDimensionNumbers().getInputSpatialDimensions())) {
      int64_t dilation =
          op.getLhsDilation() ? (*op.getLhsDilation())[place] : 1;
      Edge low = getEdge(ends[2 * place], dilation);
      Edge high = getEdge(ends[2 * place + 1], dilation);
      if (low.cut + high.cut >= type.getDimSize(dim)) {
        return;
      }
      isCut |= low.cut > 0 || high.cut > 0;
      starts[dim] = low.cut;
      limits[dim] -= high.cut;
      ends[2 * place] = low.padding;
      ends[2 * place + 1] = high.padding;
    }
    if (!isCut) {
      return;
    }
    SmallVector<int64_t> shape;
    for (auto [start, limit] : llvm::zip_equal(starts, limits)) {
      shape.push_back(limit - start);
    }
    OpBuilder builder(op);
    op.getLhsMutable().assign(stablehlo::SliceOp::create(
        builder, op.getLoc(), type.clone(shape), op.getLhs(),
        builder.getDenseI64ArrayAttr(starts),
        builder.getDenseI64ArrayAttr(limits),
        builder.getDenseI64ArrayAttr(SmallVector<int64_t>(type.getRank(), 1))));
    op.setPaddingAttr(
        DenseIntElementsAttr::get(padding->getType(), ArrayRef(ends)));
  }

private:
  stablehlo::ConvolutionOp op;
};

struct SliceNegativePadding
    : impl::SliceNegativePaddingBase<SliceNegativePadding> {
  void runOnOperation() override {
    getOperation().walk([](stablehlo::ConvolutionOp op) { Slicing(op).run(); });
  }
};

} // namespace
} // namespace mlir::alpa
