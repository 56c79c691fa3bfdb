//===- JoinedRows.cpp - Batches that are put side by side -----------------===//

#include "cpp/transforms/JoinedRows.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "dialects/alpa/ShardingRule.h"
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
  others.clear();
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
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
    return visitWhile(loop);
  }
  if (isa<stablehlo::CaseOp, stablehlo::IfOp>(op)) {
    return visitBranches(op);
  }
  bool isOfRows = false;
  forEachUsedValue(
      op, [&](Value value) { isOfRows |= getOrder(value) != nullptr; });
  if (!isOfRows) {
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

/// The loop of a rule that runs over the rows of an operator's operands.
std::optional<JoinedRows::Loop> JoinedRows::findLoop(Operation *op,
                                                     const ShardingRule &rule) {
  std::optional<Loop> found;
  for (OpOperand &operand : op->getOpOperands()) {
    const JoinedOrder *order = getOrder(operand.get());
    if (!order) {
      continue;
    }
    const DimFactors &factors =
        rule.operands[operand.getOperandNumber()][order->dim];
    if (factors.empty() || looksUp(operand, order->dim)) {
      return std::nullopt;
    }
    Loop own{factors.front(), {}, origins.lookup(operand.get())};
    int64_t inner = llvm::sum_of(order->sizes) / rule.factors[own.factor].size;
    for (int64_t size : order->sizes) {
      if (size % inner != 0 || size / inner % numParts != 0) {
        return std::nullopt;
      }
      own.sizes.push_back(size / inner);
    }
    if (found && (found->factor != own.factor || found->sizes != own.sizes)) {
      return std::nullopt;
    }
    if (found) {
      classes.unionSets(found->origin, own.origin);
    }
    found = own;
  }
  return found;
}

/// Rows of a dimension, of whose factors that of a loop is the slowest.
JoinedOrder JoinedRows::getOrder(const Loop &loop, int64_t dim, int64_t size) {
  JoinedOrder order{{}, dim};
  int64_t inner = size / llvm::sum_of(loop.sizes);
  for (int64_t each : loop.sizes) {
    order.sizes.push_back(each * inner);
  }
  return order;
}

/// Brings the operands that a loop runs over into the order of its rows, where
/// they have another: positions, random bits. False if they cannot be.
bool JoinedRows::orderOperands(Operation *op, const ShardingRule &rule,
                               const Loop &loop) {
  for (OpOperand &operand : op->getOpOperands()) {
    const TensorFactors &dims = rule.operands[operand.getOperandNumber()];
    const JoinedOrder *order = getOrder(operand.get());
    for (auto [dim, factors] : llvm::enumerate(dims)) {
      bool isSame = order ? order->dim == static_cast<int64_t>(dim)
                          : isUniform(operand.get(), dim);
      if (!llvm::is_contained(factors, loop.factor) || isSame) {
        continue;
      }
      if (order || factors.front() != loop.factor || looksUp(operand, dim)) {
        return false;
      }
      int64_t size = getTensor(operand.get()).getDimSize(dim);
      others.emplace_back(&operand, getOrder(loop, dim, size));
    }
  }
  return true;
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
  std::optional<Loop> loop =
      rule && !isOther ? findLoop(op, *rule) : std::nullopt;
  if (!loop) {
    return false;
  }
  const Factor &factor = rule->factors[loop->factor];
  bool isFree = factor.kind == FactorKind::Parallel ||
                factor.kind == FactorKind::Reduction;
  if (!isFree || factor.hasExchange() || !orderOperands(op, *rule, *loop)) {
    return false;
  }
  for (auto [result, dims] : llvm::zip(op->getResults(), rule->results)) {
    bool isOfRows = llvm::any_of(dims, [&](const DimFactors &factors) {
      return llvm::is_contained(factors, loop->factor);
    });
    std::optional<int64_t> dim = findMajor(dims, loop->factor);
    if (isOfRows && !dim) {
      return false;
    }
    if (dim) {
      int64_t size = getTensor(result).getDimSize(*dim);
      set(result, getOrder(*loop, *dim, size), loop->origin);
    }
  }
  return true;
}

} // namespace mlir::alpa
