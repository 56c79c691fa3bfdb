//===- StackSplitting.cpp - Stacks of layers in parts ---------------------===//

#include "cpp/transforms/StackSplitting.h"

#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/LayerScopes.h"
#include "cpp/transforms/StackParts.h"
#include "dialects/alpa/Alpa.h"

namespace mlir::alpa {

namespace {

using namespace stablehlo;

/// The one dimension along which a slice leaves something out, without holes.
std::optional<unsigned> getSlicedDim(SliceOp slice) {
  std::optional<unsigned> found;
  auto shape = cast<RankedTensorType>(slice.getOperand().getType()).getShape();
  for (auto [dim, size] : llvm::enumerate(shape)) {
    bool isWhole = slice.getStartIndices()[dim] == 0 &&
                   slice.getLimitIndices()[dim] == size;
    if (slice.getStrides()[dim] != 1 || (!isWhole && found)) {
      return std::nullopt;
    }
    if (!isWhole) {
      found = dim;
    }
  }
  return found;
}

/// Where slices that together are all of a tensor cut it; none if they are not.
std::optional<StackCut> getCut(ArrayRef<SliceOp> slices, unsigned dim) {
  SmallVector<std::pair<int64_t, int64_t>> ranges;
  RankedTensorType type;
  for (SliceOp slice : slices) {
    type = cast<RankedTensorType>(slice.getOperand().getType());
    ranges.emplace_back(slice.getStartIndices()[dim],
                        slice.getLimitIndices()[dim]);
  }
  llvm::sort(ranges);
  ranges.erase(llvm::unique(ranges), ranges.end());
  StackCut cut{dim, {}};
  int64_t at = 0;
  for (auto [start, limit] : ranges) {
    if (start != at) {
      return std::nullopt;
    }
    cut.sizes.push_back(limit - start);
    at = limit;
  }
  return at == type.getDimSize(dim) ? std::optional(cut) : std::nullopt;
}

/// Where a tensor is put together of parts.
StackCut getCut(ConcatenateOp concatenate) {
  auto dim = static_cast<unsigned>(concatenate.getDimension());
  StackCut cut{dim, {}};
  for (Value operand : concatenate.getOperands()) {
    cut.sizes.push_back(
        cast<RankedTensorType>(operand.getType()).getDimSize(dim));
  }
  return cut;
}

class StackSplitting {
public:
  StackSplitting(func::FuncOp function, const llvm::DenseSet<unsigned> &fixed,
                 const DenseMap<unsigned, unsigned> &aliases)
      : function(function), block(function.getBody().front()), fixed(fixed),
        aliases(aliases), parts(function) {}

  void run() {
    findCuts();
    splitArguments();
    replaceSlices();
    replaceReductions();
    splitResults();
    parts.finish();
    moveIntoLayers();
    eraseArguments();
    numberBoundary();
  }

private:
  bool isOfStack(Operation &op) const {
    return StringRef(getScope(op.getLoc())).contains(kStackScope);
  }

  void findCuts() {
    llvm::MapVector<std::pair<Value, unsigned>, SmallVector<SliceOp>> slices;
    for (Operation &op : block) {
      auto slice = dyn_cast<SliceOp>(op);
      std::optional<unsigned> dim =
          slice && isOfStack(op) ? getSlicedDim(slice) : std::nullopt;
      if (dim) {
        slices[{slice.getOperand(), *dim}].push_back(slice);
      }
    }
    for (auto &[place, own] : slices) {
      if (std::optional<StackCut> cut = getCut(own, place.second)) {
        parts.cut(place.first, *cut);
      }
    }
    for (ConcatenateOp concatenate : block.getOps<ConcatenateOp>()) {
      if (isOfStack(*concatenate)) {
        parts.cut(concatenate, getCut(concatenate));
      }
    }
  }

  /// Arguments and their next values are cut together, or not at all.
  bool isSplit(BlockArgument argument) const {
    const StackCut *cut = parts.find(argument);
    auto alias = aliases.find(argument.getArgNumber());
    if (!cut || fixed.contains(argument.getArgNumber())) {
      return false;
    }
    if (alias == aliases.end()) {
      return true;
    }
    Value result = block.getTerminator()->getOperand(alias->second);
    const StackCut *next = parts.find(result);
    return next && *next == *cut;
  }

  void splitArguments() {
    for (BlockArgument argument : block.getArguments()) {
      origins.push_back(argument.getArgNumber());
      isWhole.push_back(!isSplit(argument));
    }
    for (unsigned index = origins.size(); index-- > 0;) {
      if (!isWhole[index]) {
        splitArgument(index);
      }
    }
  }

  void splitArgument(unsigned index) {
    BlockArgument argument = block.getArgument(index);
    const StackCut &cut = *parts.find(argument);
    SmallVector<Value> own;
    for (unsigned part = 0; part < cut.size(); ++part) {
      unsigned at = index + 1 + part;
      (void)function.insertArgument(at, getPartType(argument, cut, part),
                                    function.getArgAttrDict(index),
                                    argument.getLoc());
      origins.insert(origins.begin() + at, index);
      isWhole.insert(isWhole.begin() + at, true);
      own.push_back(block.getArgument(at));
    }
    parts.set(argument, own);
  }

  void replaceSlices() {
    SmallVector<SliceOp> slices(block.getOps<SliceOp>());
    for (SliceOp slice : slices) {
      const StackCut *cut = parts.find(slice.getOperand());
      std::optional<unsigned> dim = getSlicedDim(slice);
      if (!cut || dim != cut->dim) {
        continue;
      }
      if (std::optional<unsigned> part = cut->find(
              slice.getStartIndices()[*dim], slice.getLimitIndices()[*dim])) {
        slice.replaceAllUsesWith(parts.get(slice.getOperand(), *part));
      }
    }
  }

  void replaceReductions() {
    SmallVector<Operation *> operators;
    // Those in branches first: their results may be reduced again.
    function.walk([&](Operation *op) {
      if (parts.isReached(op->getBlock())) {
        operators.push_back(op);
      }
    });
    for (Operation *op : operators) {
      if (Value reduced = parts.reduceInParts(op)) {
        op->getResult(0).replaceAllUsesWith(reduced);
      }
    }
  }

  /// A result that is the next value of an argument is cut as that is; of
  /// others those that are cut.
  bool isSplitResult(unsigned index) const {
    for (auto [argument, result] : aliases) {
      if (result == index) {
        auto place = llvm::find(origins, argument) - origins.begin();
        return !isWhole[place];
      }
    }
    return parts.find(block.getTerminator()->getOperand(index)) != nullptr;
  }

  void splitResults() {
    Operation *exit = block.getTerminator();
    SmallVector<Value> returned;
    for (unsigned index = 0; index < exit->getNumOperands(); ++index) {
      Value value = exit->getOperand(index);
      if (!isSplitResult(index)) {
        returned.push_back(value);
        resultOrigins.push_back(index);
        continue;
      }
      for (unsigned part = 0; part < parts.find(value)->size(); ++part) {
        returned.push_back(parts.get(value, part));
        resultOrigins.push_back(index);
      }
    }
    SmallVector<Attribute> attributes;
    for (unsigned index : resultOrigins) {
      DictionaryAttr own = function.getResultAttrDict(index);
      attributes.push_back(own ? own
                               : DictionaryAttr::get(function.getContext()));
    }
    exit->setOperands(returned);
    function.setFunctionType(
        FunctionType::get(function.getContext(), block.getArgumentTypes(),
                          ValueRange(returned).getTypes()));
    function.setAllResultAttrs(attributes);
  }

  /// What was made for a part lies in the layer of what needs it, or, of the
  /// backward phase, in that of what it is made of.
  void moveIntoLayers() {
    SmallVector<Operation *> made;
    for (Operation &op : block) {
      if (parts.isMade(&op) && getScopeLayer(getScope(op.getLoc()))) {
        made.push_back(&op);
      }
    }
    for (Operation *op : llvm::reverse(made)) {
      if (!isBackward(op)) {
        moveTo(op, findFirstLayer(op->getUsers()));
      }
    }
    for (Operation *op : made) {
      if (isBackward(op)) {
        SmallVector<Operation *> makers;
        for (Value operand : op->getOperands()) {
          if (Operation *maker = operand.getDefiningOp()) {
            makers.push_back(maker);
          }
        }
        moveTo(op, findFirstLayer(makers));
      }
    }
  }

  static bool isBackward(Operation *op) {
    return isBackwardScope(getScope(op->getLoc()));
  }

  template <typename Range>
  std::optional<int64_t> findFirstLayer(Range &&operators) const {
    std::optional<int64_t> first;
    for (Operation *op : operators) {
      if (auto layer = getScopeLayer(getScope(op->getLoc()))) {
        first = std::min(*layer, first.value_or(*layer));
      }
    }
    return first;
  }

  void moveTo(Operation *op, std::optional<int64_t> layer) {
    if (layer) {
      std::string scope = withScopeLayer(getScope(op->getLoc()), *layer);
      op->setLoc(NameLoc::get(StringAttr::get(function.getContext(), scope)));
    }
  }

  /// What still needs the whole of an argument puts it together.
  void eraseArguments() {
    for (unsigned index = isWhole.size(); index-- > 0;) {
      if (isWhole[index]) {
        continue;
      }
      BlockArgument argument = block.getArgument(index);
      if (!argument.use_empty()) {
        const StackCut &cut = *parts.find(argument);
        SmallVector<Value> own;
        for (unsigned part = 0; part < cut.size(); ++part) {
          own.push_back(parts.get(argument, part));
        }
        OpBuilder builder = OpBuilder::atBlockBegin(&block);
        auto whole = ConcatenateOp::create(builder, argument.getLoc(),
                                           argument.getType(), own, cut.dim);
        argument.replaceAllUsesWith(whole.getResult());
      }
      (void)function.eraseArgument(index);
      origins.erase(origins.begin() + index);
    }
  }

  void numberBoundary() {
    Builder builder(function.getContext());
    for (auto [index, origin] : llvm::enumerate(origins)) {
      function.setArgAttr(index, kInputAttrName,
                          builder.getI64IntegerAttr(origin));
    }
    for (auto [index, origin] : llvm::enumerate(resultOrigins)) {
      function.setResultAttr(index, kOutputAttrName,
                             builder.getI64IntegerAttr(origin));
    }
  }

  func::FuncOp function;
  Block &block;
  const llvm::DenseSet<unsigned> &fixed;
  const DenseMap<unsigned, unsigned> &aliases;
  StackParts parts;
  /// Per argument which one it was, and whether it is not one that is cut.
  SmallVector<unsigned> origins, resultOrigins;
  SmallVector<bool> isWhole;
};

} // namespace

void splitStacks(func::FuncOp function, const llvm::DenseSet<unsigned> &fixed,
                 const DenseMap<unsigned, unsigned> &aliases) {
  StackSplitting(function, fixed, aliases).run();
}

} // namespace mlir::alpa
