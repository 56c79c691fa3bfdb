//===- Rounding.cpp - Numbers that are stored in other bits ---------------===//

#include "cpp/analysis/Rounding.h"

#include "dialects/alpa/Alpa.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// True for a product of f32 that XLA for TPU reads in 16 bits.
static bool roundsOperands(Operation *op) {
  ArrayAttr precision;
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
    precision = dot.getPrecisionConfigAttr();
  } else if (auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op)) {
    precision = convolution.getPrecisionConfigAttr();
  } else {
    return false;
  }
  return !precision || llvm::all_of(precision, [](Attribute one) {
    return cast<stablehlo::PrecisionAttr>(one).getValue() ==
           stablehlo::Precision::DEFAULT;
  });
}

/// True for what hands on elements as they are.
static bool movesElements(Operation *op) {
  return isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::SliceOp,
             stablehlo::DynamicSliceOp, stablehlo::DynamicUpdateSliceOp,
             stablehlo::BroadcastInDimOp, stablehlo::AllGatherOp,
             stablehlo::AllToAllOp, stablehlo::CollectivePermuteOp>(op);
}

/// The operator through whose regions a value flows; null if there is none.
static DataFlowOpInterface getCarrier(Value value) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    return dyn_cast<DataFlowOpInterface>(argument.getOwner()->getParentOp());
  }
  return dyn_cast<DataFlowOpInterface>(value.getDefiningOp());
}

const DataFlowEdges &Rounding::getEdges(DataFlowOpInterface op) {
  std::unique_ptr<DataFlowEdges> &found = edges[op];
  if (!found) {
    found = std::make_unique<DataFlowEdges>(op);
  }
  return *found;
}

bool Rounding::follow(OpOperand &use, SmallVectorImpl<Value> &group) {
  Operation *user = use.getOwner();
  bool isTerminator = user->hasTrait<OpTrait::IsTerminator>();
  if (auto carrier = dyn_cast<DataFlowOpInterface>(
          isTerminator ? user->getParentOp() : user)) {
    const DataFlowEdges &carried = getEdges(carrier);
    std::optional<unsigned> edge = carried.find(use);
    if (edge) {
      llvm::append_range(group, carried[*edge].targets);
    }
    return edge.has_value();
  }
  if (movesElements(user)) {
    group.push_back(user->getResult(0));
    return true;
  }
  // The fusion that makes the value sums it up as well.
  Operation *maker = use.get().getDefiningOp();
  return maker && isa<stablehlo::ReduceOp>(user) &&
         roles.get(maker) == FusionRole::Fused;
}

bool Rounding::isRounded(Value value) {
  SmallVector<Value> group{value};
  if (DataFlowOpInterface carrier = getCarrier(value)) {
    const DataFlowEdges &carried = getEdges(carrier);
    if (std::optional<unsigned> edge = carried.find(value)) {
      llvm::append_range(group, carried[*edge].targets);
    }
  }
  bool byProduct = false;
  llvm::SmallDenseSet<Value, 8> seen;
  while (!group.empty()) {
    Value next = group.pop_back_val();
    if (!seen.insert(next).second) {
      continue;
    }
    for (OpOperand &use : next.getUses()) {
      if (roundsOperands(use.getOwner())) {
        byProduct = true;
      } else if (!follow(use, group)) {
        return false;
      }
    }
  }
  return byProduct;
}

/// True for a maximum or a minimum, which XLA takes before it widens numbers.
static bool isTakenNarrow(Operation *op) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  if (!reduce || reduce.getInputs().size() != 1) {
    return false;
  }
  std::optional<ReductionKind> kind =
      stablehlo::getReductionKind(reduce.getBody());
  return kind == ReductionKind::Max || kind == ReductionKind::Min;
}

/// True if an operator widens what it reads, or hands it on to one that does.
static bool widens(Operation *op, FusionRoles &roles) {
  // What is no share of a sum is resolved by nothing.
  if (isa<ResolveOp>(op)) {
    return !op->use_empty() &&
           llvm::all_of(op->getUsers(),
                        [&](Operation *user) { return widens(user, roles); });
  }
  if (isa<stablehlo::ConvertOp>(op)) {
    return getElementTypeOrSelf(op->getResult(0).getType()).isF32() &&
           llvm::none_of(op->getUsers(), isTakenNarrow);
  }
  return roles.get(op) == FusionRole::Fused &&
         !isa<stablehlo::TransposeOp>(op) && op->hasOneUse() &&
         widens(*op->user_begin(), roles);
}

bool Rounding::isWidened(Value value) {
  return value.getDefiningOp<stablehlo::DotGeneralOp>() && !value.use_empty() &&
         llvm::all_of(value.getUsers(),
                      [&](Operation *user) { return widens(user, roles); });
}

} // namespace mlir::alpa
