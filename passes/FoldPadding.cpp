//===- FoldPadding.cpp - Windows over padded tensors ----------------------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "dialects/stablehlo/ShardingRules/SelectAndScatter.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_FOLDPADDING
#include "passes/Passes.h.inc"

namespace {

using stablehlo::ConvolutionOp;
using stablehlo::PadOp;
using stablehlo::ReduceWindowOp;
using stablehlo::SelectAndScatterOp;
using stablehlo::SliceOp;

using OptionalSizes = std::optional<ArrayRef<int64_t>>;

/// Padding and holes between elements of the dimensions of a window.
struct Surroundings {
  SmallVector<int64_t> padding;
  SmallVector<int64_t> baseDilations;
};

bool isAllOnes(OptionalSizes sizes) {
  return !sizes || llvm::all_of(*sizes, [](int64_t size) { return size == 1; });
}

bool isNeverNegative(ArrayRef<int64_t> sizes) {
  return llvm::all_of(sizes, [](int64_t size) { return size >= 0; });
}

/// Those that a window over a padded tensor has over the tensor itself.
///
/// \param dims of the padded tensor, those of the window.
Surroundings getSurroundings(PadOp pad, ArrayRef<int64_t> dims,
                             std::optional<DenseIntElementsAttr> padding) {
  Surroundings found;
  found.padding.assign(2 * dims.size(), 0);
  if (padding) {
    llvm::copy(padding->getValues<int64_t>(), found.padding.begin());
  }
  for (auto [number, dim] : llvm::enumerate(dims)) {
    found.padding[2 * number] += pad.getEdgePaddingLow()[dim];
    found.padding[2 * number + 1] += pad.getEdgePaddingHigh()[dim];
    found.baseDilations.push_back(pad.getInteriorPadding()[dim] + 1);
  }
  return found;
}

DenseIntElementsAttr getPaddingAttr(Builder &builder,
                                    ArrayRef<int64_t> padding) {
  auto type = RankedTensorType::get(
      {static_cast<int64_t>(padding.size()) / 2, 2}, builder.getI64Type());
  return DenseIntElementsAttr::get(type, padding);
}

bool isSameNumber(Value left, Value right) {
  std::optional<double> known = stablehlo::getKnownSplat(left);
  return left == right || (known && known == stablehlo::getKnownSplat(right));
}

bool canFold(PadOp pad, OptionalSizes baseDilations) {
  return isAllOnes(baseDilations) && isNeverNegative(pad.getEdgePaddingLow()) &&
         isNeverNegative(pad.getEdgePaddingHigh());
}

bool isZero(int64_t size) { return size == 0; }

/// JAX writes one around pooling whatever its padding is.
bool padsNothing(PadOp pad) {
  return llvm::all_of(pad.getEdgePaddingLow(), isZero) &&
         llvm::all_of(pad.getEdgePaddingHigh(), isZero) &&
         llvm::all_of(pad.getInteriorPadding(), isZero);
}

void fold(ReduceWindowOp window) {
  if (window.getInputs().size() != 1) {
    return;
  }
  auto pad = window.getInputs().front().getDefiningOp<PadOp>();
  if (!pad || !canFold(pad, window.getBaseDilations()) ||
      !isSameNumber(pad.getPaddingValue(), window.getInitValues().front())) {
    return;
  }
  auto dims = llvm::to_vector(llvm::seq<int64_t>(
      0, cast<RankedTensorType>(pad.getOperand().getType()).getRank()));
  Builder builder(window.getContext());
  Surroundings found = getSurroundings(pad, dims, window.getPadding());
  window.setPaddingAttr(getPaddingAttr(builder, found.padding));
  window.setBaseDilations(found.baseDilations);
  window.getInputsMutable().assign(pad.getOperand());
}

void fold(ConvolutionOp convolution) {
  auto pad = convolution.getLhs().getDefiningOp<PadOp>();
  if (!pad || !canFold(pad, convolution.getLhsDilation()) ||
      !stablehlo::isKnownZero(pad.getPaddingValue())) {
    return;
  }
  ArrayRef<int64_t> dims =
      convolution.getDimensionNumbers().getInputSpatialDimensions();
  for (int64_t
           dim = 0,
           rank = cast<RankedTensorType>(pad.getOperand().getType()).getRank();
       dim < rank; ++dim) {
    bool isPadded = pad.getEdgePaddingLow()[dim] != 0 ||
                    pad.getEdgePaddingHigh()[dim] != 0 ||
                    pad.getInteriorPadding()[dim] != 0;
    if (isPadded && !llvm::is_contained(dims, dim)) {
      return;
    }
  }
  Builder builder(convolution.getContext());
  Surroundings found = getSurroundings(pad, dims, convolution.getPadding());
  convolution.setPaddingAttr(getPaddingAttr(builder, found.padding));
  convolution.setLhsDilation(found.baseDilations);
  convolution.getLhsMutable().assign(pad.getOperand());
}

/// The one slice that is all that is read of a value; none if there are others.
SliceOp getOnlySlice(Value value) {
  return value.hasOneUse() ? dyn_cast<SliceOp>(*value.user_begin()) : SliceOp();
}

/// JAX writes what is padded and what is cut off around the operator.
void fold(SelectAndScatterOp scatter) {
  auto pad = scatter.getOperand().getDefiningOp<PadOp>();
  SliceOp slice = getOnlySlice(scatter->getResult(0));
  std::optional<double> least = stablehlo::getLeastSelected(scatter);
  bool isPadded =
      scatter.getPadding() &&
      !llvm::all_of(scatter.getPadding()->getValues<int64_t>(), isZero);
  if (!pad || !slice || !least || isPadded || !canFold(pad, std::nullopt) ||
      !llvm::all_of(pad.getInteriorPadding(), isZero) ||
      stablehlo::getKnownSplat(pad.getPaddingValue()) != least ||
      slice->getResult(0).getType() != pad.getOperand().getType() ||
      slice.getStartIndices() != pad.getEdgePaddingLow() ||
      !isAllOnes(slice.getStrides())) {
    return;
  }
  auto dims =
      llvm::to_vector(llvm::seq<int64_t>(0, slice.getStartIndices().size()));
  Builder builder(scatter.getContext());
  Surroundings found = getSurroundings(pad, dims, std::nullopt);
  scatter.setPaddingAttr(getPaddingAttr(builder, found.padding));
  scatter->setAttr(kExplicitPaddingAttrName, builder.getUnitAttr());
  scatter->setOperand(0, pad.getOperand());
  scatter->getResult(0).setType(pad.getOperand().getType());
  slice->getResult(0).replaceAllUsesWith(scatter->getResult(0));
}

struct FoldPadding : impl::FoldPaddingBase<FoldPadding> {
  void runOnOperation() override {
    SmallVector<Operation *> candidates;
    getOperation()->walk([&](Operation *op) {
      if (op->hasAttr(kRuleAttrName)) {
        // A rule that an operator carries is that of its operands as they are.
        return;
      }
      if (auto window = dyn_cast<ReduceWindowOp>(op)) {
        fold(window);
      } else if (auto convolution = dyn_cast<ConvolutionOp>(op)) {
        fold(convolution);
      } else if (auto scatter = dyn_cast<SelectAndScatterOp>(op)) {
        fold(scatter);
      } else if (auto pad = dyn_cast<PadOp>(op); pad && padsNothing(pad)) {
        pad->getResult(0).replaceAllUsesWith(pad.getOperand());
        candidates.push_back(op);
      } else if (isa<PadOp, SliceOp>(op)) {
        candidates.push_back(op);
      }
    });
    for (Operation *op : llvm::reverse(candidates)) {
      if (op->use_empty()) {
        op->erase();
      }
    }
  }
};

} // namespace
} // namespace mlir::alpa
