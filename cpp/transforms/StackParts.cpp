//===- StackParts.cpp - Tensors in parts ----------------------------------===//

#include "cpp/transforms/StackParts.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/LayerScopes.h"
#include "dialects/alpa/DataFlow.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include <map>

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
  return {rule, factors, rule.factors[factor].size, size};
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
    return isOfFunction(maker) ? throughBarrier(result, part)
                               : slice(value, cut, part);
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

Value StackParts::makePart(OpResult result, const StackCut &cut,
                           unsigned part) {
  Operation *maker = result.getOwner();
  const ShardingRule *rule = getRule(maker);
  std::optional<unsigned> factor;
  if (rule) {
    factor = findLoop(*rule, rule->results[result.getResultNumber()], cut.dim);
  }
  if (!factor || rule->factors[*factor].kind != FactorKind::Parallel ||
      !canCut(maker, *rule, *factor)) {
    return slice(result, cut, part);
  }
  LongerLoops loops = getLoops(*rule, *factor, cut.sizes[part]);
  // Operands may be cut elsewhere.
  for (auto [operand, tensor] :
       llvm::zip(maker->getOperands(), rule->operands)) {
    const StackCut *of = find(operand);
    if (loops.getDims(tensor).any() && !isClosed(operand) &&
        (!of || !loops.getDims(tensor)[of->dim] || of->sizes != cut.sizes)) {
      return slice(result, cut, part);
    }
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

/// A stand-in, until it is known what else goes through the barrier.
Value StackParts::throughBarrier(OpResult result, unsigned part) {
  Operation *barrier = result.getOwner();
  Value own = get(barrier->getOperand(result.getResultNumber()), part);
  OpBuilder builder(barrier);
  auto standIn = OptimizationBarrierOp::create(builder, barrier->getLoc(),
                                               own.getType(), own);
  standIns[barrier].emplace_back(part, standIn);
  return standIn->getResult(0);
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

/// A barrier of some of the values that go through another.
static Operation *makeBarrier(Operation *barrier, ArrayRef<Value> taken,
                              MutableArrayRef<Value> replaced) {
  OpBuilder builder(barrier);
  auto made = OptimizationBarrierOp::create(
      builder, barrier->getLoc(), ValueRange(taken).getTypes(), taken);
  made->setDiscardableAttrs(barrier->getDiscardableAttrDictionary());
  for (auto [before, after] : llvm::zip(replaced, made->getResults())) {
    before.replaceAllUsesWith(after);
  }
  return made;
}

/// Barriers of what is needed of one, and of what goes through it in parts.
void StackParts::rebuild(Operation *barrier) {
  SmallVector<std::pair<unsigned, Operation *>> own = standIns.lookup(barrier);
  // By part, behind those that are whole.
  std::map<unsigned, std::pair<SmallVector<Value>, SmallVector<Value>>> groups;
  auto take = [&](unsigned group, Value operand, Value result) {
    groups[group].first.push_back(operand);
    groups[group].second.push_back(result);
  };
  for (auto [operand, result] :
       llvm::zip(barrier->getOperands(), barrier->getResults())) {
    if (!result.use_empty()) {
      take(0, operand, result);
    }
  }
  bool isInLayer = getScopeLayer(getScope(barrier->getLoc())).has_value();
  for (auto [part, standIn] : own) {
    take(isInLayer ? part + 1 : 0, standIn->getOperand(0),
         standIn->getResult(0));
  }
  for (auto &[group, values] : groups) {
    Operation *rebuilt = makeBarrier(barrier, values.first, values.second);
    if (group > 0) {
      made.insert(rebuilt);
    }
  }
  for (auto [part, standIn] : own) {
    standIn->erase();
  }
  barrier->erase();
}

} // namespace mlir::alpa
