//===- StablehloNormalization.td - batch normalization --------------------===//

#ifndef STABLEHLO_DIALECT_NORMALIZATION
#define STABLEHLO_DIALECT_NORMALIZATION

include "stablehlo/dialect/StablehloBase.td"

// Statistics are vectors with one entry for each feature of the operand.
class HLO_BatchNorm<string mnemonic>
    : HLO_Op<mnemonic, [Pure, HLO_CompatibleOperandsAndResultElementType]> {
  let hasVerifier = 1;
}

def HLO_BatchNormGradOp : HLO_BatchNorm<"batch_norm_grad"> {
  let arguments = (ins HLO_FpOrQuantizedIntTensor:$operand, HLO_FeatureTensor:$scale,
    HLO_FeatureTensor:$mean, HLO_FeatureTensor:$variance,
    HLO_FpOrQuantizedIntTensor:$grad_output, F32Attr:$epsilon, HLO_DimAttr:$feature_index);
  let results = (outs HLO_FpOrQuantizedIntTensor:$grad_operand, HLO_FeatureTensor:$grad_scale,
    HLO_FeatureTensor:$grad_offset);
}

def HLO_BatchNormInferenceOp : HLO_BatchNorm<"batch_norm_inference"> {
  let arguments = (ins HLO_FpOrQuantizedIntTensor:$operand, HLO_FeatureTensor:$scale,
    HLO_FeatureTensor:$offset, HLO_FeatureTensor:$mean, HLO_FeatureTensor:$variance,
    F32Attr:$epsilon, HLO_DimAttr:$feature_index);
  let results = (outs HLO_FpOrQuantizedIntTensor:$result);
}

def HLO_BatchNormTrainingOp : HLO_BatchNorm<"batch_norm_training"> {
  let arguments = (ins HLO_FpOrQuantizedIntTensor:$operand, HLO_FeatureTensor:$scale,
    HLO_FeatureTensor:$offset, F32Attr:$epsilon, HLO_DimAttr:$feature_index);
  let results = (outs HLO_FpOrQuantizedIntTensor:$output, HLO_FeatureTensor:$batch_mean,
    HLO_FeatureTensor:$batch_var);
}

#endif // STABLEHLO_DIALECT_NORMALIZATION
