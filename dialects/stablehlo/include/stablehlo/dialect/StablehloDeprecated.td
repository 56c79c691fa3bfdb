//===- StablehloDeprecated.td - what others have replaced -----------------===//

#ifndef STABLEHLO_DIALECT_DEPRECATED
#define STABLEHLO_DIALECT_DEPRECATED

include "stablehlo/dialect/StablehloBase.td"

def HLO_EinsumOp : HLO_Op<"einsum", [Pure]> {
  let arguments = (ins HLO_Tensor:$lhs, HLO_Tensor:$rhs, StrAttr:$einsum_config);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $lhs `,` $rhs `,` `config` `=` $einsum_config attr-dict `:`
    functional-type(operands, results)
  }];
}

def HLO_UnaryEinsumOp : HLO_Op<"unary_einsum", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, StrAttr:$einsum_config);
  let results = (outs HLO_Tensor:$result);
  let assemblyFormat = [{
    $operand `,` `config` `=` $einsum_config attr-dict `:`
    functional-type(operands, results)
  }];
}

def HLO_TorchIndexSelectOp : HLO_Op<"torch_index_select", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, HLO_Tensor:$index, I64Attr:$dim,
    I64Attr:$batch_dims);
  let results = (outs HLO_Tensor:$result);
}

def HLO_CrossReplicaSumOp : HLO_InferredOp<"cross-replica-sum"> {
  let arguments = (ins HLO_Tensor:$operand, I64ElementsAttr:$replica_groups);
  let results = (outs HLO_Tensor:$result);
}

#endif // STABLEHLO_DIALECT_DEPRECATED
