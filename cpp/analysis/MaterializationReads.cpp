//===- MaterializationReads.cpp - What fusions read and write -------------===//

#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/ProductEpilogues.h"
#include "cpp/analysis/RowKernels.h"
#include "dialects/alpa/Sharding.h"

namespace mlir::alpa {

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
  epilogues = findProductEpilogues(
      storing,
      {[&](Operation *op) { return takesPrologue(op, options.backend); },
       [&](Value value) { return stored.lookup(value); }});
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
    if (product) {
      root.fusion = {-1 - points.lookup(product), 0};
      joined.insert({product->getResult(0), root.fusion.depth, 0});
    }
    for (Value source : root.from) {
      // Something else reads it.
      if (product != source.getDefiningOp()) {
        unwritten.erase(source);
      }
    }
  }
}

void Materialization::readSources() {
  for (const auto &[op, from, fusion, isElementwise] : roots) {
    if (fusions.insert({fusion.depth, fusion.numElements}).second) {
      launching.insert(op);
    }
    for (OpOperand &operand : op->getOpOperands()) {
      read(operand, fusion);
    }
    for (OpResult result : op->getResults()) {
      if (isElementwise && isStored(result)) {
        joined.insert({result, fusion.depth, fusion.numElements});
      }
    }
  }
}

void Materialization::read(OpOperand &operand, FusionKey fusion) {
  double bytes = 0;
  for (Value source : sources.lookup(operand.get())) {
    if (joined.insert({source, fusion.depth, fusion.numElements}).second) {
      bytes += getStoredRatio(source) * getTouchedBytes(operand.get(), source);
    }
  }
  if (bytes > 0) {
    readBytes[&operand] += bytes;
  }
}

double Materialization::getWrittenBytes(OpResult result) const {
  if ((!isStored(result) && !merged.contains(result.getOwner())) ||
      unwritten.contains(result)) {
    return 0;
  }
  auto ratio = storedRatios.find(result);
  return getTensorBytes(result.getType()) *
         (ratio != storedRatios.end() ? ratio->second : 1);
}

} // namespace mlir::alpa
