//===- CustomCall.cpp - Rule of custom_call -------------------------------===//
//
// Opaque, and so replicated, but for the targets that are known to work element
// by element and the calls that say how many of their dimensions are a batch.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
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
      .Cases({"mhlo.acos", "mhlo.acosh", "mhlo.asin", "mhlo.asinh", "mhlo.atan",
              "mhlo.atanh", "mhlo.cosh", "mhlo.erf", "mhlo.erfc", "mhlo.sinh",
              "mhlo.tan"},
             true)
      .Default(false);
}

/// Number of leading batch dimensions that the call declares, as JAX does for
/// its linear algebra kernels:
///   mhlo.frontend_attributes = {num_batch_dims = "2"}
int64_t getNumBatchDims(CustomCallOp call) {
  auto attributes =
      call->getAttrOfType<DictionaryAttr>("mhlo.frontend_attributes");
  auto text =
      attributes ? attributes.getAs<StringAttr>("num_batch_dims") : nullptr;
  int64_t count = 0;
  if (!text || text.getValue().getAsInteger(10, count)) {
    return 0;
  }
  return std::max<int64_t>(count, 0);
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

/// Leading dimensions of all tensors are one batch; operands that are scalars
/// belong to none, and a result that is one is made of the whole batch.
ShardingRule getBatchRule(CustomCallOp call, int64_t numBatchDims) {
  RuleBuilder builder(call);
  for (int64_t dim = 0; dim < numBatchDims; ++dim) {
    DimFactors batch = builder.addParallel(builder.getResultSize(0, dim));
    for (unsigned i = 0; i < call->getNumOperands(); ++i) {
      if (builder.getOperandRank(i) > 0) {
        builder.appendOperand(i, dim, batch);
      }
    }
    for (unsigned i = 0; i < call->getNumResults(); ++i) {
      builder.appendResult(i, dim, batch);
    }
  }
  return builder.finish();
}

struct CustomCallRule : RuleModel<CustomCallRule, CustomCallOp> {
  ShardingRule getShardingRule(Operation *op) const {
    auto call = cast<CustomCallOp>(op);
    bool isUsable = RuleBuilder(op).isUsable() && op->getNumResults() > 0 &&
                    !call.getHasSideEffect();
    if (isUsable && isPointwise(call)) {
      return ShardingRule::pointwise(op);
    }
    if (isUsable && call.getCallTargetName() == "ApproxTopK") {
      return getApproxTopKRule(call);
    }
    if (isUsable && getNumBatchDims(call) > 0) {
      return getBatchRule(call, getNumBatchDims(call));
    }
    return ShardingRule::replicated(op);
  }
  OperatorRole getOperatorRole(Operation *op) const {
    return isPointwise(cast<CustomCallOp>(op)) ? OperatorRole::Follower
                                               : OperatorRole::Leader;
  }
};

} // namespace

void stablehlo::attachCustomCallRules(MLIRContext &context) {
  CustomCallOp::attachInterface<CustomCallRule>(context);
}
