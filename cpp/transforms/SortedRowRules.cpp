//===- SortedRowRules.cpp - What operators do to each row -----------------===//

#include "cpp/transforms/ScoreLabels.h"
#include "cpp/transforms/SortedRows.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::alpa {

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

bool SortedRows::visitBarrier(Operation *op) {
  for (auto [operand, result] :
       llvm::zip(op->getOperands(), op->getResults())) {
    set(result, getOrder(operand));
    if (auto found = contents.find(operand); found != contents.end()) {
      Content content = found->second;
      contents.insert({result, content});
    }
  }
  return true;
}

bool SortedRows::visitOrdered(Operation *op) {
  bool isOrdered = llvm::any_of(op->getOperands(), [&](Value operand) {
    return getOrder(operand).has_value();
  });
  if (!isOrdered) {
    // Numbers that are the same whatever the order.
    return op->getNumRegions() == 0 || isa<stablehlo::ReduceOp>(op);
  }
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case([&](stablehlo::ReshapeOp reshape) { return visitReshape(reshape); })
      .Case([&](stablehlo::DotGeneralOp dot) { return visitProduct(dot); })
      .Case([&](stablehlo::ReduceOp reduce) { return visitReduce(reduce); })
      .Case([&](stablehlo::BroadcastInDimOp spread) {
        RowOrder order = *getOrder(spread.getOperand());
        int64_t to = spread.getBroadcastDimensions()[order.dim];
        return set(spread.getResult(), RowOrder{order.sort, to});
      })
      .Case([&](stablehlo::TransposeOp transpose) {
        RowOrder order = *getOrder(transpose.getOperand());
        const auto *to = llvm::find(transpose.getPermutation(), order.dim);
        return set(
            transpose.getResult(),
            RowOrder{order.sort, to - transpose.getPermutation().begin()});
      })
      .Default([&](Operation *each) { return visitAligned(each); });
}

/// All rows have to stay one dimension.
bool SortedRows::visitReshape(stablehlo::ReshapeOp op) {
  RowOrder order = *getOrder(op.getOperand());
  ArrayRef<int64_t> from = getTensor(op.getOperand()).getShape();
  ArrayRef<int64_t> to = getTensor(op.getResult()).getShape();
  auto getProduct = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1),
                           std::multiplies<>());
  };
  int64_t before = getProduct(from.take_front(order.dim));
  for (int64_t dim = 0; dim < static_cast<int64_t>(to.size()); ++dim) {
    if (to[dim] == from[order.dim] &&
        getProduct(to.take_front(dim)) == before) {
      return set(op.getResult(), RowOrder{order.sort, dim});
    }
  }
  return false;
}

bool SortedRows::visitProduct(stablehlo::DotGeneralOp op) {
  auto dims = op.getDotDimensionNumbers();
  std::optional<RowOrder> left = getOrder(op.getLhs()),
                          right = getOrder(op.getRhs());
  for (auto [lefts, rights, isSum] :
       {std::tuple(dims.getLhsBatchingDimensions(),
                   dims.getRhsBatchingDimensions(), false),
        std::tuple(dims.getLhsContractingDimensions(),
                   dims.getRhsContractingDimensions(), true)}) {
    for (auto [index, ofLeft, ofRight] : llvm::enumerate(lefts, rights)) {
      bool isLeft = left && left->dim == ofLeft;
      bool isRight = right && right->dim == ofRight;
      if (!isLeft && !isRight) {
        continue;
      }
      bool isAligned = (isLeft && isRight) ? left->sort == right->sort
                       : isLeft ? !right && isUniformAlong(op.getRhs(), ofRight)
                                : !left && isUniformAlong(op.getLhs(), ofLeft);
      if (!isAligned) {
        return false;
      }
      stablehlo::SortOp sort = isLeft ? left->sort : right->sort;
      return isSum ||
             set(op.getResult(), RowOrder{sort, static_cast<int64_t>(index)});
    }
  }
  if (left && right) {
    return false;
  }
  auto getFree = [](ArrayRef<int64_t> batch, ArrayRef<int64_t> sum,
                    int64_t end) {
    int64_t count = 0;
    for (int64_t dim = 0; dim < end; ++dim) {
      count += !llvm::is_contained(batch, dim) && !llvm::is_contained(sum, dim);
    }
    return count;
  };
  int64_t at = dims.getLhsBatchingDimensions().size();
  if (left) {
    at += getFree(dims.getLhsBatchingDimensions(),
                  dims.getLhsContractingDimensions(), left->dim);
    return set(op.getResult(), RowOrder{left->sort, at});
  }
  at += getFree(dims.getLhsBatchingDimensions(),
                dims.getLhsContractingDimensions(),
                getTensor(op.getLhs()).getRank()) +
        getFree(dims.getRhsBatchingDimensions(),
                dims.getRhsContractingDimensions(), right->dim);
  return set(op.getResult(), RowOrder{right->sort, at});
}

/// Of one tensor, in any order, or within rows.
bool SortedRows::visitReduce(stablehlo::ReduceOp op) {
  std::optional<RowOrder> order = getOrder(op.getInputs()[0]);
  bool isOne =
      order && llvm::all_of(op.getInputs(), [&](Value input) {
        auto own = getOrder(input);
        return own ? *own == *order : isUniformAlong(input, order->dim);
      });
  if (!isOne || llvm::any_of(op.getInitValues(), [&](Value init) {
        return getOrder(init).has_value();
      })) {
    return false;
  }
  if (llvm::is_contained(op.getDimensions(), order->dim)) {
    return op.getInputs().size() == 1;
  }
  int64_t at = order->dim -
               llvm::count_if(op.getDimensions(),
                              [&](int64_t dim) { return dim < order->dim; });
  for (Value result : op->getResults()) {
    set(result, RowOrder{order->sort, at});
  }
  return true;
}

/// Operators that compute each row of its operands' rows.
bool SortedRows::visitAligned(Operation *op) {
  std::optional<RowOrder> order;
  for (Value operand : op->getOperands()) {
    std::optional<RowOrder> own = getOrder(operand);
    if (own && order && !(*own == *order)) {
      return false;
    }
    order = own ? own : order;
  }
  int64_t dim = order->dim;
  bool isPossible = isElementwise(op);
  if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op)) {
    isPossible = static_cast<int64_t>(concatenate.getDimension()) != dim;
  } else if (auto slice = dyn_cast<stablehlo::SliceOp>(op)) {
    isPossible = getTensor(slice.getResult()).getDimSize(dim) ==
                 getTensor(slice.getOperand()).getDimSize(dim);
  }
  isPossible &= llvm::all_of(op->getOperands(), [&](Value operand) {
    return getOrder(operand) || isUniformAlong(operand, dim);
  });
  return isPossible && set(op->getResult(0), order);
}

} // namespace mlir::alpa
