//===- StackReductions.cpp - Reductions of tensors in parts ---------------===//

#include "cpp/transforms/StackParts.h"

namespace mlir::alpa {

using namespace stablehlo;

/// An operator that combines the results of two parts.
static Value combine(OpBuilder &builder, Location loc, ReductionKind kind,
                     Value left, Value right) {
  switch (kind) {
  case ReductionKind::Sum:
    return AddOp::create(builder, loc, left, right);
  case ReductionKind::Product:
    return MulOp::create(builder, loc, left, right);
  case ReductionKind::Max:
    return MaxOp::create(builder, loc, left, right);
  case ReductionKind::Min:
    return MinOp::create(builder, loc, left, right);
  case ReductionKind::And:
    return AndOp::create(builder, loc, left, right);
  case ReductionKind::Or:
    return OrOp::create(builder, loc, left, right);
  }
  llvm_unreachable("unknown reduction");
}

/// Whether results of parts can be combined: those of products, and those of a
/// reduction whose initial value changes nothing.
static bool isTakenApart(Operation *op, ReductionKind kind) {
  if (isa<DotGeneralOp>(op)) {
    // Products add in wider types than they return: parts would round twice.
    auto type =
        dyn_cast<FloatType>(getElementTypeOrSelf(op->getResultTypes()[0]));
    return !type || type.getWidth() >= 32;
  }
  auto reduce = dyn_cast<ReduceOp>(op);
  return reduce && reduce.getInitValues().size() == 1 &&
         getFillingOf(reduce.getInitValues().front()) == getNeutral(kind);
}

Value StackParts::reduceInParts(Operation *op) {
  const ShardingRule *rule = getRule(op);
  const StackCut *of =
      op->getNumOperands() > 0 ? find(op->getOperand(0)) : nullptr;
  if (!rule || !of) {
    return {};
  }
  StackCut cut = *of;
  std::optional<unsigned> factor =
      findLoop(*rule, rule->operands.front(), cut.dim);
  if (!factor || rule->factors[*factor].kind != FactorKind::Reduction ||
      !isTakenApart(op, rule->factors[*factor].reduction) ||
      !canCut(op, *rule, *factor) ||
      !areCut(op->getOperands(), getLoops(*rule, *factor, 0), cut.sizes)) {
    return {};
  }
  OpBuilder builder(op);
  Value sum;
  for (unsigned part = 0; part < cut.size(); ++part) {
    LongerLoops loops = getLoops(*rule, *factor, cut.sizes[part]);
    Value own = remake(builder, op, cut, part, loops)->getResult(0);
    if (sum) {
      own = combine(builder, op->getLoc(), rule->factors[*factor].reduction,
                    sum, own);
      made.insert(own.getDefiningOp());
    }
    sum = own;
  }
  return sum;
}

} // namespace mlir::alpa
