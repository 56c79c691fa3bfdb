//===- StablehloCollectives.td - communication between devices ------------===//

#ifndef STABLEHLO_DIALECT_COLLECTIVES
#define STABLEHLO_DIALECT_COLLECTIVES

include "stablehlo/dialect/StablehloBase.td"

// Printed in the generic form, as upstream does.

def HLO_AllGatherOp : HLO_Op<"all_gather", [Pure]> {
  let arguments = (ins Variadic<HLO_Tensor>:$operands, HLO_DimAttr:$all_gather_dim,
    I64ElementsAttr:$replica_groups, HLO_OptionalChannel:$channel_handle,
    UnitAttr:$use_global_device_ids);
  let results = (outs Variadic<HLO_Tensor>);
  let hasVerifier = 1;
}

def HLO_AllReduceOp : HLO_RegionOp<"all_reduce"> {
  let arguments = (ins Variadic<HLO_Tensor>:$operands, I64ElementsAttr:$replica_groups,
    HLO_OptionalChannel:$channel_handle, UnitAttr:$use_global_device_ids);
  let results = (outs Variadic<HLO_Tensor>);
  let regions = (region SizedRegion<1>:$computation);
  let hasVerifier = 1;
}

def HLO_ReduceScatterOp : HLO_RegionOp<"reduce_scatter"> {
  let arguments = (ins HLO_Tensor:$operand, HLO_DimAttr:$scatter_dimension,
    I64ElementsAttr:$replica_groups, HLO_OptionalChannel:$channel_handle,
    UnitAttr:$use_global_device_ids);
  let results = (outs HLO_Tensor:$result);
  let regions = (region SizedRegion<1>:$computation);
  let hasVerifier = 1;
}

def HLO_AllToAllOp : HLO_Op<"all_to_all", [Pure]> {
  let arguments = (ins Variadic<HLO_Tensor>:$operands, HLO_DimAttr:$split_dimension,
    HLO_DimAttr:$concat_dimension, HLO_CountAttr:$split_count, I64ElementsAttr:$replica_groups,
    HLO_OptionalChannel:$channel_handle);
  let results = (outs Variadic<HLO_Tensor>);
  let hasVerifier = 1;
}

def HLO_CollectivePermuteOp : HLO_InferredOp<"collective_permute", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, I64ElementsAttr:$source_target_pairs,
    HLO_OptionalChannel:$channel_handle);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

def HLO_CollectiveBroadcastOp
    : HLO_InferredOp<"collective_broadcast", [Pure]> {
  let arguments = (ins HLO_Tensor:$operand, I64ElementsAttr:$replica_groups,
    HLO_OptionalChannel:$channel_handle);
  let results = (outs HLO_Tensor:$result);
  let hasVerifier = 1;
}

class HLO_DeviceIndex<string mnemonic> : HLO_Op<mnemonic, [Pure]> {
  let results = (outs HLO_UI32Scalar:$result);
  let assemblyFormat = "attr-dict `:` type($result)";
}
def HLO_PartitionIdOp : HLO_DeviceIndex<"partition_id">;
def HLO_ReplicaIdOp : HLO_DeviceIndex<"replica_id">;

#endif // STABLEHLO_DIALECT_COLLECTIVES
