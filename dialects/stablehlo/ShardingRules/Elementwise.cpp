//===- Elementwise.cpp - Rules of pointwise operators ---------------------===//
//
// One parallel loop per dimension. Which operands may stay partial sums is what
// distinguishes them: it is read off the algebra of each operator.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "dialects/stablehlo/ShardingRules/LocalEmitter.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <cmath>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::LocalContext;
using alpa::OperatorRole;
using alpa::ShardingRule;

namespace {

bool isInteger(Value value) {
  return isa<IntegerType>(getElementTypeOrSelf(value.getType()));
}

/// A set that holds in floating point if `isExact`, and else for real numbers.
void addSet(ShardingRule &rule, unsigned operand, bool isExact) {
  if (isExact) {
    rule.addLinear(operand);
  } else {
    rule.addAlgebraic(operand);
  }
}

/// Whether a floating-point type holds numbers as large as another one, complex
/// or not: bf16 does where f32 is the other one, f16 does not.
bool keepsRange(Type from, Type to) {
  auto getType = [](Type type) {
    Type element = getElementTypeOrSelf(type);
    auto complex = dyn_cast<ComplexType>(element);
    return dyn_cast<FloatType>(complex ? complex.getElementType() : element);
  };
  FloatType source = getType(from), target = getType(to);
  return source && target &&
         llvm::APFloat::semanticsMaxExponent(target.getFloatSemantics()) >=
             llvm::APFloat::semanticsMaxExponent(source.getFloatSemantics());
}

/// Between integers that are not equal neither the shares of a sum nor the sum
/// are kept. Fewer digits round each share, as adding up gradients in their
/// type does; a smaller range makes shares infinite that cancel.
void addConversion(ConvertOp convert, ShardingRule &rule) {
  Type from = convert.getOperand().getType(), to = convert.getType();
  if (keepsShares(from, to)) {
    rule.addLinear(0);
  } else if (isSummable(from) && keepsRange(from, to)) {
    rule.addAlgebraic(0);
  }
}

/// Integers multiply modulo a power of two, whatever the factors. Elsewhere a
/// factor above 1 may carry a share over what its type holds, or be infinite
/// where the share is zero.
void addProduct(MulOp multiply, ShardingRule &rule) {
  bool isModular = isInteger(multiply.getResult());
  addSet(rule, 0, isModular || isKnownWithinOne(multiply.getRhs()));
  addSet(rule, 1, isModular || isKnownWithinOne(multiply.getLhs()));
}

/// Integer division rounds each share. A divisor below 1 is a factor above 1.
void addQuotient(DivOp divide, ShardingRule &rule) {
  if (isInteger(divide.getResult())) {
    return;
  }
  std::optional<double> divisor = getKnownSplat(divide.getRhs());
  addSet(rule, 0, divisor && std::abs(*divisor) >= 1);
}

/// Masking: the zeros are shares of zero on every device.
void addSelection(SelectOp select, ShardingRule &rule) {
  rule.addLinear({1, 2});
  if (isKnownZero(select.getOnFalse())) {
    rule.addLinear(1);
  }
  if (isKnownZero(select.getOnTrue())) {
    rule.addLinear(2);
  }
}

void addLinearOperands(Operation *op, ShardingRule &rule) {
  if (op->getNumResults() != 1 || !isSummable(op->getResult(0).getType())) {
    return;
  }
  llvm::TypeSwitch<Operation *>(op)
      .Case<AddOp, SubtractOp, ComplexOp>([&](auto) { rule.addLinear({0, 1}); })
      .Case<NegOp, RealOp, ImagOp, chlo::ConjOp>(
          [&](auto) { rule.addLinear(0); })
      .Case<ConvertOp>([&](auto convert) { addConversion(convert, rule); })
      .Case<MulOp>([&](auto multiply) { addProduct(multiply, rule); })
      .Case<DivOp>([&](auto divide) { addQuotient(divide, rule); })
      .Case<SelectOp>([&](auto select) { addSelection(select, rule); })
      .Default([](Operation *) {});
}

ShardingRule getPointwiseRule(Operation *op) {
  // The builder knows the instances that cannot be split.
  RuleBuilder probe(op);
  if (!probe.isUsable()) {
    return ShardingRule::replicated(op);
  }
  ShardingRule rule = ShardingRule::pointwise(op);
  addLinearOperands(op, rule);
  return rule;
}

template <typename Op> struct PointwiseRule : RuleModel<PointwiseRule<Op>, Op> {
  ShardingRule getShardingRule(Operation *op) const {
    return getPointwiseRule(op);
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
      builder.getRule().addLinear(0);
    }
    return builder.finish();
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }
};

/// The upper half of a product. XLA has no form of it inside of a `shard_map`
/// (it ends at `mhlo.unknown`), which is how what each device runs is run.
///
/// By name and not by class: not every upstream's CHLO has it. Such a model has
/// no defaults.
struct MulhiRule : alpa::ShardingRuleOpInterface::FallbackModel<MulhiRule> {
  ShardingRule getShardingRule(Operation *op) const {
    return getPointwiseRule(op);
  }
  OperatorRole getOperatorRole(Operation *) const {
    return OperatorRole::Follower;
  }
  bool isDeviceDependent(Operation *) const { return false; }
  SmallVector<alpa::Exchange> getExchanges(Operation *, const ShardingRule &,
                                           unsigned, ArrayRef<int64_t>) const {
    return {};
  }
  alpa::InnerWork getInnerWork(Operation *, const ShardingRule &,
                               ArrayRef<int64_t>) const {
    return {};
  }

  /// before: y = mulhi(a, b)
  /// after:  y = upper half of convert(a) * convert(b), or of what is made of
  ///             products of halves where there is no wider type
  FailureOr<SmallVector<Value>> localize(Operation *op,
                                         LocalContext &context) const {
    Value lhs = context.getOperands()[0], rhs = context.getOperands()[1];
    auto type = dyn_cast<IntegerType>(getElementTypeOrSelf(lhs.getType()));
    if (!type || type.getWidth() == 1) {
      return alpa::cloneLocal(op, context);
    }
    UpperHalf half(context, op->getLoc(), type);
    return SmallVector<Value>{type.getWidth() < 64 ? half.widened(lhs, rhs)
                                                   : half.split(lhs, rhs)};
  }

private:
  class UpperHalf {
  public:
    UpperHalf(LocalContext &context, Location loc, IntegerType type)
        : emit(context, loc), type(type) {}

    Value widened(Value lhs, Value rhs) {
      Type wide = IntegerType::get(type.getContext(), 2 * type.getWidth(),
                                   type.getSignedness());
      Value product =
          multiply(emit.convert(lhs, wide), emit.convert(rhs, wide));
      return emit.convert(shift(product, type.getWidth()), type);
    }

    /// Knuth, The Art of Computer Programming 2, 4.3.1, with digits of half the
    /// bits: the first digit of either factor has its sign.
    Value split(Value lhs, Value rhs) {
      Value lowProduct = multiply(low(lhs), low(rhs));
      Value carried =
          add(multiply(high(lhs), low(rhs)), logicalShift(lowProduct));
      Value middle = add(multiply(low(lhs), high(rhs)), low(carried));
      return add(multiply(high(lhs), high(rhs)),
                 add(high(carried), high(middle)));
    }

  private:
    Value multiply(Value lhs, Value rhs) {
      return emit.binary<MulOp>(lhs, rhs);
    }
    Value add(Value lhs, Value rhs) { return emit.binary<AddOp>(lhs, rhs); }
    Value splat(Value like, int64_t value) {
      return emit.splat(cast<RankedTensorType>(like.getType()), value);
    }
    Value shift(Value value, int64_t bits) {
      return type.isUnsigned()
                 ? emit.binary<ShiftRightLogicalOp>(value, splat(value, bits))
                 : emit.binary<ShiftRightArithmeticOp>(value,
                                                       splat(value, bits));
    }
    Value logicalShift(Value value) {
      return emit.binary<ShiftRightLogicalOp>(
          value, splat(value, type.getWidth() / 2));
    }
    Value high(Value value) { return shift(value, type.getWidth() / 2); }
    Value low(Value value) {
      int64_t mask = (int64_t(1) << (type.getWidth() / 2)) - 1;
      return emit.binary<AndOp>(value, splat(value, mask));
    }

    LocalEmitter emit;
    IntegerType type;
  };
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
                  chlo::AtanOp, chlo::AtanhOp, chlo::BesselI1eOp, chlo::ConjOp,
                  chlo::CoshOp, chlo::DigammaOp, chlo::ErfInvOp, chlo::ErfOp,
                  chlo::ErfcOp, chlo::IsInfOp, chlo::IsNegInfOp,
                  chlo::IsPosInfOp, chlo::LgammaOp, chlo::NextAfterOp,
                  chlo::PolygammaOp, chlo::SinhOp, chlo::SquareOp, chlo::TanOp,
                  chlo::ZetaOp>(context);
  if (auto mulhi = RegisteredOperationName::lookup("chlo.mulhi", &context)) {
    mulhi->attachInterface<MulhiRule>();
  }
}
