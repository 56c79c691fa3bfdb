//===- MergedProducts.cpp - Products that are computed as one -------------===//

#include "cpp/analysis/MergedProducts.h"

#include "cpp/analysis/DataFlow.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"
#include <optional>

namespace mlir::alpa {

using Products = SmallVector<Operation *>;

/// Of two products that are joined one has at most so many bytes, with what it
/// reads (`xla_gpu_dot_merger_threshold_mb`).
static constexpr double kSmallProduct = 32 << 20;

/// Operators that lead from a parameter to what a product reads of it.
static constexpr unsigned kLongestForm = 8;

/// True for a parameter in another shape or type, perhaps gathered.
static bool isParameter(Value value) {
  for (unsigned step = 0; step < kLongestForm; ++step) {
    Operation *maker = value.getDefiningOp();
    if (!maker) {
      return true;
    }
    if (!isa<stablehlo::ConvertOp, stablehlo::ReshapeOp, stablehlo::TransposeOp,
             stablehlo::AllGatherOp, stablehlo::OptimizationBarrierOp>(maker)) {
      return false;
    }
    value = isa<stablehlo::OptimizationBarrierOp>(maker)
                ? maker->getOperand(cast<OpResult>(value).getResultNumber())
                : maker->getOperand(0);
  }
  return false;
}

/// True if products and elementwise fusions alone read a value.
static bool isReadInside(Value value, FusionRoles &roles) {
  return llvm::all_of(value.getUsers(), [&](Operation *user) {
    if (user->getBlock() != value.getParentBlock() ||
        user->hasTrait<OpTrait::IsTerminator>()) {
      return false;
    }
    switch (roles.get(user)) {
    case FusionRole::Kernel:
      return isa<stablehlo::DotGeneralOp>(user);
    case FusionRole::View:
      return isReadInside(user->getResult(0), roles);
    default:
      return true;
    }
  });
}

namespace {

/// What products that are joined have in common.
struct Likeness {
  Value shared;
  unsigned place;
  Type element, otherElement;
  ArrayRef<int64_t> left, right;

  bool operator==(const Likeness &other) const {
    return shared == other.shared && place == other.place &&
           element == other.element && otherElement == other.otherElement &&
           left == other.left && right == other.right;
  }
};

/// Products that read one value in one way.
struct Group {
  Likeness likeness;
  Products products;
  /// Of operands and result, all of them together.
  double bytes;
};

} // namespace

static double getBytes(Operation *op) {
  double bytes = getTensorBytes(op->getResult(0).getType());
  for (Value operand : op->getOperands()) {
    bytes += getTensorBytes(operand.getType());
  }
  return bytes;
}

/// How a product with a parameter is like others; nothing for other operators.
static std::optional<Likeness> getLikeness(Operation *op, FusionRoles &roles) {
  auto dot = dyn_cast<stablehlo::DotGeneralOp>(op);
  if (!dot ||
      !dot.getDotDimensionNumbers().getLhsBatchingDimensions().empty() ||
      !isReadInside(dot.getResult(), roles)) {
    return std::nullopt;
  }
  bool isRight = isParameter(dot.getRhs());
  if (isRight == isParameter(dot.getLhs())) {
    return std::nullopt;
  }
  auto numbers = dot.getDotDimensionNumbers();
  unsigned place = isRight ? 0 : 1;
  return Likeness{op->getOperand(place),
                  place,
                  getElementTypeOrSelf(dot.getType()),
                  getElementTypeOrSelf(op->getOperand(1 - place).getType()),
                  numbers.getLhsContractingDimensions(),
                  numbers.getRhsContractingDimensions()};
}

llvm::MapVector<Operation *, Products> findMergedProducts(Block &block,
                                                          FusionRoles &roles) {
  SmallVector<Group> groups;
  DenseMap<Value, SmallVector<unsigned, 2>> byShared;
  for (Operation &op : block) {
    std::optional<Likeness> likeness = getLikeness(&op, roles);
    if (!likeness) {
      continue;
    }
    double bytes = getBytes(&op);
    SmallVector<unsigned, 2> &own = byShared[likeness->shared];
    auto joined = llvm::find_if(own, [&](unsigned number) {
      return groups[number].likeness == *likeness &&
             std::min(groups[number].bytes, bytes) <= kSmallProduct;
    });
    if (joined == own.end()) {
      own.push_back(groups.size());
      groups.push_back({*likeness, {&op}, bytes});
      continue;
    }
    Group &group = groups[*joined];
    group.products.push_back(&op);
    group.bytes += bytes - getTensorBytes(likeness->shared.getType());
  }
  llvm::MapVector<Operation *, Products> found;
  for (Group &group : groups) {
    if (group.products.size() > 1) {
      found[group.products.front()] = group.products;
    }
  }
  return found;
}

Operation *getSlicedProduct(OpOperand &operand, SmallVector<int64_t> &order) {
  auto reader = dyn_cast<stablehlo::DotGeneralOp>(operand.getOwner());
  if (!reader) {
    return nullptr;
  }
  auto numbers = reader.getDotDimensionNumbers();
  bool isLeft = operand.getOperandNumber() == 0;
  ArrayRef<int64_t> batch = isLeft ? numbers.getLhsBatchingDimensions()
                                   : numbers.getRhsBatchingDimensions();
  ArrayRef<int64_t> contracting = isLeft
                                      ? numbers.getLhsContractingDimensions()
                                      : numbers.getRhsContractingDimensions();
  int64_t rank = cast<RankedTensorType>(operand.get().getType()).getRank();
  SmallVector<int64_t> free;
  for (int64_t dim = 0; dim < rank; ++dim) {
    if (!llvm::is_contained(batch, dim) &&
        !llvm::is_contained(contracting, dim)) {
      free.push_back(dim);
    }
  }
  // As XLA writes a product: batch, rows and sums, or batch, sums and columns.
  order.assign(batch.begin(), batch.end());
  llvm::append_range(order, isLeft ? ArrayRef<int64_t>(free) : contracting);
  llvm::append_range(order, isLeft ? contracting : ArrayRef<int64_t>(free));
  Value value = operand.get();
  while (Operation *maker = value.getDefiningOp()) {
    if (isa<stablehlo::DotGeneralOp>(maker)) {
      return maker;
    }
    if (auto transpose = dyn_cast<stablehlo::TransposeOp>(maker)) {
      for (int64_t &dim : order) {
        dim = transpose.getPermutation()[dim];
      }
    } else if (isa<stablehlo::ReshapeOp>(maker)) {
      order.clear();
    } else if (!isa<ConstrainOp, ResolveOp>(maker)) {
      return nullptr;
    }
    value = maker->getOperand(0);
  }
  return nullptr;
}

} // namespace mlir::alpa
