//===- CustomCall.cpp - Rule of custom_call -------------------------------===//
//
// Opaque, and so replicated, but for the targets that are known.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Kernels.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringSwitch.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

bool isPointwise(CustomCallOp call) {
  return llvm::StringSwitch<bool>(call.getCallTargetName())
      .Cases({"cu_threefry2x32_ffi", "hip_threefry2x32_ffi"}, true)
      .Cases({"mhlo.acos", "mhlo.acosh", "mhlo.asin", "mhlo.asinh", "mhlo.atan",
              "mhlo.atanh", "mhlo.cosh", "mhlo.erf", "mhlo.erfc", "mhlo.sinh",
              "mhlo.tan"},
             true)
      .Default(false);
}

/// `ApproxTopK` of JAX searches one dimension; rows are independent. Half of
/// the operands are what starts the search.
ShardingRule getApproxTopKRule(CustomCallOp call) {
  RuleBuilder builder(call);
  auto config = call->getAttrOfType<DictionaryAttr>("mhlo.backend_config");
  auto searched = config ? config.getAs<IntegerAttr>("reduction_dim") : nullptr;
  if (!searched || call->getNumOperands() != 2 * call->getNumResults()) {
    builder.invalidate();
    return builder.finish();
  }
  for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
    if (dim == searched.getInt()) {
      continue;
    }
    DimFactors row = builder.addParallel(builder.getResultSize(0, dim));
    for (unsigned i = 0; i < call->getNumResults(); ++i) {
      builder.appendOperand(i, dim, row);
      builder.appendResult(i, dim, row);
    }
  }
  return builder.finish();
}

/// `top_k` in its older forms searches the last dimension.
ShardingRule getTopKRule(CustomCallOp call) {
  RuleBuilder builder(call);
  int64_t rank = builder.getResultRank(0);
  for (int64_t dim = 0; dim + 1 < rank; ++dim) {
    DimFactors row = builder.addParallel(builder.getResultSize(0, dim));
    builder.appendOperand(0, dim, row);
    for (unsigned i = 0; i < call->getNumResults(); ++i) {
      builder.appendResult(i, dim, row);
    }
  }
  return builder.finish();
}

/// out[b,m,n] = sum over k of (scale a)[b,m,k] (scale b)[b,n,k], where blocks
/// of k have a scale in common.
ShardingRule getBlockScaledDotRule(CustomCallOp call) {
  RuleBuilder builder(call);
  if (call->getNumOperands() != 4 || call->getNumResults() != 1) {
    builder.invalidate();
    return builder.finish();
  }
  DimFactors batch = builder.addParallel(builder.getResultSize(0, 0));
  for (unsigned operand = 0; operand < 4; ++operand) {
    builder.appendOperand(operand, 0, batch);
  }
  builder.appendResult(0, 0, batch);
  for (unsigned side = 0; side < 2; ++side) {
    DimFactors rows = builder.addParallel(builder.getResultSize(0, 1 + side));
    builder.appendOperand(side, 1, rows);
    builder.appendOperand(2 + side, 1, rows);
    builder.appendResult(0, 1 + side, rows);
  }
  builder.getRule().flops = 2 * getNumElements(call->getResult(0)) *
                            static_cast<double>(builder.getOperandSize(0, 2));
  return builder.finish();
}

/// What says of a value where or how it lies, and hands it on. That a place is
/// asked for is a side effect to JAX, so that it is not left out.
bool isAnnotation(CustomCallOp call) {
  return llvm::is_contained({"LayoutConstraint", "annotate_device_placement"},
                            call.getCallTargetName());
}

/// Memory with nothing in it.
bool isAllocation(CustomCallOp call) {
  return call.getCallTargetName() == "AllocateBuffer" &&
         call->getNumOperands() == 0;
}

struct CustomCallRule : RuleModel<CustomCallRule, CustomCallOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto call = cast<CustomCallOp>(op);
    if (std::optional<ShardingRule> attention = getAttentionRule(call)) {
      return *attention;
    }
    bool isPure = isAnnotation(call) || !call.getHasSideEffect();
    if (!RuleBuilder(op).isUsable() || op->getNumResults() == 0 || !isPure) {
      return ShardingRule::replicated(op);
    }
    if (isPartitionedKernel(call)) {
      return getPartitionedKernelRule(call);
    }
    if (isPointwise(call) || isAnnotation(call) || isAllocation(call)) {
      return ShardingRule::pointwise(op);
    }
    if (std::optional<ShardingRule> matrix = getMatrixKernelRule(call)) {
      return *matrix;
    }
    return llvm::StringSwitch<function_ref<ShardingRule(CustomCallOp)>>(
               call.getCallTargetName())
        .Case("ApproxTopK", getApproxTopKRule)
        .Cases({"TopK", "mhlo.topk"}, getTopKRule)
        .Case("__op$block_scaled_dot", getBlockScaledDotRule)
        .Default([](CustomCallOp other) {
          return ShardingRule::replicated(other);
        })(call);
  }
  OperatorRole getOperatorRole(Operation *op) const {
    auto call = cast<CustomCallOp>(op);
    if (isAllocation(call)) {
      return OperatorRole::Rematerialized;
    }
    return isPointwise(call) || isAnnotation(call) ? OperatorRole::Follower
                                                   : OperatorRole::Leader;
  }
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         alpa::LocalContext &context) const {
    auto call = cast<CustomCallOp>(op);
    return isPartitionedKernel(call) ? localizePartitionedKernel(call, context)
                                     : localizeAttention(call, context);
  }
  SmallVector<alpa::Exchange>
  getExchanges(Operation *op, const ShardingRule &rule, unsigned factor,
               ArrayRef<int64_t> factorShards) const {
    return isPartitionedKernel(op)
               ? getPartitionedKernelExchanges(cast<CustomCallOp>(op), rule,
                                               factor, factorShards)
               : getIterationExchanges(op, rule, factor, factorShards);
  }
};

} // namespace

void stablehlo::attachCustomCallRules(MLIRContext &context) {
  CustomCallOp::attachInterface<CustomCallRule>(context);
}
