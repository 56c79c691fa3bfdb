//===- ShardingRules.cpp - Registration of the rules ----------------------===//

#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/stablehlo/ShardingRules/Families.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/IR/MLIRContext.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"

using namespace mlir;

void stablehlo::registerShardingRules(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, StablehloDialect *) {
    attachElementwiseRules(*context);
    attachDataMovementRules(*context);
    attachRearrangementRules(*context);
    attachSliceRules(*context);
    attachContractionRules(*context);
    attachConvolutionRules(*context);
    attachReductionRules(*context);
    attachWindowRules(*context);
    attachSelectAndScatterRules(*context);
    attachSortRules(*context);
    attachGatherRules(*context);
    attachScatterRules(*context);
    attachGeneratorRules(*context);
    attachLinearAlgebraRules(*context);
    attachCustomCallRules(*context);
  });
  registry.addExtension(+[](MLIRContext *context, alpa::AlpaDialect *) {
    attachAttentionRules(*context);
  });
  registry.addExtension(+[](MLIRContext *context, chlo::ChloDialect *) {
    attachChloElementwiseRules(*context);
    attachChloContractionRules(*context);
    attachChloSortRules(*context);
  });
}
