//===- BatchLookups.cpp - Rows that look up in themselves -----------------===//

#include "cpp/transforms/Erasure.h"
#include "dialects/alpa/Alpa.h"
#include "passes/IndexComponents.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_BATCHLOOKUPS
#include "passes/Passes.h.inc"

namespace {

using stablehlo::ConstantOp;
using stablehlo::GatherDimensionNumbersAttr;
using stablehlo::GatherOp;
using stablehlo::ReshapeOp;
using stablehlo::ScatterDimensionNumbersAttr;
using stablehlo::ScatterOp;

/// What a gather and a scatter have in common: indices into a tensor.
struct Lookup {
  RankedTensorType type;
  Value indices;
  int64_t vectorDim;
  /// Dimensions of the tensor: those of the components of an index, and those
  /// of which an index takes one element.
  SmallVector<int64_t> indexed, single;
  /// Dimensions of the tensor and of the indices that go together.
  SmallVector<std::pair<int64_t, int64_t>> batching;
  /// Whether a dimension of size one has to be put behind those of the tensor.
  bool isWidened = false;

  /// An index has a component: the number zero, of a dimension of size one.
  void addDimension() {
    isWidened = true;
    indexed = {type.getRank()};
    single.push_back(type.getRank());
    OpBuilder builder(indices.getContext());
    builder.setInsertionPointAfterValue(indices);
    auto zeroType = cast<RankedTensorType>(indices.getType());
    if (vectorDim < zeroType.getRank()) {
      SmallVector<int64_t> shape(zeroType.getShape());
      shape[vectorDim] = 1;
      zeroType = zeroType.clone(shape);
    }
    indices = ConstantOp::create(builder, indices.getLoc(),
                                 builder.getZeroAttr(zeroType));
  }
};

/// Puts a dimension of size one behind the others.
Value widen(Value value, OpBuilder &builder) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape.push_back(1);
  return ReshapeOp::create(builder, value.getLoc(), type.clone(shape), value);
}

SmallVector<std::pair<int64_t, int64_t>> getPairs(ArrayRef<int64_t> tensor,
                                                  ArrayRef<int64_t> indices) {
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [dim, other] : llvm::zip(tensor, indices)) {
    pairs.emplace_back(dim, other);
  }
  return pairs;
}

/// The dimension of the indices that a component of theirs counts, if rows of
/// the same size are selected by it.
std::optional<int64_t> getOwnRows(const Lookup &lookup, int64_t component) {
  int64_t dim = lookup.indexed[component];
  if (!llvm::is_contained(lookup.single, dim)) {
    return std::nullopt;
  }
  std::optional<int64_t> rows =
      getOwnPositions(lookup.indices, lookup.vectorDim, component);
  auto type = cast<RankedTensorType>(lookup.indices.getType());
  bool isOwn =
      rows && type.getDimSize(*rows) == lookup.type.getDimSize(dim) &&
      !llvm::is_contained(llvm::make_second_range(lookup.batching), *rows);
  return isOwn ? rows : std::nullopt;
}

/// Makes components of the indices batching dimensions; false: there are none.
bool batch(Lookup &lookup) {
  SmallVector<int64_t> kept, keptDims;
  for (auto [component, dim] : llvm::enumerate(lookup.indexed)) {
    if (std::optional<int64_t> rows = getOwnRows(lookup, component)) {
      lookup.batching.emplace_back(dim, *rows);
      llvm::erase(lookup.single, dim);
    } else {
      kept.push_back(component);
      keptDims.push_back(dim);
    }
  }
  if (kept.size() == lookup.indexed.size()) {
    return false;
  }
  llvm::sort(lookup.batching);
  lookup.indexed = keptDims;
  if (kept.empty()) {
    lookup.addDimension();
  } else {
    lookup.indices = getComponents(lookup.indices, lookup.vectorDim, kept);
  }
  return true;
}

void batch(GatherOp gather) {
  GatherDimensionNumbersAttr dims = gather.getDimensionNumbers();
  Lookup lookup{cast<RankedTensorType>(gather.getOperand().getType()),
                gather.getStartIndices(),
                dims.getIndexVectorDim(),
                llvm::to_vector(dims.getStartIndexMap()),
                llvm::to_vector(dims.getCollapsedSliceDims()),
                getPairs(dims.getOperandBatchingDims(),
                         dims.getStartIndicesBatchingDims())};
  if (llvm::any_of(
          lookup.single,
          [&](int64_t dim) { return gather.getSliceSizes()[dim] != 1; }) ||
      !batch(lookup)) {
    return;
  }
  if (lookup.isWidened) {
    OpBuilder builder(gather);
    gather.getOperandMutable().assign(widen(gather.getOperand(), builder));
    SmallVector<int64_t> sizes(gather.getSliceSizes());
    sizes.push_back(1);
    gather.setSliceSizes(sizes);
  }
  gather.getStartIndicesMutable().assign(lookup.indices);
  gather.setDimensionNumbersAttr(GatherDimensionNumbersAttr::get(
      gather.getContext(), dims.getOffsetDims(), lookup.single,
      llvm::to_vector(llvm::make_first_range(lookup.batching)),
      llvm::to_vector(llvm::make_second_range(lookup.batching)), lookup.indexed,
      lookup.vectorDim));
  // They may have been by the component that is gone.
  gather.setIndicesAreSorted(false);
}

/// before: scatter(x, i, u)
/// after:  reshape(scatter(reshape(x), i, u))
void widen(ScatterOp scatter) {
  OpBuilder builder(scatter);
  for (OpOperand &input : scatter.getInputsMutable()) {
    input.set(widen(input.get(), builder));
  }
  builder.setInsertionPointAfter(scatter);
  for (OpResult result : scatter->getResults()) {
    Type before = result.getType();
    unsigned number = result.getResultNumber();
    result.setType(cast<RankedTensorType>(before).clone(
        cast<ShapedType>(scatter.getInputs()[number].getType()).getShape()));
    auto narrow = ReshapeOp::create(builder, scatter.getLoc(), before, result);
    result.replaceAllUsesExcept(narrow->getResult(0), narrow);
  }
}

void batch(ScatterOp scatter) {
  ScatterDimensionNumbersAttr dims = scatter.getScatterDimensionNumbers();
  Lookup lookup{cast<RankedTensorType>(scatter.getInputs().front().getType()),
                scatter.getScatterIndices(),
                dims.getIndexVectorDim(),
                llvm::to_vector(dims.getScatterDimsToOperandDims()),
                llvm::to_vector(dims.getInsertedWindowDims()),
                getPairs(dims.getInputBatchingDims(),
                         dims.getScatterIndicesBatchingDims())};
  if (!batch(lookup)) {
    return;
  }
  scatter.getScatterIndicesMutable().assign(lookup.indices);
  scatter.setScatterDimensionNumbersAttr(ScatterDimensionNumbersAttr::get(
      scatter.getContext(), dims.getUpdateWindowDims(), lookup.single,
      llvm::to_vector(llvm::make_first_range(lookup.batching)),
      llvm::to_vector(llvm::make_second_range(lookup.batching)), lookup.indexed,
      lookup.vectorDim));
  scatter.setIndicesAreSorted(false);
  if (lookup.isWidened) {
    widen(scatter);
  }
}

struct BatchLookups : impl::BatchLookupsBase<BatchLookups> {
  void runOnOperation() override {
    SmallVector<Operation *> makers;
    auto add = [&](Value indices) {
      if (Operation *maker = indices.getDefiningOp()) {
        makers.push_back(maker);
      }
    };
    getOperation()->walk([&](Operation *op) {
      if (op->hasAttr(kRuleAttrName)) {
        // A rule that an operator carries is that of its operands as they are.
        return;
      }
      if (auto gather = dyn_cast<GatherOp>(op)) {
        add(gather.getStartIndices());
        batch(gather);
      } else if (auto scatter = dyn_cast<ScatterOp>(op)) {
        add(scatter.getScatterIndices());
        batch(scatter);
      }
    });
    eraseUnused(makers);
  }
};

} // namespace
} // namespace mlir::alpa
