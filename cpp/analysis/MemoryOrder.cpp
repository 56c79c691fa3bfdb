//===- MemoryOrder.cpp - In which order a tensor lies in memory -----------===//

#include "cpp/analysis/MemoryOrder.h"

#include "cpp/analysis/FusionRole.h"
#include "dialects/alpa/DataFlow.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include <optional>

namespace mlir::alpa {

/// Dimensions of a value, slowest first; those of one element are left out.
using Order = SmallVector<int64_t>;

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

bool keepsOrder(Operation *op) {
  return op->getNumResults() == 1 &&
         (op->hasTrait<OpTrait::Elementwise>() ||
          isa<stablehlo::SelectOp, stablehlo::ClampOp>(op));
}

Value getReshaped(Value value) {
  auto reshape = value.getDefiningOp<stablehlo::ReshapeOp>();
  auto isMany = [](int64_t size) { return size > 1; };
  if (!reshape || !llvm::equal(llvm::make_filter_range(getShape(value), isMany),
                               llvm::make_filter_range(
                                   getShape(reshape.getOperand()), isMany))) {
    return value;
  }
  return reshape.getOperand();
}

llvm::SetVector<Value> findAlike(ArrayRef<Value> some,
                                 function_ref<bool(Value)> isPart) {
  llvm::SetVector<Value> found(some.begin(), some.end());
  auto addAlike = [&](Operation *op, Value value) {
    if (!op || op->getBlock() != value.getParentBlock() || !keepsOrder(op) ||
        getShape(op->getResult(0)) != getShape(value)) {
      return;
    }
    found.insert(op->getResult(0));
    for (Value operand : op->getOperands()) {
      if (getShape(operand) == getShape(value) && isPart(operand)) {
        found.insert(operand);
      }
    }
  };
  for (size_t i = 0; i < found.size(); ++i) {
    Value value = found[i];
    if (isa<BlockArgument>(value)) {
      continue;
    }
    addAlike(value.getDefiningOp(), value);
    for (Operation *user : value.getUsers()) {
      addAlike(user, value);
    }
  }
  return found;
}

/// The dimension that a collective gathers or scatters; -1 for others.
static int64_t getMovedDimension(Operation *op) {
  if (auto gather = dyn_cast<stablehlo::AllGatherOp>(op)) {
    return static_cast<int64_t>(gather.getAllGatherDim());
  }
  if (auto scatter = dyn_cast<stablehlo::ReduceScatterOp>(op)) {
    return static_cast<int64_t>(scatter.getScatterDimension());
  }
  return -1;
}

static Order getRows(Value value) {
  Order rows;
  for (auto [dim, size] : llvm::enumerate(getShape(value))) {
    if (size > 1) {
      rows.push_back(static_cast<int64_t>(dim));
    }
  }
  return rows;
}

/// True if a dimension is not the first of a value that has more than one
/// element.
static bool isInner(Value value, int64_t dim) {
  return dim >= 0 && llvm::any_of(getShape(value).take_front(dim),
                                  [](int64_t size) { return size > 1; });
}

bool movesDimension(Operation *collective) {
  return isInner(collective->getOperand(0), getMovedDimension(collective));
}

/// The order of a reshaped value; nothing if it is no view of the operand.
static std::optional<Order> reshape(const Order &order, Value operand,
                                    Value result) {
  ArrayRef<int64_t> from = getShape(operand), to = getShape(result);
  // The dimensions that each one becomes, or is the first of. Others are
  // merged into it.
  SmallVector<Order> becomes(from.size());
  llvm::SmallDenseMap<int64_t, int64_t> mergedBehind;
  size_t i = 0, j = 0;
  while (i < from.size() || j < to.size()) {
    int64_t left = 1, right = 1;
    Order group, made;
    do {
      bool takesLeft = i < from.size() && (left <= right || j == to.size());
      if (takesLeft) {
        if (from[i] > 1) {
          group.push_back(i);
        }
        left *= from[i++];
      } else {
        if (to[j] > 1) {
          made.push_back(j);
        }
        right *= to[j++];
      }
    } while (left != right);
    if (group.size() > 1 && made.size() > 1) {
      return std::nullopt;
    }
    if (!group.empty()) {
      becomes[group.front()] = made;
    }
    for (size_t k = 1; k < group.size(); ++k) {
      mergedBehind[group[k]] = group[k - 1];
    }
  }
  Order found;
  for (auto [place, dim] : llvm::enumerate(order)) {
    auto merged = mergedBehind.find(dim);
    if (merged == mergedBehind.end()) {
      llvm::append_range(found, becomes[dim]);
    } else if (place == 0 || order[place - 1] != merged->second) {
      return std::nullopt;
    }
  }
  return found;
}

/// The order in which a value lies that is `gathered` in another shape; nothing
/// if it is copied on the way.
static std::optional<Order> getOrder(Value value, Value gathered) {
  if (value == gathered) {
    Operation *maker = value.getDefiningOp();
    int64_t moved = maker ? getMovedDimension(maker) : -1;
    Order order = getRows(value);
    if (auto *it = llvm::find(order, moved); it != order.end()) {
      std::rotate(order.begin(), it, std::next(it));
    }
    return order;
  }
  Operation *op = value.getDefiningOp();
  if (auto dataFlow = dyn_cast_if_present<DataFlowOpInterface>(op)) {
    Value same =
        getUnchangedOperand(op, cast<OpResult>(value).getResultNumber());
    return same ? getOrder(same, gathered) : std::nullopt;
  }
  if (!op || op->getNumOperands() == 0) {
    return std::nullopt;
  }
  std::optional<Order> order = getOrder(op->getOperand(0), gathered);
  if (!order || !isa<stablehlo::ReshapeOp, stablehlo::TransposeOp>(op)) {
    return order;
  }
  if (isa<stablehlo::ReshapeOp>(op)) {
    return reshape(*order, op->getOperand(0), value);
  }
  ArrayRef<int64_t> permutation =
      cast<stablehlo::TransposeOp>(op).getPermutation();
  for (int64_t &dim : *order) {
    dim = std::distance(permutation.begin(), llvm::find(permutation, dim));
  }
  return order;
}

/// True if some dimensions follow each other in memory, as they stand.
static bool follow(const Order &order, ArrayRef<int64_t> dims) {
  Order kept = llvm::to_vector(llvm::make_filter_range(
      dims, [&](int64_t dim) { return llvm::is_contained(order, dim); }));
  auto first = llvm::find_if(
      order, [&](int64_t dim) { return !kept.empty() && dim == kept.front(); });
  return kept.size() <=
             static_cast<size_t>(std::distance(first, order.end())) &&
         std::equal(kept.begin(), kept.end(), first);
}

/// True if a product takes an operand in some order as a matrix.
static bool isMatrix(stablehlo::DotGeneralOp op, unsigned operand,
                     const Order &order) {
  auto numbers = op.getDotDimensionNumbers();
  bool isLeft = operand == 0;
  ArrayRef<int64_t> batch = isLeft ? numbers.getLhsBatchingDimensions()
                                   : numbers.getRhsBatchingDimensions();
  ArrayRef<int64_t> contracting = isLeft
                                      ? numbers.getLhsContractingDimensions()
                                      : numbers.getRhsContractingDimensions();
  Order free = llvm::to_vector(llvm::make_filter_range(
      getRows(op->getOperand(operand)), [&](int64_t dim) {
        return !llvm::is_contained(batch, dim) &&
               !llvm::is_contained(contracting, dim);
      }));
  return follow(order, batch) && follow(order, contracting) &&
         follow(order, free);
}

bool readsCopy(OpOperand &operand, Value gathered) {
  Operation *op = operand.getOwner();
  bool takesRows = op->hasTrait<OpTrait::IsTerminator>() ||
                   isa<DataFlowOpInterface>(op) || getMovedDimension(op) >= 0;
  auto product = dyn_cast<stablehlo::DotGeneralOp>(op);
  if (!takesRows && !product) {
    return false;
  }
  std::optional<Order> order = getOrder(operand.get(), gathered);
  if (!order) {
    return true;
  }
  if (product) {
    return !isMatrix(product, operand.getOperandNumber(), *order);
  }
  int64_t moved = getMovedDimension(op);
  return moved >= 0 ? order->empty() || order->front() != moved
                    : !llvm::is_sorted(*order);
}

bool multipliesCopy(OpOperand &operand, Value made) {
  auto product = dyn_cast<stablehlo::DotGeneralOp>(operand.getOwner());
  if (!product) {
    return false;
  }
  std::optional<Order> order = getOrder(operand.get(), made);
  return !order || !isMatrix(product, operand.getOperandNumber(), *order);
}

bool sendsMoved(Operation *collective) {
  auto exchange = dyn_cast<stablehlo::AllToAllOp>(collective);
  return exchange ? isInner(exchange->getOperand(0),
                            static_cast<int64_t>(exchange.getSplitDimension()))
                  : movesDimension(collective);
}

/// Where a dimension of an operand lies in the memory that it is read from.
static int64_t getPlace(Value operand, int64_t dim) {
  auto transpose = operand.getDefiningOp<stablehlo::TransposeOp>();
  return transpose ? transpose.getPermutation()[dim] : dim;
}

bool sumsInTwoOrders(Operation *op) {
  auto product = dyn_cast<stablehlo::DotGeneralOp>(op);
  if (!product) {
    return false;
  }
  auto numbers = product.getDotDimensionNumbers();
  ArrayRef<int64_t> shape = getShape(product.getLhs());
  SmallVector<std::pair<int64_t, int64_t>> places;
  for (auto [left, right] :
       llvm::zip_equal(numbers.getLhsContractingDimensions(),
                       numbers.getRhsContractingDimensions())) {
    if (shape[left] > 1) {
      places.push_back({getPlace(product.getLhs(), left),
                        getPlace(product.getRhs(), right)});
    }
  }
  llvm::sort(places);
  return !llvm::is_sorted(places, [](const auto &one, const auto &other) {
    return one.second < other.second;
  });
}

bool sendsCopy(Operation *collective, Value sent) {
  Operation *maker = sent.getDefiningOp();
  return sendsMoved(collective) &&
         (!maker || isa<DataFlowOpInterface>(maker) || !keepsShape(sent));
}

} // namespace mlir::alpa
