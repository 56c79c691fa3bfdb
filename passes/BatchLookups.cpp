//===- BatchLookups.cpp - Rows that look up in themselves -----------------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_BATCHLOOKUPS
#include "passes/Passes.h.inc"

namespace {

using stablehlo::ConcatenateOp;
using stablehlo::GatherDimensionNumbersAttr;
using stablehlo::GatherOp;
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
};

SmallVector<std::pair<int64_t, int64_t>> getPairs(ArrayRef<int64_t> tensor,
                                                  ArrayRef<int64_t> indices) {
  SmallVector<std::pair<int64_t, int64_t>> pairs;
  for (auto [dim, other] : llvm::zip(tensor, indices)) {
    pairs.emplace_back(dim, other);
  }
  return pairs;
}

/// The dimension of the indices that `component`, the one of `dim`, counts.
std::optional<int64_t> getOwnRows(const Lookup &lookup, Value component,
                                  int64_t dim) {
  auto type = cast<RankedTensorType>(component.getType());
  if (type.getDimSize(lookup.vectorDim) != 1 ||
      !llvm::is_contained(lookup.single, dim)) {
    return std::nullopt;
  }
  std::optional<int64_t> rows = stablehlo::getKnownPositions(component);
  bool isOwn =
      rows && *rows != lookup.vectorDim &&
      type.getDimSize(*rows) == lookup.type.getDimSize(dim) &&
      !llvm::is_contained(llvm::make_second_range(lookup.batching), *rows);
  return isOwn ? rows : std::nullopt;
}

/// Makes components of the indices batching dimensions; false: there are none.
bool batch(Lookup &lookup) {
  auto joined = lookup.indices.getDefiningOp<ConcatenateOp>();
  if (!joined ||
      static_cast<int64_t>(joined.getDimension()) != lookup.vectorDim) {
    return false;
  }
  size_t before = lookup.batching.size();
  SmallVector<Value> kept;
  SmallVector<int64_t> keptDims;
  ArrayRef<int64_t> dims = lookup.indexed;
  for (auto [number, part] : llvm::enumerate(joined.getInputs())) {
    int64_t count =
        cast<RankedTensorType>(part.getType()).getDimSize(lookup.vectorDim);
    bool isLast = number + 1 == joined.getInputs().size();
    std::optional<int64_t> rows = std::nullopt;
    if (!isLast || !kept.empty()) {
      rows = getOwnRows(lookup, part, dims.front());
    }
    if (rows) {
      lookup.batching.emplace_back(dims.front(), *rows);
      llvm::erase(lookup.single, dims.front());
    } else {
      kept.push_back(part);
      llvm::append_range(keptDims, dims.take_front(count));
    }
    dims = dims.drop_front(count);
  }
  if (lookup.batching.size() == before) {
    return false;
  }
  llvm::sort(lookup.batching);
  lookup.indexed = keptDims;
  lookup.indices = kept.front();
  if (kept.size() > 1) {
    OpBuilder builder(joined);
    auto type = cast<RankedTensorType>(joined->getResult(0).getType());
    SmallVector<int64_t> shape(type.getShape());
    shape[lookup.vectorDim] = keptDims.size();
    lookup.indices =
        ConcatenateOp::create(builder, joined.getLoc(), type.clone(shape), kept,
                              joined.getDimension());
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
  gather.getStartIndicesMutable().assign(lookup.indices);
  gather.setDimensionNumbersAttr(GatherDimensionNumbersAttr::get(
      gather.getContext(), dims.getOffsetDims(), lookup.single,
      llvm::to_vector(llvm::make_first_range(lookup.batching)),
      llvm::to_vector(llvm::make_second_range(lookup.batching)), lookup.indexed,
      lookup.vectorDim));
  // They may have been by the component that is gone.
  gather.setIndicesAreSorted(false);
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
}

/// Erases what nobody uses, and what only that has used.
void eraseUnused(SmallVector<Operation *> candidates) {
  llvm::SetVector<Operation *> left(llvm::from_range, candidates);
  while (!left.empty()) {
    Operation *op = left.pop_back_val();
    if (!isOpTriviallyDead(op)) {
      continue;
    }
    for (Value operand : op->getOperands()) {
      if (Operation *maker = operand.getDefiningOp()) {
        left.insert(maker);
      }
    }
    op->erase();
  }
}

struct BatchLookups : impl::BatchLookupsBase<BatchLookups> {
  void runOnOperation() override {
    SmallVector<Operation *> joins;
    getOperation()->walk([&](Operation *op) {
      if (op->hasAttr(kRuleAttrName)) {
        // A rule that an operator carries is that of its operands as they are.
        return;
      }
      if (auto gather = dyn_cast<GatherOp>(op)) {
        batch(gather);
      } else if (auto scatter = dyn_cast<ScatterOp>(op)) {
        batch(scatter);
      } else if (isa<ConcatenateOp>(op)) {
        joins.push_back(op);
      }
    });
    eraseUnused(joins);
  }
};

} // namespace
} // namespace mlir::alpa
