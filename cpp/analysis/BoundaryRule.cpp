//===- BoundaryRule.cpp - A function as one operator ----------------------===//

#include "cpp/analysis/BoundaryRule.h"

#include "dialects/alpa/ShardingRule.h"
#include "mlir/IR/BuiltinTypes.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::alpa;

namespace {

/// Numbers the dimensions of all tensors of a function.
class Dimensions {
public:
  explicit Dimensions(Block &block) {
    llvm::for_each(block.getArguments(), [&](Value value) { add(value); });
    for (Operation &op : block) {
      llvm::for_each(op.getResults(), [&](Value value) { add(value); });
    }
  }

  unsigned getNumber(Value value, unsigned dim) const {
    return first.lookup(value) + dim;
  }
  unsigned size() const { return next; }

private:
  void add(Value value) {
    first[value] = next;
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      next += type.getRank();
    }
  }

  DenseMap<Value, unsigned> first;
  unsigned next = 0;
};

/// Joins dimensions that operators keep together.
class Joiner {
public:
  explicit Joiner(Block &block)
      : dimensions(block), classes(dimensions.size()) {
    for (Operation &op : block) {
      if (std::optional<ShardingRule> rule = getShardingRule(&op)) {
        join(op, *rule);
      }
    }
    classes.compress();
  }

  /// Per dimension of a tensor its class.
  std::vector<int64_t> getClasses(Value value) const {
    std::vector<int64_t> found;
    if (auto type = dyn_cast<RankedTensorType>(value.getType())) {
      for (unsigned dim = 0; dim < type.getRank(); ++dim) {
        found.push_back(classes[dimensions.getNumber(value, dim)]);
      }
    }
    return found;
  }

  unsigned getNumClasses() const { return classes.getNumClasses(); }

private:
  void join(Operation &op, const ShardingRule &rule) {
    SmallVector<int64_t> leader(rule.factors.size(), kNoClass);
    auto visit = [&](Value value, const TensorFactors &tensor) {
      for (auto [dim, factors] : llvm::enumerate(tensor)) {
        if (factors.empty() ||
            rule.factors[factors.front()].kind == FactorKind::Replicated) {
          continue;
        }
        int64_t &first = leader[factors.front()];
        unsigned number = dimensions.getNumber(value, dim);
        if (first == kNoClass) {
          first = number;
        } else {
          classes.join(first, number);
        }
      }
    };
    for (auto [value, tensor] : llvm::zip(op.getOperands(), rule.operands)) {
      visit(value, tensor);
    }
    for (auto [value, tensor] : llvm::zip(op.getResults(), rule.results)) {
      visit(value, tensor);
    }
  }

  Dimensions dimensions;
  llvm::IntEqClasses classes;
};

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
  Joiner joiner(block);
  SmallVector<Value> tensors(block.getArguments());
  llvm::append_range(tensors, block.getTerminator()->getOperands());

  std::vector<std::vector<int64_t>> found;
  std::vector<Class> classes(joiner.getNumClasses());
  for (Value value : tensors) {
    found.push_back(joiner.getClasses(value));
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
  return rule;
}
