//===- JoinedRows.cpp - Batches that are put side by side -----------------===//

#include "cpp/transforms/JoinedRows.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "cpp/transforms/SortedRows.h"
#include "dialects/alpa/ShardingRule.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "stablehlo/dialect/ChloOps.h"

namespace mlir::alpa {

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

JoinedRows::JoinedRows(Block &block, int64_t numParts) : numParts(numParts) {
  while (!follow(block)) {
  }
}

/// False if some rows were left out, so that all has to be looked at again.
bool JoinedRows::follow(Block &block) {
  orders.clear();
  origins.clear();
  classes = {};
  wanted.clear();
  assumed.clear();
  known.clear();
  steps.clear();
  if (!visit(block)) {
    return false;
  }
  for (Value value : block.getTerminator()->getOperands()) {
    if (getOrder(value)) {
      return exclude(value);
    }
  }
  llvm::DenseSet<Operation *> leaders;
  for (Operation *op : wanted) {
    leaders.insert(classes.getLeaderValue(op));
  }
  bool isDone = true;
  for (const auto *member : classes) {
    Operation *op = member->getData();
    if (!leaders.contains(classes.getLeaderValue(op))) {
      isDone &= !excluded.insert(op).second;
    }
  }
  return isDone;
}

bool JoinedRows::visit(Block &block) {
  return llvm::all_of(block.without_terminator(),
                      [&](Operation &op) { return visit(&op); });
}

const JoinedOrder *JoinedRows::getOrder(Value value) const {
  auto found = orders.find(value);
  return found == orders.end() ? nullptr : &found->second;
}

void JoinedRows::set(Value value, JoinedOrder order, Operation *origin) {
  if (order.sizes.size() > 1) {
    orders[value] = std::move(order);
    origins[value] = origin;
  }
}

bool JoinedRows::exclude(Value value) {
  Operation *leader = classes.getLeaderValue(origins.lookup(value));
  for (auto member = classes.findLeader(leader); member != classes.member_end();
       ++member) {
    excluded.insert(*member);
  }
  return false;
}

bool JoinedRows::excludeAll() {
  for (const auto *member : classes) {
    excluded.insert(member->getData());
  }
  return false;
}

bool JoinedRows::exclude(Operation *op) {
  forEachUsedValue(op, [&](Value value) {
    if (getOrder(value)) {
      exclude(value);
    }
  });
  return false;
}

bool JoinedRows::visit(Operation *op) {
  if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op);
      concatenate && visitConcatenate(concatenate)) {
    return true;
  }
  if (auto pad = dyn_cast<stablehlo::PadOp>(op); pad && visitPad(pad)) {
    return true;
  }
  Value first;
  forEachUsedValue(op, [&](Value value) {
    first = first || !getOrder(value) ? first : value;
  });
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
    return visitWhile(loop);
  }
  if (!first) {
    return true;
  }
  if (isGradientBarrier(op)) {
    return exclude(op);
  }
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    return visitBarrier(op);
  }
  if (auto slice = dyn_cast<stablehlo::SliceOp>(op)) {
    return visitSlice(slice) || exclude(op);
  }
  return visitByRule(op) || exclude(op);
}

//===----------------------------------------------------------------------===//
// Rows that are joined and taken apart
//===----------------------------------------------------------------------===//

/// Along the first dimension, batches whose parts can be joined as well.
bool JoinedRows::visitConcatenate(stablehlo::ConcatenateOp op) {
  auto dim = static_cast<int64_t>(op.getDimension());
  JoinedOrder order{{}, dim};
  bool isOrdered = false;
  for (Value operand : op.getInputs()) {
    const JoinedOrder *own = getOrder(operand);
    isOrdered |= own != nullptr;
    if (own && own->dim == dim) {
      llvm::append_range(order.sizes, own->sizes);
    } else if (own) {
      return false;
    } else {
      order.sizes.push_back(getTensor(operand).getDimSize(dim));
    }
  }
  bool isOfBatches = llvm::all_of(order.sizes, [&](int64_t size) {
    return size > 0 && size % numParts == 0;
  });
  if (!isOfBatches || (dim != 0 && !isOrdered) || excluded.contains(op)) {
    return false;
  }
  classes.insert(op);
  for (Value operand : op.getInputs()) {
    if (getOrder(operand)) {
      classes.unionSets(op, origins.lookup(operand));
    }
  }
  known.push_back(order);
  steps.emplace_back(op, dim);
  set(op.getResult(), std::move(order), op);
  return true;
}

/// Some of the tensors that were joined.
bool JoinedRows::visitSlice(stablehlo::SliceOp op) {
  const JoinedOrder *order = getOrder(op.getOperand());
  int64_t dim = order->dim, start = op.getStartIndices()[dim],
          limit = op.getLimitIndices()[dim];
  Operation *origin = origins.lookup(op.getOperand());
  if (op.getStrides()[dim] != 1) {
    return false;
  }
  if (start == 0 && limit == getTensor(op.getOperand()).getDimSize(dim)) {
    set(op.getResult(), *order, origin);
    return true;
  }
  JoinedOrder left{{}, dim};
  int64_t at = 0, taken = 0;
  for (int64_t size : order->sizes) {
    if (at >= start && at + size <= limit) {
      left.sizes.push_back(size);
      taken += size;
    }
    at += size;
  }
  if (taken != limit - start) {
    return false;
  }
  if (!isGradient(op)) {
    wanted.insert(origin);
  }
  steps.emplace_back(op, dim);
  set(op.getResult(), std::move(left), origin);
  return true;
}

/// How a slice is differentiated: rows stand where they were taken from, with
/// zeros for the others.
bool JoinedRows::visitPad(stablehlo::PadOp op) {
  RankedTensorType type = getTensor(op.getResult());
  const JoinedOrder *own = getOrder(op.getOperand());
  if (!isGradient(op) || excluded.contains(op) ||
      !isZero(op.getPaddingValue())) {
    return false;
  }
  for (const JoinedOrder &order : known) {
    int64_t dim = order.dim;
    if (dim >= type.getRank() ||
        llvm::sum_of(order.sizes) != type.getDimSize(dim) ||
        op.getInteriorPadding()[dim] != 0) {
      continue;
    }
    int64_t low = op.getEdgePaddingLow()[dim],
            limit = low + getTensor(op.getOperand()).getDimSize(dim), at = 0;
    SmallVector<int64_t> inside;
    for (int64_t size : order.sizes) {
      if (at >= low && at + size <= limit) {
        inside.push_back(size);
      }
      at += size;
    }
    bool isAll = low == 0 && limit == at;
    bool isPlaced =
        low >= 0 && limit <= at && !isAll &&
        llvm::sum_of(inside) == limit - low &&
        (own ? own->dim == dim && ArrayRef(own->sizes) == ArrayRef(inside)
             : inside.size() == 1);
    if (isPlaced) {
      classes.insert(op);
      if (own) {
        classes.unionSets(op, origins.lookup(op.getOperand()));
      }
      steps.emplace_back(op, dim);
      set(op.getResult(), order, op);
      return true;
    }
  }
  return false;
}

//===----------------------------------------------------------------------===//
// Rows in any order
//===----------------------------------------------------------------------===//

bool JoinedRows::visitBarrier(Operation *op) {
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    if (const JoinedOrder *order = getOrder(operand)) {
      set(result, JoinedOrder(*order), origins.lookup(operand));
    }
  }
  return true;
}

/// Whether elements are the same along a dimension; of what a loop carries, as
/// long as its turns leave it so.
bool JoinedRows::isUniform(Value value, int64_t dim) {
  value = stablehlo::getBeforeLoops(value);
  auto argument = dyn_cast<BlockArgument>(value);
  auto loop =
      argument
          ? dyn_cast<stablehlo::WhileOp>(argument.getOwner()->getParentOp())
          : stablehlo::WhileOp();
  if (!loop) {
    return isUniformAlong(value, dim);
  }
  assumed.insert({value, dim});
  return isUniform(loop->getOperand(argument.getArgNumber()), dim);
}

/// Whether what was taken to be the same along a dimension is handed on so, or
/// has an order.
bool JoinedRows::keepsAssumed(stablehlo::WhileOp op) {
  Block &body = op.getBody().front(), &condition = op.getCond().front();
  // To look at what is handed on may take more to be the same.
  for (size_t before = 0; before != assumed.size();) {
    before = assumed.size();
    for (auto [value, dim] : llvm::to_vector(assumed)) {
      auto argument = cast<BlockArgument>(value);
      const JoinedOrder *order = getOrder(value);
      bool isOfLoop =
          argument.getOwner() == &body || argument.getOwner() == &condition;
      if (isOfLoop && !(order && order->dim == dim) &&
          !isUniform(body.getTerminator()->getOperand(argument.getArgNumber()),
                     dim)) {
        return false;
      }
    }
  }
  return true;
}

/// What a loop hands on has the same order in all of its turns.
bool JoinedRows::visitWhile(stablehlo::WhileOp op) {
  Block &body = op.getBody().front(), &condition = op.getCond().front();
  auto carry = [&](unsigned number, const JoinedOrder &order,
                   Operation *origin) {
    for (Value value :
         {Value(body.getArgument(number)), Value(condition.getArgument(number)),
          Value(op->getResult(number))}) {
      set(value, order, origin);
    }
  };
  for (auto [number, operand] : llvm::enumerate(op->getOperands())) {
    if (const JoinedOrder *order = getOrder(operand)) {
      carry(number, JoinedOrder(*order), origins.lookup(operand));
    }
  }
  size_t numSteps = steps.size(), numKnown = known.size();
  for (bool isSame = false; !isSame;) {
    steps.resize(numSteps);
    known.resize(numKnown);
    if (!visit(condition) || !visit(body)) {
      return false;
    }
    isSame = true;
    for (OpOperand &returned : body.getTerminator()->getOpOperands()) {
      unsigned number = returned.getOperandNumber();
      const JoinedOrder *made = getOrder(returned.get());
      const JoinedOrder *before = getOrder(body.getArgument(number));
      if (made && before && *made == *before) {
        classes.unionSets(origins.lookup(returned.get()),
                          origins.lookup(body.getArgument(number)));
      } else if (made && !before &&
                 isUniform(op->getOperand(number), made->dim)) {
        // Zeros that each turn adds to, or writes into.
        carry(number, JoinedOrder(*made), origins.lookup(returned.get()));
        isSame = false;
      } else if (made ||
                 (before && !isUniformAlong(returned.get(), before->dim))) {
        return made ? exclude(returned.get())
                    : exclude(Value(body.getArgument(number)));
      }
    }
  }
  return llvm::none_of(condition.getTerminator()->getOperands(),
                       [&](Value value) { return getOrder(value); }) ||
         exclude(condition.getTerminator());
}

/// Whether an operator looks at positions along a dimension of an operand.
static bool looksUp(OpOperand &operand, int64_t dim) {
  Operation *op = operand.getOwner();
  if (auto gather = dyn_cast<stablehlo::GatherOp>(op)) {
    return operand.getOperandNumber() == 0 &&
           llvm::is_contained(gather.getDimensionNumbers().getStartIndexMap(),
                              dim);
  }
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op)) {
    return operand.getOperandNumber() < scatter.getInputs().size() &&
           llvm::is_contained(scatter.getScatterDimensionNumbers()
                                  .getScatterDimsToOperandDims(),
                              dim);
  }
  if (isa<stablehlo::DynamicSliceOp, stablehlo::DynamicUpdateSliceOp>(op)) {
    return getTensor(op->getOperand(0)).getDimSize(dim) !=
           getTensor(isa<stablehlo::DynamicSliceOp>(op) ? op->getResult(0)
                                                        : op->getOperand(1))
               .getDimSize(dim);
  }
  if (auto reverse = dyn_cast<stablehlo::ReverseOp>(op)) {
    return llvm::is_contained(reverse.getDimensions(), dim);
  }
  if (auto pad = dyn_cast<stablehlo::PadOp>(op)) {
    return getTensor(op->getOperand(0)).getDimSize(dim) !=
               getTensor(op->getResult(0)).getDimSize(dim) ||
           pad.getEdgePaddingLow()[dim] != 0;
  }
  if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op)) {
    return static_cast<int64_t>(concatenate.getDimension()) == dim;
  }
  return false;
}

/// The dimension of which a factor is the slowest part; none if it is none.
static std::optional<int64_t> findMajor(const TensorFactors &dims,
                                        unsigned factor) {
  for (auto [dim, factors] : llvm::enumerate(dims)) {
    if (llvm::is_contained(factors, factor)) {
      return factors.front() == factor ? std::optional<int64_t>(dim)
                                       : std::nullopt;
    }
  }
  return std::nullopt;
}

/// By the sharding rule: rows are those of a loop whose iterations do not
/// depend on each other, or are combined in any order.
bool JoinedRows::visitByRule(Operation *op) {
  std::optional<ShardingRule> rule = getShardingRule(op);
  bool isOther =
      op->getNumRegions() > 0
          ? !isa<stablehlo::ReduceOp, stablehlo::ScatterOp, stablehlo::SortOp,
                 stablehlo::ReduceWindowOp, stablehlo::SelectAndScatterOp>(op)
          : isa<chlo::RaggedDotOp>(op);
  forEachCapture(op, [&](OpOperand &capture) {
    isOther |= getOrder(capture.get()) != nullptr;
  });
  if (!rule || isOther) {
    return false;
  }
  std::optional<unsigned> rows;
  SmallVector<int64_t, 2> sizes;
  Operation *origin = nullptr;
  for (OpOperand &operand : op->getOpOperands()) {
    const JoinedOrder *order = getOrder(operand.get());
    if (!order) {
      continue;
    }
    const DimFactors &factors =
        rule->operands[operand.getOperandNumber()][order->dim];
    if (factors.empty() || looksUp(operand, order->dim)) {
      return false;
    }
    unsigned factor = factors.front();
    int64_t inner = llvm::sum_of(order->sizes) / rule->factors[factor].size;
    SmallVector<int64_t, 2> own;
    for (int64_t size : order->sizes) {
      if (size % inner != 0 || size / inner % numParts != 0) {
        return false;
      }
      own.push_back(size / inner);
    }
    if (rows && (*rows != factor || own != sizes)) {
      return false;
    }
    rows = factor;
    sizes = own;
    Operation *joined = origins.lookup(operand.get());
    if (origin) {
      classes.unionSets(origin, joined);
    }
    origin = joined;
  }
  if (!rows) {
    return false;
  }
  const Factor &loop = rule->factors[*rows];
  bool isFree =
      loop.kind == FactorKind::Parallel || loop.kind == FactorKind::Reduction;
  if (!isFree || loop.hasExchange()) {
    return false;
  }
  for (OpOperand &operand : op->getOpOperands()) {
    for (auto [dim, factors] :
         llvm::enumerate(rule->operands[operand.getOperandNumber()])) {
      bool isOfRows = llvm::is_contained(factors, *rows);
      const JoinedOrder *order = getOrder(operand.get());
      bool isSame = order ? order->dim == static_cast<int64_t>(dim)
                          : isUniform(operand.get(), dim);
      if (isOfRows && !isSame) {
        return false;
      }
    }
  }
  for (auto [result, dims] : llvm::zip(op->getResults(), rule->results)) {
    bool isOfRows = llvm::any_of(dims, [&](const DimFactors &factors) {
      return llvm::is_contained(factors, *rows);
    });
    std::optional<int64_t> dim = findMajor(dims, *rows);
    if (isOfRows && !dim) {
      return false;
    }
    if (dim) {
      int64_t inner = getTensor(result).getDimSize(*dim) / loop.size;
      JoinedOrder order{{}, *dim};
      for (int64_t size : sizes) {
        order.sizes.push_back(size * inner);
      }
      set(result, std::move(order), origin);
    }
  }
  return true;
}

} // namespace mlir::alpa
