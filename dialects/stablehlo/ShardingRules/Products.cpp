//===- Products.cpp - What products of tensors have in common -------------===//

#include "dialects/stablehlo/ShardingRules/Products.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;

DimFactors stablehlo::addContracted(RuleBuilder &builder, Operation *op,
                                    int64_t size) {
  return builder.addFactor(size, isSummable(op->getResult(0).getType())
                                     ? FactorKind::Reduction
                                     : FactorKind::Replicated);
}

void stablehlo::addBilinear(RuleBuilder &builder, Operation *op) {
  Type result = getElementTypeOrSelf(op->getResult(0).getType());
  if (!isSummable(result)) {
    return;
  }
  for (unsigned i = 0; i < 2; ++i) {
    Type element = getElementTypeOrSelf(op->getOperand(i).getType());
    if (!isSummable(element)) {
      continue;
    }
    if (!isa<IntegerType>(element)) {
      builder.getRule().addAlgebraic(i);
    } else if (element == result) {
      builder.getRule().addLinear(i);
    }
  }
}
