//===- BoundaryRule.cpp - A function as one operator ----------------------===//

#include "cpp/analysis/BoundaryRule.h"

#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::alpa;

namespace {

/// A class of the boundary while it is made.
struct Class {
  unsigned numDims = 0;
  int64_t size = 0;
  int64_t number = kNoClass;
};

} // namespace

/// Takes a class out of a tensor that it would split twice.
static void dropRepeated(std::vector<int64_t> &tensor) {
  std::vector<int64_t> before = tensor;
  for (int64_t &entry : tensor) {
    if (llvm::count(before, entry) > 1) {
      entry = kNoClass;
    }
  }
}

BoundaryRule mlir::alpa::getBoundaryRule(func::FuncOp function) {
  Block &block = function.getBody().front();
  OperatorRules rules;
  DimensionClasses dimensions(function, rules);
  SmallVector<Value> tensors(block.getArguments());
  llvm::append_range(tensors, block.getTerminator()->getOperands());

  std::vector<std::vector<int64_t>> found;
  std::vector<Class> classes(dimensions.size());
  for (Value value : tensors) {
    SmallVector<int64_t> own = dimensions.get(value);
    found.emplace_back(own.begin(), own.end());
    dropRepeated(found.back());
    for (auto [dim, entry] : llvm::enumerate(found.back())) {
      if (entry == kNoClass) {
        continue;
      }
      int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
      Class &own = classes[entry];
      own.size = own.numDims == 0 ? size : std::min(own.size, size);
      ++own.numDims;
    }
  }

  BoundaryRule rule;
  for (auto [value, tensor] : llvm::zip(tensors, found)) {
    for (auto [dim, entry] : llvm::enumerate(tensor)) {
      if (entry == kNoClass) {
        continue;
      }
      Class &own = classes[entry];
      int64_t size = cast<RankedTensorType>(value.getType()).getDimSize(dim);
      if (own.numDims < 2 || own.size < 2 || size % own.size != 0) {
        entry = kNoClass;
        continue;
      }
      if (own.number == kNoClass) {
        own.number = static_cast<int64_t>(rule.sizes.size());
        rule.sizes.push_back(own.size);
      }
      entry = own.number;
    }
  }
  auto middle = found.begin() + block.getNumArguments();
  rule.arguments.assign(found.begin(), middle);
  rule.results.assign(middle, found.end());
  rule.uses = getArgumentUses(function, dimensions);
  return rule;
}
