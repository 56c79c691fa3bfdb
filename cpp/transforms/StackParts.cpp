//===- StackParts.cpp - Tensors in parts ----------------------------------===//

#include "cpp/transforms/StackParts.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/LayerScopes.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <numeric>

namespace mlir::alpa {

using namespace stablehlo;

//===----------------------------------------------------------------------===//
// StackCut
//===----------------------------------------------------------------------===//

int64_t StackCut::getStart(unsigned part) const {
  int64_t start = 0;
  for (int64_t size : ArrayRef(sizes).take_front(part)) {
    start += size;
  }
  return start;
}

std::optional<unsigned> StackCut::find(int64_t start, int64_t limit) const {
  for (unsigned part = 0; part < sizes.size(); ++part) {
    int64_t own = getStart(part);
    if (own == start && own + sizes[part] == limit) {
      return part;
    }
  }
  return std::nullopt;
}

RankedTensorType getPartType(Value value, const StackCut &cut, unsigned part) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> shape(type.getShape());
  shape[cut.dim] = cut.sizes[part];
  return type.clone(shape);
}

static int64_t getProduct(ArrayRef<int64_t> sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                         std::multiplies<>());
}

/// The same parts of the elements in another shape; none if there they are no
/// rows of a dimension.
///
///   tensor<4x8> along dimension 0 in 1 and 3: tensor<32> in 8 and 24
static std::optional<StackCut> reshaped(const StackCut &cut, Value from,
                                        Value to) {
  auto before = cast<RankedTensorType>(from.getType()).getShape();
  auto after = cast<RankedTensorType>(to.getType()).getShape();
  int64_t row = getProduct(before.drop_front(cut.dim + 1));
  for (unsigned dim = 0; dim < after.size(); ++dim) {
    if (after[dim] == 1 || getProduct(after.take_front(dim)) !=
                               getProduct(before.take_front(cut.dim))) {
      continue;
    }
    int64_t own = getProduct(after.drop_front(dim + 1));
    StackCut found{dim, {}};
    for (int64_t size : cut.sizes) {
      if (own == 0 || size * row % own != 0) {
        return std::nullopt;
      }
      found.sizes.push_back(size * row / own);
    }
    return found;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Which tensors are cut
//===----------------------------------------------------------------------===//

StackParts::StackParts(func::FuncOp function) : function(function) {}

const ShardingRule *StackParts::getRule(Operation *op) {
  auto [it, isNew] = rules.try_emplace(op);
  if (isNew && !isa<DataFlowOpInterface>(op)) {
    if (std::optional<ShardingRule> rule = getShardingRule(op)) {
      it->second = std::make_unique<ShardingRule>(std::move(*rule));
    }
  }
  return it->second.get();
}

std::optional<unsigned> StackParts::findLoop(const ShardingRule &rule,
                                             const TensorFactors &tensor,
                                             unsigned dim) const {
  if (dim >= tensor.size() || tensor[dim].size() != 1) {
    return std::nullopt;
  }
  unsigned factor = tensor[dim].front();
  return rule.factors[factor].hasExchange() ? std::nullopt
                                            : std::optional(factor);
}

LongerLoops StackParts::getLoops(const ShardingRule &rule, unsigned factor,
                                 int64_t size) const {
  llvm::SmallBitVector factors(rule.factors.size());
  factors.set(factor);
  return {rule, factors, size};
}

/// Whether elements are put into a dimension by their numbers in the whole of
/// it: a scatter to rows, which all are in the updates where windows cover
/// them.
static bool isPlacedByNumber(Operation *op, const LongerLoops &loops) {
  auto scatter = dyn_cast<ScatterOp>(op);
  if (!scatter) {
    return false;
  }
  unsigned updates = scatter.getInputs().size() + 1;
  return loops.getDims(loops.rule.operands.front()).any() &&
         loops.getDims(loops.rule.operands[updates]).none();
}

/// Each tensor has the loop once, and the operator can be made for a part.
bool StackParts::canCut(Operation *op, const ShardingRule &rule,
                        unsigned factor) {
  LongerLoops loops = getLoops(rule, factor, rule.factors[factor].size);
  auto isOnce = [&](const TensorFactors &tensor) {
    return loops.getDims(tensor).count() <= 1;
  };
  return llvm::all_of(rule.operands, isOnce) &&
         llvm::all_of(rule.results, isOnce) && !isPlacedByNumber(op, loops) &&
         canPadOperator(op, loops);
}

bool StackParts::isClosed(Value value) {
  Operation *maker = value.getDefiningOp();
  if (!maker || maker->getNumRegions() > 0 || !isClonable(maker)) {
    return false;
  }
  auto [it, isNew] = closed.try_emplace(maker, false);
  if (isNew) {
    // The operands' own entries may move it.
    bool isAll = llvm::all_of(maker->getOperands(),
                              [&](Value operand) { return isClosed(operand); });
    closed[maker] = isAll;
    return isAll;
  }
  return it->second;
}

void StackParts::note(Value value, StackCut cut) {
  if (isClosed(value) || !cuts.try_emplace(value, std::move(cut)).second) {
    return;
  }
  if (Operation *maker = value.getDefiningOp()) {
    waiting.insert(maker);
  }
  for (Operation *user : value.getUsers()) {
    waiting.insert(user);
  }
}

void StackParts::cut(Value value, StackCut cut) {
  note(value, std::move(cut));
  while (!waiting.empty()) {
    spread(waiting.pop_back_val());
  }
}

const StackCut *StackParts::find(Value value) const {
  auto it = cuts.find(value);
  return it == cuts.end() ? nullptr : &it->second;
}

bool StackParts::isCutAs(Value value, const StackCut &cut) {
  const StackCut *found = find(value);
  return isClosed(value) || (found && *found == cut);
}

void StackParts::spreadLoop(Operation *op, const ShardingRule &rule,
                            unsigned factor, ArrayRef<int64_t> sizes) {
  LongerLoops loops = getLoops(rule, factor, rule.factors[factor].size);
  auto visit = [&](Value value, const TensorFactors &tensor) {
    llvm::SmallBitVector dims = loops.getDims(tensor);
    if (dims.any()) {
      note(value, {static_cast<unsigned>(dims.find_first()),
                   SmallVector<int64_t>(sizes)});
    }
  };
  for (auto [value, tensor] : llvm::zip(op->getOperands(), rule.operands)) {
    visit(value, tensor);
  }
  for (auto [value, tensor] : llvm::zip(op->getResults(), rule.results)) {
    visit(value, tensor);
  }
}

void StackParts::spreadReshape(Value from, Value to) {
  if (const StackCut *cut = find(from)) {
    if (std::optional<StackCut> same = reshaped(*cut, from, to)) {
      note(to, *same);
    }
  }
}

void StackParts::spread(Operation *op) {
  if (!isReached(op->getBlock())) {
    return;
  }
  if (isBranching(op) || isa<ReturnOp>(op)) {
    spreadBranches(op);
    return;
  }
  if (isa<OptimizationBarrierOp>(op)) {
    if (!isOfFunction(op)) {
      return;
    }
    for (auto [operand, result] :
         llvm::zip(op->getOperands(), op->getResults())) {
      const StackCut *of = find(operand) ? find(operand) : find(result);
      if (of) {
        StackCut cut = *of;
        note(operand, cut);
        note(result, cut);
      }
    }
    return;
  }
  if (isa<ReshapeOp>(op)) {
    spreadReshape(op->getOperand(0), op->getResult(0));
    spreadReshape(op->getResult(0), op->getOperand(0));
    return;
  }
  const ShardingRule *rule = getRule(op);
  if (!rule) {
    return;
  }
  auto visit = [&](Value value, const TensorFactors &tensor) {
    const StackCut *cut = find(value);
    std::optional<unsigned> factor =
        cut ? findLoop(*rule, tensor, cut->dim) : std::nullopt;
    // What is scattered or looked up by number belongs to no part.
    if (factor && rule->factors[*factor].kind != FactorKind::Replicated &&
        canCut(op, *rule, *factor)) {
      spreadLoop(op, *rule, *factor, SmallVector<int64_t>(cut->sizes));
    }
  };
  for (auto [value, tensor] : llvm::zip(op->getOperands(), rule->operands)) {
    visit(value, tensor);
  }
  for (auto [value, tensor] : llvm::zip(op->getResults(), rule->results)) {
    visit(value, tensor);
  }
}

//===----------------------------------------------------------------------===//
// Making parts
//===----------------------------------------------------------------------===//

Value StackParts::get(Value value, const StackCut &cut, unsigned part) {
  if (!isClosed(value)) {
    return get(value, part);
  }
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements = constant ? dyn_cast<DenseElementsAttr>(constant.getValue())
                           : DenseElementsAttr();
  if (elements && elements.isSplat()) {
    RankedTensorType type = getPartType(value, cut, part);
    OpBuilder builder(constant);
    return ConstantOp::create(builder, constant.getLoc(), type,
                              elements.resizeSplat(type))
        .getResult();
  }
  return makePart(cast<OpResult>(value), cut, part);
}

void StackParts::set(Value value, ArrayRef<Value> own) {
  parts[value].assign(own.begin(), own.end());
}

Value StackParts::get(Value value, unsigned part) {
  const StackCut *found = find(value);
  assert(found && "the tensor is whole");
  StackCut cut = *found;
  if (Value made =
          parts.lookup(value).empty() ? Value() : parts.lookup(value)[part]) {
    return made;
  }
  Value made = make(value, cut, part);
  SmallVector<Value> &own = parts[value];
  own.resize(cut.size());
  own[part] = made;
  return made;
}

Value StackParts::make(Value value, const StackCut &cut, unsigned part) {
  auto result = dyn_cast<OpResult>(value);
  if (!result) {
    return slice(value, cut, part);
  }
  Operation *maker = result.getOwner();
  if (isa<OptimizationBarrierOp>(maker)) {
    return throughBarrier(result, cut, part);
  }
  if (isBranching(maker)) {
    return throughBranches(result, cut, part);
  }
  if (auto concatenate = dyn_cast<ConcatenateOp>(maker);
      concatenate && concatenate.getDimension() == cut.dim) {
    if (Value joined = joinOperands(concatenate, cut, part)) {
      return joined;
    }
    return slice(value, cut, part);
  }
  return makePart(result, cut, part);
}

/// Operands may be cut elsewhere.
bool StackParts::areCut(ValueRange operands, const LongerLoops &loops,
                        ArrayRef<int64_t> sizes) {
  for (auto [operand, tensor] : llvm::zip(operands, loops.rule.operands)) {
    const StackCut *of = find(operand);
    if (loops.getDims(tensor).any() && !isClosed(operand) &&
        (!of || !loops.getDims(tensor)[of->dim] ||
         ArrayRef(of->sizes) != sizes)) {
      return false;
    }
  }
  return true;
}

Value StackParts::reshapePart(ReshapeOp reshape, const StackCut &cut,
                              unsigned part) {
  Value operand = reshape.getOperand(), result = reshape.getResult();
  std::optional<StackCut> same = reshaped(cut, result, operand);
  if (!same || !isCutAs(operand, *same)) {
    return slice(result, cut, part);
  }
  OpBuilder builder(reshape);
  auto remade = ReshapeOp::create(builder, reshape.getLoc(),
                                  getPartType(result, cut, part),
                                  get(operand, *same, part));
  made.insert(remade);
  return remade.getResult();
}

Value StackParts::makePart(OpResult result, const StackCut &cut,
                           unsigned part) {
  Operation *maker = result.getOwner();
  if (auto reshape = dyn_cast<ReshapeOp>(maker)) {
    return reshapePart(reshape, cut, part);
  }
  const ShardingRule *rule = getRule(maker);
  std::optional<unsigned> factor;
  if (rule) {
    factor = findLoop(*rule, rule->results[result.getResultNumber()], cut.dim);
  }
  if (!factor || rule->factors[*factor].kind != FactorKind::Parallel ||
      rule->factors[*factor].hasExchange() || !canCut(maker, *rule, *factor)) {
    return slice(result, cut, part);
  }
  LongerLoops loops = getLoops(*rule, *factor, cut.sizes[part]);
  if (!areCut(maker->getOperands(), loops, cut.sizes)) {
    return slice(result, cut, part);
  }
  OpBuilder builder(maker);
  Operation *remade = remake(builder, maker, cut, part, loops);
  for (OpResult other : maker->getResults()) {
    const StackCut *of = find(other);
    const TensorFactors &tensor = rule->results[other.getResultNumber()];
    if (of && of->sizes == cut.sizes && loops.getDims(tensor)[of->dim]) {
      SmallVector<Value> &own = parts[other];
      own.resize(cut.size());
      own[part] = remade->getResult(other.getResultNumber());
    }
  }
  return remade->getResult(result.getResultNumber());
}

Operation *StackParts::remake(OpBuilder &builder, Operation *op,
                              const StackCut &cut, unsigned part,
                              const LongerLoops &loops) {
  SmallVector<Value> operands;
  for (auto [operand, tensor] :
       llvm::zip(op->getOperands(), loops.rule.operands)) {
    int dim = loops.getDims(tensor).find_first();
    operands.push_back(
        dim < 0 ? Value(operand)
                : get(operand, {static_cast<unsigned>(dim), cut.sizes}, part));
  }
  Operation *remade = padOperator(builder, op, operands, loops);
  made.insert(remade);
  return remade;
}

/// Operands that together are the part.
Value StackParts::joinOperands(ConcatenateOp concatenate, const StackCut &cut,
                               unsigned part) {
  int64_t first = cut.getStart(part), last = first + cut.sizes[part], at = 0;
  SmallVector<Value> own;
  for (Value operand : concatenate.getOperands()) {
    int64_t end = at + cast<RankedTensorType>(operand.getType())
                           .getDimSize(static_cast<unsigned>(cut.dim));
    if (at < last && end > first) {
      if (at < first || end > last) {
        return {};
      }
      own.push_back(operand);
    }
    at = end;
  }
  if (own.size() == 1) {
    return own.front();
  }
  OpBuilder builder(concatenate);
  auto joined = ConcatenateOp::create(builder, concatenate.getLoc(),
                                      getPartType(concatenate, cut, part), own,
                                      concatenate.getDimension());
  made.insert(joined);
  return joined.getResult();
}

Value StackParts::slice(Value value, const StackCut &cut, unsigned part) {
  auto type = cast<RankedTensorType>(value.getType());
  SmallVector<int64_t> starts(type.getRank(), 0), limits(type.getShape()),
      strides(type.getRank(), 1);
  starts[cut.dim] = cut.getStart(part);
  limits[cut.dim] = starts[cut.dim] + cut.sizes[part];
  OpBuilder builder(function.getContext());
  builder.setInsertionPointAfterValue(value);
  auto sliced =
      SliceOp::create(builder, value.getLoc(), getPartType(value, cut, part),
                      value, starts, limits, strides);
  made.insert(sliced);
  return sliced.getResult();
}

void StackParts::eraseUnused() {
  llvm::DenseSet<Operation *> erased;
  Block &block = function.getBody().front();
  for (Operation &op :
       llvm::make_early_inc_range(llvm::reverse(block.getOperations()))) {
    if (isBranching(&op)) {
      dropUnusedResults(&op);
    }
    if (isOpTriviallyDead(&op) && !standIns.contains(&op)) {
      op.walk([&](Operation *inner) {
        erased.insert(inner);
        made.erase(inner);
      });
      op.erase();
    }
  }
  for (auto &[barrier, own] : standIns) {
    llvm::erase_if(own, [&](const auto &standIn) {
      return erased.contains(standIn.second);
    });
  }
}

void StackParts::finish() {
  eraseUnused();
  for (auto &[barrier, own] : standIns) {
    rebuild(barrier);
  }
}

} // namespace mlir::alpa
