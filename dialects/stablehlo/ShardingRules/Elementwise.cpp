//===- Elementwise.cpp - Rules of pointwise operators ---------------------===//
//
// One parallel loop per dimension. Which operands may stay partial sums is what
// distinguishes them: it is read off the algebra of each operator.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

/// Whether converting shares of a sum and adding them is converting the sum, up
/// to rounding: between floats and complex numbers. Wrapping integers are not.
bool isLinearConversion(Type from, Type to) {
  auto isInexact = [](Type type) {
    return isa<FloatType, ComplexType>(getElementTypeOrSelf(type));
  };
  return isInexact(from) && isInexact(to) && isSummable(from);
}

void addLinearOperands(Operation *op, ShardingRule &rule) {
  if (op->getNumResults() != 1 || !isSummable(op->getResult(0).getType())) {
    return;
  }
  auto &linear = rule.linearOperands;
  llvm::TypeSwitch<Operation *>(op)
      .Case<AddOp, SubtractOp, ComplexOp>(
          [&](auto) { linear.push_back({0, 1}); })
      .Case<NegOp, RealOp, ImagOp>([&](auto) { linear.push_back({0}); })
      .Case<ConvertOp>([&](ConvertOp convert) {
        if (isLinearConversion(convert.getOperand().getType(),
                               convert.getResult().getType())) {
          linear.push_back({0});
        }
      })
      .Case<MulOp>([&](auto) {
        linear.push_back({0});
        linear.push_back({1});
      })
      .Case<DivOp>([&](DivOp divide) {
        // Integer division rounds each share.
        if (!isa<IntegerType>(
                getElementTypeOrSelf(divide.getResult().getType()))) {
          linear.push_back({0});
        }
      })
      .Case<SelectOp>([&](SelectOp select) {
        linear.push_back({1, 2});
        // Masking: the zeros are shares of zero on every device.
        if (isKnownZero(select.getOnFalse())) {
          linear.push_back({1});
        }
        if (isKnownZero(select.getOnTrue())) {
          linear.push_back({2});
        }
      })
      .Default([](Operation *) {});
}

template <typename Op> struct PointwiseRule : RuleModel<PointwiseRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    // The builder knows the instances that cannot be split.
    RuleBuilder probe(op);
    if (!probe.isUsable()) {
      return ShardingRule::replicated(op);
    }
    ShardingRule rule = ShardingRule::pointwise(op);
    addLinearOperands(op, rule);
    return rule;
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }
};

/// Between types of one width the bits are converted element by element;
/// otherwise the wider element is the last dimension of the narrower tensor.
struct BitcastConvertRule : RuleModel<BitcastConvertRule, BitcastConvertOp> {
  ShardingRule getShardingRule(Operation *op) const {
    RuleBuilder builder(op);
    int64_t shared =
        std::min(builder.getOperandRank(0), builder.getResultRank(0));
    for (int64_t dim = 0; dim < shared; ++dim) {
      builder.share(0, dim, 0, dim);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }
};

/// A value goes through as it is. Several wait for each other and have no loops
/// in common: operator merging takes them apart before they are split.
struct OptimizationBarrierRule
    : RuleModel<OptimizationBarrierRule, OptimizationBarrierOp> {
  ShardingRule getShardingRule(Operation *op) const {
    if (op->getNumOperands() != 1) {
      return ShardingRule::replicated(op);
    }
    RuleBuilder builder(op);
    for (int64_t dim = 0; dim < builder.getResultRank(0); ++dim) {
      builder.share(0, dim, 0, dim);
    }
    if (isSummable(op->getResult(0).getType())) {
      builder.getRule().linearOperands.push_back({0});
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }
};

template <typename... Ops> void attachPointwise(MLIRContext &context) {
  (Ops::template attachInterface<PointwiseRule<Ops>>(context), ...);
}

} // namespace

void stablehlo::attachElementwiseRules(MLIRContext &context) {
  attachPointwise<AbsOp, AddOp, AndOp, Atan2Op, CbrtOp, CeilOp, ClampOp, ClzOp,
                  CompareOp, ComplexOp, ConvertOp, CosineOp, DivOp, ExpOp,
                  Expm1Op, FloorOp, ImagOp, IsFiniteOp, Log1pOp, LogOp,
                  LogisticOp, MaxOp, MinOp, MulOp, NegOp, NotOp, OrOp,
                  PopulationCountOp, PowOp, RealOp, ReducePrecisionOp, RemOp,
                  RoundNearestEvenOp, RoundOp, RsqrtOp, SelectOp, ShiftLeftOp,
                  ShiftRightArithmeticOp, ShiftRightLogicalOp, SignOp, SineOp,
                  SqrtOp, SubtractOp, TanOp, TanhOp, XorOp>(context);
  BitcastConvertOp::attachInterface<BitcastConvertRule>(context);
  OptimizationBarrierOp::attachInterface<OptimizationBarrierRule>(context);
}

void stablehlo::attachChloElementwiseRules(MLIRContext &context) {
  attachPointwise<chlo::AcosOp, chlo::AcoshOp, chlo::AsinOp, chlo::AsinhOp,
                  chlo::AtanOp, chlo::AtanhOp, chlo::BesselI1eOp, chlo::CoshOp,
                  chlo::DigammaOp, chlo::ErfInvOp, chlo::ErfOp, chlo::ErfcOp,
                  chlo::LgammaOp, chlo::NextAfterOp, chlo::PolygammaOp,
                  chlo::SinhOp, chlo::SquareOp>(context);
}
