//===- StablehloOps.td - all operations of the dialect --------------------===//

#ifndef STABLEHLO_DIALECT_OPS
#define STABLEHLO_DIALECT_OPS

include "stablehlo/dialect/StablehloBase.td"
include "stablehlo/dialect/StablehloCollectives.td"
include "stablehlo/dialect/StablehloControlFlow.td"
include "stablehlo/dialect/StablehloCustomCall.td"
include "stablehlo/dialect/StablehloDataMovement.td"
include "stablehlo/dialect/StablehloDeprecated.td"
include "stablehlo/dialect/StablehloDynamism.td"
include "stablehlo/dialect/StablehloElementwise.td"
include "stablehlo/dialect/StablehloLinearAlgebra.td"
include "stablehlo/dialect/StablehloNormalization.td"
include "stablehlo/dialect/StablehloReductions.td"
include "stablehlo/dialect/StablehloTransfers.td"

#endif // STABLEHLO_DIALECT_OPS
