//===- FusionRole.cpp - How an operator takes part in fusions -------------===//

#include "cpp/analysis/FusionRole.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/HostMoves.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "dialects/alpa/ShardingRule.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// True for a transposition that only products read: they read any order of
/// dimensions. In a plan they may share what it is resharded to.
static bool isReadByProductsOnly(Operation *op) {
  return llvm::all_of(op->getUsers(), [](Operation *user) {
    return isa<stablehlo::DotGeneralOp>(user) ||
           (isa<ResolveOp>(user) && isReadByProductsOnly(user));
  });
}

bool isAsynchronous(Operation *op) {
  return isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
             stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
             stablehlo::CollectivePermuteOp, stablehlo::ReduceScatterOp>(op);
}

/// The scatter into zeros that a summand is, or is a slice of; null if it is
/// none, or is read elsewhere.
static stablehlo::ScatterOp getScattered(Value summand) {
  if (auto slice = summand.getDefiningOp<stablehlo::SliceOp>();
      slice && slice->hasOneUse()) {
    summand = slice.getOperand();
  }
  auto scatter = summand.getDefiningOp<stablehlo::ScatterOp>();
  bool isSummand = scatter && scatter.getInputs().size() == 1 &&
                   scatter->hasOneUse() && isZero(scatter.getInputs()[0]) &&
                   stablehlo::getReductionKind(
                       scatter.getUpdateComputation()) == ReductionKind::Sum;
  return isSummand ? scatter : stablehlo::ScatterOp();
}

/// True for a scatter of one number per row into zeros.
static bool isOneHot(stablehlo::ScatterOp op) {
  auto numbers = op.getScatterDimensionNumbers();
  if (op.getInputs().size() != 1 || !isZero(op.getInputs()[0]) ||
      numbers.getInsertedWindowDims().size() != 1 ||
      !numbers.getUpdateWindowDims().empty()) {
    return false;
  }
  auto input = cast<RankedTensorType>(op.getInputs()[0].getType());
  auto updates = cast<RankedTensorType>(op.getUpdates()[0].getType());
  int64_t length = input.getDimSize(numbers.getInsertedWindowDims().front());
  return static_cast<int64_t>(numbers.getInputBatchingDims().size()) + 1 ==
             input.getRank() &&
         updates.getNumElements() * length == input.getNumElements();
}

/// True for what `getScatteredInto` has an addition do.
static bool isAdded(stablehlo::ScatterOp op) {
  Operation *user = op->hasOneUse() ? *op->user_begin() : nullptr;
  if (isa_and_nonnull<stablehlo::SliceOp>(user)) {
    user = user->hasOneUse() ? *user->user_begin() : nullptr;
  }
  return isa_and_nonnull<stablehlo::AddOp>(user) &&
         llvm::any_of(user->getOperands(), [&](Value summand) {
           return getScattered(summand) == op;
         });
}

Value getScatteredInto(Operation *op, Backend backend) {
  if (!isa<stablehlo::AddOp>(op)) {
    return {};
  }
  for (unsigned summand : {0, 1}) {
    if (auto scatter = getScattered(op->getOperand(summand))) {
      bool isCompared = backend == Backend::Tpu && isOneHot(scatter);
      return isCompared ? Value() : op->getOperand(1 - summand);
    }
  }
  return {};
}

/// True for a reduction of dimensions of one element.
static bool reducesNothing(Operation *op) {
  return isa<stablehlo::ReduceOp>(op) &&
         countElements(op->getOperand(0).getType()) ==
             countElements(op->getResult(0).getType());
}

FusionRole getFusionRole(Operation *op, Backend backend) {
  if (isa<DataFlowOpInterface>(op) || isAsynchronous(op) || isHostMove(op)) {
    return FusionRole::Kernel;
  }
  if (isa<stablehlo::PartitionIdOp, stablehlo::ReplicaIdOp>(op)) {
    return FusionRole::Generated;
  }
  // A sum is resolved in place, by the collective that its strategy takes, or
  // by nothing.
  if (isa<stablehlo::ReshapeOp, ConstrainOp, ResolveOp>(op) ||
      reducesNothing(op)) {
    return FusionRole::View;
  }
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    return isReadByProductsOnly(transpose) ? FusionRole::View
                                           : FusionRole::Fused;
  }
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op);
      scatter &&
      (isAdded(scatter) || (backend == Backend::Tpu && isOneHot(scatter)))) {
    return FusionRole::Fused;
  }
  if (isa<stablehlo::ReduceOp, stablehlo::ReduceWindowOp, stablehlo::ScatterOp,
          stablehlo::DynamicUpdateSliceOp>(op) ||
      getScatteredInto(op, backend)) {
    return FusionRole::Root;
  }
  // Operators that only move data lead, or follow, by what the planner can
  // split of them; to a backend they are all alike.
  if (isa<stablehlo::GatherOp, stablehlo::DynamicSliceOp, stablehlo::SliceOp,
          stablehlo::PadOp, stablehlo::ConcatenateOp, stablehlo::ReverseOp>(
          op)) {
    return FusionRole::Fused;
  }
  if (!hasShardingRule(op)) {
    return FusionRole::Kernel;
  }
  switch (getOperatorRole(op)) {
  case OperatorRole::Leader:
    return FusionRole::Kernel;
  case OperatorRole::Follower:
    return FusionRole::Fused;
  case OperatorRole::Rematerialized:
    return op->getNumOperands() > 0 ? FusionRole::Fused : FusionRole::Generated;
  }
  llvm_unreachable("not a role");
}

double getScratchRatio(Operation *op, Backend backend) {
  auto select = dyn_cast<stablehlo::SelectAndScatterOp>(op);
  if (!select || backend == Backend::Tpu) {
    return 0;
  }
  // XLA finds the selected element of each window first, its value and an index
  // of 32 bits per dimension; for TPU it has an operator that does both.
  auto source = cast<RankedTensorType>(select.getSource().getType());
  auto result = cast<RankedTensorType>(op->getResult(0).getType());
  double width = getTensorBytes(source) / source.getNumElements();
  double found = source.getNumElements() * (width + 4.0 * source.getRank());
  return found / getTensorBytes(result);
}

bool takesPrologue(Operation *op, Backend backend) {
  return isa<stablehlo::DotGeneralOp>(op) ||
         (backend == Backend::Tpu && isa<stablehlo::ConvolutionOp>(op));
}

/// The scatter that an operator is, or takes a slice of; null if it is neither.
static stablehlo::ScatterOp getSlicedScatter(Operation *op) {
  auto slice = dyn_cast<stablehlo::SliceOp>(op);
  Operation *maker = slice ? slice.getOperand().getDefiningOp() : op;
  return dyn_cast_if_present<stablehlo::ScatterOp>(maker);
}

bool endsPrologue(Operation *op, Backend backend) {
  if (auto scatter = getSlicedScatter(op);
      scatter && backend == Backend::Tpu && isOneHot(scatter)) {
    return false;
  }
  if (isa<stablehlo::GatherOp, stablehlo::ScatterOp, stablehlo::ReverseOp>(
          op)) {
    return true;
  }
  if (isa<stablehlo::DynamicSliceOp, stablehlo::SliceOp, stablehlo::PadOp,
          stablehlo::ConcatenateOp>(op)) {
    return backend != Backend::Tpu;
  }
  auto broadcast = dyn_cast<stablehlo::BroadcastInDimOp>(op);
  if (!broadcast || broadcast.getBroadcastDimensions().empty() ||
      backend == Backend::Tpu) {
    return false;
  }
  // XLA leaves out dimensions of one element.
  auto operand = cast<RankedTensorType>(broadcast.getOperand().getType());
  ArrayRef<int64_t> sizes =
      cast<RankedTensorType>(broadcast.getType()).getShape();
  int64_t first = std::distance(
      sizes.begin(), llvm::find_if(sizes, [](int64_t n) { return n != 1; }));
  ArrayRef<int64_t> dims = broadcast.getBroadcastDimensions();
  auto place = llvm::find(dims, first);
  return place == dims.end() ||
         operand.getDimSize(std::distance(dims.begin(), place)) != sizes[first];
}

bool isLookedUp(OpOperand &operand, Backend backend) {
  return backend == Backend::Tpu && operand.getOperandNumber() == 0 &&
         isa<stablehlo::GatherOp>(operand.getOwner());
}

bool isExpensive(Operation *op) {
  return isa<stablehlo::TanhOp, stablehlo::TanOp, stablehlo::SineOp,
             stablehlo::CosineOp, chlo::ErfOp, chlo::ErfcOp>(op);
}

bool keepsShape(Value value) {
  auto dot = value.getDefiningOp<stablehlo::DotGeneralOp>();
  if (!dot) {
    return true;
  }
  auto numbers = dot.getDotDimensionNumbers();
  int64_t numBatch = numbers.getLhsBatchingDimensions().size();
  auto countFree = [&](Value operand, ArrayRef<int64_t> contracting) {
    return cast<RankedTensorType>(operand.getType()).getRank() - numBatch -
           static_cast<int64_t>(contracting.size());
  };
  return numBatch <= 1 &&
         countFree(dot.getLhs(), numbers.getLhsContractingDimensions()) <= 1 &&
         countFree(dot.getRhs(), numbers.getRhsContractingDimensions()) <= 1;
}

/// The edge that ends at a result; one without values if there is none.
static DataFlowEdge findEdge(Operation *op, unsigned result) {
  if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
    for (DataFlowEdge &edge : dataFlow.getDataFlowEdges()) {
      if (llvm::is_contained(edge.targets, op->getResult(result))) {
        return edge;
      }
    }
  }
  return {};
}

/// The operand on an edge; null if there is none.
static Value getOperand(Operation *op, const DataFlowEdge &edge) {
  for (OpOperand *source : edge.sources) {
    if (source->getOwner() == op) {
      return source->get();
    }
  }
  return {};
}

Value getUpdatedOperand(Operation *op, unsigned result) {
  if (isa<stablehlo::DynamicUpdateSliceOp>(op)) {
    return op->getOperand(0);
  }
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op)) {
    return scatter.getInputs()[result];
  }
  DataFlowEdge edge = findEdge(op, result);
  return edge.sliced || !edge.entersRegions() ? Value() : getOperand(op, edge);
}

Value getUnchangedOperand(Operation *op, unsigned result) {
  DataFlowEdge edge = findEdge(op, result);
  bool isUnchanged = edge.entersRegions() && !edge.sliced &&
                     llvm::all_of(edge.sources, [&](OpOperand *source) {
                       return source->getOwner() == op ||
                              llvm::is_contained(edge.targets, source->get());
                     });
  return isUnchanged ? getOperand(op, edge) : Value();
}

bool isMadeInside(Operation *op, unsigned result) {
  DataFlowEdge edge = findEdge(op, result);
  return edge && (edge.sliced || edge.entersRegions());
}

} // namespace mlir::alpa
