//===- Generators.cpp - Rules of operators that make values ---------------===//
//
// iota, constant and the random number generators.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

ShardingRule getParallelRule(Operation *op) {
  RuleBuilder builder(op);
  for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
    builder.appendResult(0, dim,
                         builder.addParallel(builder.getResultSize(0, dim)));
  }
  return builder.finish();
}

struct IotaRule : RuleModel<IotaRule, IotaOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return getParallelRule(op);
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Rematerialized;
  }

  /// Counts from the first element of the block, in integers, so that small
  /// floating-point types round once as the whole iota does.
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    auto iota = cast<IotaOp>(op);
    const ShardingRule &rule = context.getRule();
    auto dim = static_cast<int64_t>(iota.getIotaDimension());
    if (dim >= static_cast<int64_t>(rule.results[0].size()) ||
        rule.results[0][dim].empty() ||
        context.getNumShards(rule.results[0][dim].front()) == 1) {
      return alpa::cloneLocal(op, context);
    }
    unsigned factor = rule.results[0][dim].front();
    OpBuilder &builder = context.getBuilder();
    LocalEmitter emit(context, op->getLoc());
    auto type = cast<RankedTensorType>(context.getResultTypes().front());
    auto integer = dyn_cast<IntegerType>(type.getElementType());
    Type indexType = integer && integer.getWidth() > 32
                         ? builder.getI64Type()
                         : context.getIndexType(factor);
    auto countType = RankedTensorType::get(type.getShape(), indexType);
    Value count = IotaOp::create(builder, op->getLoc(), countType,
                                 builder.getI64IntegerAttr(dim))
                      .getResult();
    Value first =
        emit.broadcast(context.getOffset(factor, indexType), countType, -1);
    return SmallVector<Value>{
        emit.convert(emit.binary<AddOp>(count, first), type.getElementType())};
  }
};

struct ConstantRule : RuleModel<ConstantRule, ConstantOp> {
  ShardingRule getShardingRule(Operation *op) const {
    if (!getSplat(op)) {
      return ShardingRule::replicated(op);
    }
    ShardingRule rule = getParallelRule(op);
    if (isKnownZero(op->getResult(0)) &&
        isSummable(op->getResult(0).getType())) {
      // A summand as it is.
      rule.addLinear({});
    }
    return rule;
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Rematerialized;
  }

  /// A quantized constant holds its elements as they are stored.
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    DenseElementsAttr splat = getSplat(op);
    auto type = cast<ShapedType>(context.getResultTypes().front());
    if (!splat || splat.getType().getShape() == type.getShape()) {
      return alpa::cloneLocal(op, context);
    }
    ShapedType stored = splat.getType().clone(type.getShape());
    return SmallVector<Value>{ConstantOp::create(context.getBuilder(),
                                                 op->getLoc(), type,
                                                 splat.resizeSplat(stored))
                                  .getResult()};
  }

private:
  /// The value if all elements are equal, else null.
  static DenseElementsAttr getSplat(Operation *op) {
    auto elements =
        dyn_cast<DenseElementsAttr>(cast<ConstantOp>(op).getValue());
    return elements && !elements.empty() && elements.isSplat()
               ? elements
               : DenseElementsAttr();
  }
};

/// Every device draws all numbers: the algorithm counts along the whole tensor,
/// in an order that every compiler has for itself (JAX asks for DEFAULT), so
/// that no block can be drawn alone and be the same.
struct RngBitGeneratorRule : RuleModel<RngBitGeneratorRule, RngBitGeneratorOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::replicated(op);
  }
};

/// The numbers come from a state that every device has for itself.
struct RngRule : RuleModel<RngRule, RngOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return ShardingRule::replicated(op);
  }
  bool isDeviceDependent(Operation *) const { return true; }
};

} // namespace

void stablehlo::attachGeneratorRules(MLIRContext &context) {
  IotaOp::attachInterface<IotaRule>(context);
  ConstantOp::attachInterface<ConstantRule>(context);
  RngOp::attachInterface<RngRule>(context);
  RngBitGeneratorOp::attachInterface<RngBitGeneratorRule>(context);
}
