//===- Products.h - What products of tensors have in common -----*- C++ -*-===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_PRODUCTS_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_PRODUCTS_H

#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"

namespace mlir::stablehlo {

/// The loop over what is multiplied and added: split where the result can be
/// held as shares of a sum.
alpa::DimFactors addContracted(RuleBuilder &builder, Operation *op,
                               int64_t size);

/// Products are linear in either operand: those of integers modulo a power of
/// two, but not when an integer is widened on the way, as shares of an i8 wrap
/// where their i32 product would not; others for real numbers only.
void addBilinear(RuleBuilder &builder, Operation *op);

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_PRODUCTS_H
