//===- Import.cpp - Prepares a module for planning ------------------------===//

#include "cpp/analysis/Entry.h"
#include "cpp/analysis/HostValues.h"
#include "cpp/analysis/StrategyGraph.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/IR/TypeUtilities.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "passes/Passes.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORT
#include "passes/Passes.h.inc"

namespace {

/// Operators of programs that are partitioned by hand already: what they do
/// depends on the device that runs them.
bool isPartitioned(Operation *op) {
  if (auto call = dyn_cast<stablehlo::CustomCallOp>(op)) {
    return llvm::is_contained({"SPMDFullToShardShape", "SPMDShardToFullShape",
                               "xla.sdy.GlobalToLocalShape",
                               "xla.sdy.LocalToGlobalShape"},
                              call.getCallTargetName());
  }
  // Those of Shardy are not registered.
  constexpr StringLiteral unregistered[] = {
      "sdy.manual_computation", "sdy.all_gather",
      "sdy.all_reduce",         "sdy.all_slice",
      "sdy.all_to_all",         "sdy.collective_permute",
      "sdy.reduce_scatter",     "sdy.sharded_to_unreduced"};
  return isa<stablehlo::AllGatherOp, stablehlo::AllReduceOp,
             stablehlo::AllToAllOp, stablehlo::CollectiveBroadcastOp,
             stablehlo::CollectivePermuteOp, stablehlo::CrossReplicaSumOp,
             stablehlo::PartitionIdOp, stablehlo::ReduceScatterOp,
             stablehlo::ReplicaIdOp>(op) ||
         llvm::is_contained(unregistered, op->getName().getStringRef());
}

/// Operators that talk to the host or to other programs: each device would.
bool isTransfer(Operation *op) {
  constexpr StringLiteral names[] = {"stablehlo.infeed", "stablehlo.outfeed",
                                     "stablehlo.recv", "stablehlo.send"};
  return llvm::is_contained(names, op->getName().getStringRef());
}

struct Import : impl::ImportBase<Import> {
  using ImportBase::ImportBase;

  void runOnOperation() override {
    FailureOr<func::FuncOp> entry = getEntryFunction(getOperation());
    if (succeeded(entry)) {
      forgetNumbers(*entry);
    }
    if (failed(entry) || failed(verifyPlannable(*entry)) ||
        failed(writeAliases(*entry)) || failed(writeDonors(*entry))) {
      return signalPassFailure();
    }
    dropEmpty(*entry);
    dropIdleMoves(*entry);
  }

  /// What has no elements has no parts that a micro-batch, or a device, could
  /// have: it is made anew wherever it is, and is not part of anything. A loop
  /// that is unrolled as a whole stacks behind such a tensor, and
  /// `jax.lax.associative_scan` of an even size ends with one.
  void dropEmpty(func::FuncOp entry) {
    SmallVector<Operation *> operators;
    entry.walk([&](Operation *op) { operators.push_back(op); });
    IRRewriter rewriter(&getContext());
    for (Operation *op : operators) {
      rewriter.setInsertionPoint(op);
      if (auto concatenate = dyn_cast<stablehlo::ConcatenateOp>(op)) {
        dropEmptyParts(concatenate);
      }
      auto pad = dyn_cast<stablehlo::PadOp>(op);
      if (pad && isEmpty(pad.getOperand()) && !isEmpty(pad.getResult())) {
        rewriter.replaceOpWithNewOp<stablehlo::BroadcastInDimOp>(
            pad, pad.getType(), pad.getPaddingValue(),
            rewriter.getDenseI64ArrayAttr({}));
      } else if (canBeConstant(op)) {
        auto type = cast<RankedTensorType>(op->getResult(0).getType());
        rewriter.replaceOpWithNewOp<stablehlo::ConstantOp>(
            op, type, DenseElementsAttr::getFromRawBuffer(type, {}));
      }
    }
  }

  static void dropEmptyParts(stablehlo::ConcatenateOp concatenate) {
    auto dim = static_cast<unsigned>(concatenate.getDimension());
    SmallVector<Value> kept;
    for (Value operand : concatenate.getInputs()) {
      if (cast<RankedTensorType>(operand.getType()).getDimSize(dim) != 0) {
        kept.push_back(operand);
      }
    }
    if (!kept.empty()) {
      concatenate.getInputsMutable().assign(kept);
    }
  }

  static bool isEmpty(Value value) {
    auto type = dyn_cast<RankedTensorType>(value.getType());
    return type && type.hasStaticShape() && type.getNumElements() == 0;
  }

  /// Whether an operator makes a tensor without elements, and nothing else.
  static bool canBeConstant(Operation *op) {
    if (op->getNumResults() != 1 || !isEmpty(op->getResult(0)) ||
        isa<stablehlo::ConstantOp>(op) || !isMemoryEffectFree(op)) {
      return false;
    }
    Type element = getElementTypeOrSelf(op->getResult(0).getType());
    return element.isIntOrFloat() || isa<ComplexType>(element);
  }

  /// Of the program that it was before its stacks were split.
  void forgetNumbers(func::FuncOp entry) {
    for (unsigned index = 0; index < entry.getNumArguments(); ++index) {
      entry.removeArgAttr(index, kInputAttrName);
    }
    for (unsigned index = 0; index < entry.getNumResults(); ++index) {
      entry.removeResultAttr(index,
                             StringAttr::get(&getContext(), kOutputAttrName));
    }
  }

  LogicalResult verifyPlannable(func::FuncOp entry) {
    WalkResult result = entry.walk<WalkOrder::PreOrder>([](Operation *op) {
      if (isa<ManualOp>(op)) {
        return WalkResult::skip();
      }
      if (isPartitioned(op)) {
        auto call = dyn_cast<stablehlo::CustomCallOp>(op);
        op->emitError() << "'" << op->getName() << "'"
                        << (call ? " @" + call.getCallTargetName().str() : "")
                        << " is partitioned by hand already (shard_map); it "
                           "cannot be planned";
        return WalkResult::interrupt();
      }
      if (isTransfer(op)) {
        op->emitError() << "'" << op->getName()
                        << "' would run on every device; it cannot be planned";
        return WalkResult::interrupt();
      }
      // Its type may be static; the sizes that follow from it are not.
      if (isa<stablehlo::SetDimensionSizeOp>(op)) {
        op->emitError() << "'" << op->getName()
                        << "' makes a size that is known when it runs; "
                           "planning needs static shapes";
        return WalkResult::interrupt();
      }
      auto isDynamic = [](Type type) {
        auto shaped = dyn_cast<ShapedType>(type);
        return shaped && !shaped.hasStaticShape();
      };
      for (Type type : op->getResultTypes()) {
        if (isDynamic(type)) {
          op->emitError() << "result of '" << op->getName()
                          << "' has the dynamic type " << type
                          << "; planning needs static shapes";
          return WalkResult::interrupt();
        }
      }
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          if (isDynamic(argument.getType())) {
            op->emitError()
                << getReadableName(argument) << " has the dynamic type "
                << argument.getType() << "; planning needs static shapes";
            return WalkResult::interrupt();
          }
        }
      }
      return WalkResult::advance();
    });
    return failure(result.wasInterrupted());
  }

  LogicalResult writeAliases(func::FuncOp entry) {
    for (StringRef pair : aliases) {
      auto [argument, result] = pair.split(':');
      unsigned from = 0;
      unsigned to = 0;
      if (argument.getAsInteger(10, from) || result.getAsInteger(10, to) ||
          from >= entry.getNumArguments() || to >= entry.getNumResults()) {
        return entry.emitOpError()
               << "alias '" << pair << "' names no argument and result of the "
               << entry.getNumArguments() << " and " << entry.getNumResults();
      }
      if (entry.getArgumentTypes()[from] != entry.getResultTypes()[to]) {
        return entry.emitOpError() << "alias '" << pair << "' joins "
                                   << entry.getArgumentTypes()[from] << " with "
                                   << entry.getResultTypes()[to];
      }
      entry.setArgAttr(
          from, kAliasAttrName,
          IntegerAttr::get(IntegerType::get(&getContext(), 64), to));
    }
    return success();
  }

  LogicalResult writeDonors(func::FuncOp entry) {
    for (int64_t argument : donated) {
      if (argument < 0 || argument >= entry.getNumArguments()) {
        return entry.emitOpError()
               << "argument " << argument << " to donate is none of the "
               << entry.getNumArguments();
      }
      entry.setArgAttr(argument, kDonorAttrName, UnitAttr::get(&getContext()));
    }
    return success();
  }
};

} // namespace
} // namespace mlir::alpa
