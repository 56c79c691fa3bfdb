//===- Families.h - Rules of one family of operators ------------*- C++ -*-===//
//
// What each file of this folder attaches. The functions whose name has `Chlo`
// in it run when the CHLO dialect is loaded, that of attention when ours is,
// the others with StableHLO.
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_FAMILIES_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_FAMILIES_H

namespace mlir {
class MLIRContext;

namespace stablehlo {

void attachAttentionRules(MLIRContext &context);
void attachElementwiseRules(MLIRContext &context);
void attachChloElementwiseRules(MLIRContext &context);
void attachDataMovementRules(MLIRContext &context);
void attachRearrangementRules(MLIRContext &context);
void attachSliceRules(MLIRContext &context);
void attachContractionRules(MLIRContext &context);
void attachConvolutionRules(MLIRContext &context);
void attachChloContractionRules(MLIRContext &context);
void attachReductionRules(MLIRContext &context);
void attachWindowRules(MLIRContext &context);
void attachSelectAndScatterRules(MLIRContext &context);
void attachSortRules(MLIRContext &context);
void attachChloSortRules(MLIRContext &context);
void attachGatherRules(MLIRContext &context);
void attachScatterRules(MLIRContext &context);
void attachGeneratorRules(MLIRContext &context);
void attachLinearAlgebraRules(MLIRContext &context);
void attachCustomCallRules(MLIRContext &context);

} // namespace stablehlo
} // namespace mlir

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_FAMILIES_H
