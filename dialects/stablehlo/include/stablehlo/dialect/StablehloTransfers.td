//===- StablehloTransfers.td - to and from the host, along a channel ------===//

#ifndef STABLEHLO_DIALECT_TRANSFERS
#define STABLEHLO_DIALECT_TRANSFERS

include "stablehlo/dialect/StablehloBase.td"

// All have side effects that the token orders; what is received is given before
// the token after it.
class HLO_Transfer<string mnemonic>
    : HLO_Op<mnemonic, [MemoryEffects<[MemRead, MemWrite]>]> {
  let hasVerifier = 1;
}

def HLO_InfeedOp : HLO_Transfer<"infeed"> {
  let arguments = (ins HLO_Token:$token, DefaultValuedStrAttr<StrAttr, "">:$infeed_config,
    OptionalAttr<ArrayAttr>:$layout);
  let results = (outs Variadic<HLO_StaticShapeTensorOrPerAxisQuantizedTensorOrToken>);
}

def HLO_OutfeedOp : HLO_Transfer<"outfeed"> {
  let arguments = (ins Variadic<HLO_TensorOrPerAxisQuantizedTensor>:$inputs, HLO_Token:$token,
    DefaultValuedStrAttr<StrAttr, "">:$outfeed_config);
  let results = (outs HLO_Token:$result);
  let hasVerifier = 0;
}

def HLO_SendOp : HLO_Transfer<"send"> {
  let arguments = (ins Variadic<HLO_TensorOrPerAxisQuantizedTensor>:$inputs, HLO_Token:$token,
    HLO_ChannelHandle:$channel_handle,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_host_transfer,
    OptionalAttr<I64ElementsAttr>:$source_target_pairs);
  let results = (outs HLO_Token:$result);
}

def HLO_RecvOp : HLO_Transfer<"recv"> {
  let arguments = (ins HLO_Token:$token, HLO_ChannelHandle:$channel_handle,
    DefaultValuedOptionalAttr<BoolAttr, "false">:$is_host_transfer,
    OptionalAttr<I64ElementsAttr>:$source_target_pairs);
  let results = (outs Variadic<HLO_StaticShapeTensorOrPerAxisQuantizedTensorOrToken>);
}

#endif // STABLEHLO_DIALECT_TRANSFERS
