//===- MaterializationReads.cpp - What fusions read and write -------------===//

#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/MemoryOrder.h"
#include "cpp/analysis/MergedProducts.h"
#include "cpp/analysis/ProductEpilogues.h"
#include "cpp/analysis/Readers.h"
#include "cpp/analysis/RowKernels.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// Numbers of a column, which are no row in memory, that XLA for GPU sums up in
/// one kernel: its compiler of jax 0.10.2 takes two for 4,097.
static constexpr int64_t kLongestColumn = 4096;

void Materialization::joinKernels() {
  auto storing = llvm::map_to_vector(roots, [](const Root &root) {
    return StoringOperator{root.op, root.from, root.isElementwise};
  });
  if (options.backend == Backend::Tpu) {
    return joinEpilogues(storing);
  }
  auto kernels = findRowKernels(storing, [&](Operation *op) {
    return normalizers.contains(op->getResult(0)) && reducesRows(op);
  });
  for (Root &root : roots) {
    if (Operation *first = kernels.lookup(root.op)) {
      root.fusion = {-1 - points.lookup(first), 0};
    }
  }
}

void Materialization::joinEpilogues(ArrayRef<StoringOperator> storing) {
  ProductEpilogues found = findProductEpilogues(
      storing,
      {[&](Operation *op) { return takesPrologue(op, options.backend); },
       [&](Value value) { return stored.lookup(value); },
       [&](Value value, Operation *op) {
         return isReadThrough(value, op, roles);
       }});
  epilogues = std::move(found.products);
  awaited = std::move(found.awaited);
  llvm::DenseSet<Operation *> joinedProducts;
  for (const auto &[op, product] : epilogues) {
    joinedProducts.insert(product);
    unwritten.insert(product->getResult(0));
  }
  for (Root &root : roots) {
    Operation *product = epilogues.lookup(root.op);
    if (joinedProducts.contains(root.op)) {
      product = root.op;
    }
    int point = getKernelPoint(root.op);
    if (product) {
      root.fusion = {-1 - points.lookup(product), 0};
      joined.insert({product->getResult(0), root.fusion.depth, 0});
    }
    for (Value source : root.from) {
      // A product that waits reads its operands then.
      lastRead[source] = std::max(lastRead.lookup(source), point);
      // Something else reads it.
      if (product != source.getDefiningOp()) {
        unwritten.erase(source);
      }
    }
  }
}

/// True for a sum that XLA for GPU splits in two, the second of which adds up
/// what the first has left.
static bool isLongSum(Operation *op) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  if (!reduce) {
    return false;
  }
  auto type = cast<RankedTensorType>(reduce.getInputs().front().getType());
  bool isRow = llvm::is_contained(reduce.getDimensions(), type.getRank() - 1);
  return countElements(type) > (isRow ? kLongestRow : kLongestColumn) *
                                   countElements(op->getResult(0).getType());
}

bool Materialization::joinsFusion(const Sources &from, FusionKey fusion) const {
  return llvm::any_of(from, [&](Value source) {
    return 2 * countElements(source.getType()) >= fusion.numElements &&
           joined.contains({source, fusion.depth, fusion.numElements});
  });
}

void Materialization::readSources() {
  for (const auto &[op, from, fusion, isElementwise] : roots) {
    if (!joinsFusion(from, fusion)) {
      numKernels[op] = isLongSum(op) ? 2 : 1;
    }
    for (OpOperand &operand : op->getOpOperands()) {
      read(operand, fusion);
      copy(operand);
    }
    if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(op)) {
      readBytes[&update.getUpdateMutable()] +=
          getTensorBytes(update.getUpdate().getType());
    }
    for (OpResult result : op->getResults()) {
      if (isElementwise && isStored(result)) {
        joined.insert({result, fusion.depth, fusion.numElements});
      }
    }
  }
}

/// True if elements of which each byte takes so many in memory take at most 16
/// bits there.
static bool isNarrowIn(Value value, double ratio) {
  Type element = getElementTypeOrSelf(value.getType());
  return element.isIntOrFloat() &&
         ratio * element.getIntOrFloatBitWidth() <= 16;
}

bool Materialization::isNarrow(Value value) const {
  auto ratio = storedRatios.find(value);
  return isNarrowIn(value, ratio != storedRatios.end() ? ratio->second : 1);
}

void Materialization::read(OpOperand &operand, FusionKey fusion) {
  double bytes = 0, narrowBytes = 0;
  for (Value source : sources.lookup(operand.get())) {
    if (joined.insert({source, fusion.depth, fusion.numElements}).second) {
      double read =
          getStoredRatio(source) * getTouchedBytes(operand.get(), source);
      bytes += read;
      narrowBytes += isNarrowIn(source, getStoredRatio(source)) ? read : 0;
    }
  }
  if (bytes > 0) {
    readBytes[&operand] += bytes;
    narrowReadBytes[&operand] += narrowBytes;
  }
}

/// True for a slice, perhaps in another shape, that no fusion has made.
static bool isSlice(Value value) {
  Operation *maker = value.getDefiningOp();
  if (isa_and_nonnull<stablehlo::ReshapeOp, stablehlo::TransposeOp, ConstrainOp,
                      ResolveOp>(maker)) {
    return isSlice(maker->getOperand(0));
  }
  return isa_and_nonnull<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(maker);
}

bool Materialization::replacesCarried(OpOperand &operand) const {
  auto it = sources.find(operand.get());
  auto argument = it != sources.end() && it->second.size() == 1
                      ? dyn_cast<BlockArgument>(it->second.front())
                      : BlockArgument();
  Operation *product = operand.getOwner();
  auto loop = argument ? dyn_cast_if_present<DataFlowOpInterface>(
                             argument.getOwner()->getParentOp())
                       : DataFlowOpInterface();
  if (!loop || argument.getOwner() != product->getBlock()) {
    return false;
  }
  DataFlowEdge edge = findDataFlowEdge(loop, argument);
  return edge && !edge.sliced &&
         llvm::any_of(edge.sources, [&](OpOperand *source) {
           auto next = sources.find(source->get());
           if (source->getOwner() == loop || next == sources.end() ||
               next->second.size() != 1) {
             return false;
           }
           Operation *maker = next->second.front().getDefiningOp();
           return maker &&
                  (maker == product || epilogues.lookup(maker) == product);
         });
}

void Materialization::copy(OpOperand &operand) {
  if (!takesPrologue(operand.getOwner(), options.backend)) {
    return;
  }
  Value value = operand.get();
  if (replacesCarried(operand)) {
    copiedBytes[&operand] = 2 * getTensorBytes(value.getType());
  }
  if (options.backend != Backend::Gpu) {
    return;
  }
  SmallVector<int64_t> order;
  Operation *product = getSlicedProduct(operand, order);
  bool isTransposed = product && isView(value) &&
                      multipliesCopy(operand, sources.lookup(value).front()) &&
                      ordered.insert({points.lookup(product), order}).second;
  if (isTransposed || (!isStored(value) && isSlice(value))) {
    copiedBytes[&operand] = 2 * getTensorBytes(value.getType());
  }
}

double Materialization::getWrittenBytes(OpResult result) const {
  if ((!isStored(result) && !merged.contains(result.getOwner()) &&
       !filled.contains(result)) ||
      unwritten.contains(result)) {
    return 0;
  }
  auto ratio = storedRatios.find(result);
  return getTensorBytes(result.getType()) *
         (ratio != storedRatios.end() ? ratio->second : 1);
}

} // namespace mlir::alpa
