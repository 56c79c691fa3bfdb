//===- ShardingRuleInterface.td - Loop nests of operators ---*- tablegen -*-===//

#ifndef DIALECTS_ALPA_SHARDINGRULEINTERFACE_TD
#define DIALECTS_ALPA_SHARDINGRULEINTERFACE_TD

include "mlir/IR/OpBase.td"

def Alpa_ShardingRuleOpInterface : OpInterface<"ShardingRuleOpInterface"> {
  let cppNamespace = "::mlir::alpa";
  let description = [{
    What an operator says about itself so that it can be planned and lowered:
    its loop nest. Attach it to operators of any dialect with an external model.
    An operator without it is replicated, which is always correct.
  }];
  let methods = [
    InterfaceMethod<[{
      The operator as a loop nest. Must not fail: an instance that cannot be
      split returns `ShardingRule::replicated`.
    }], "::mlir::alpa::ShardingRule", "getShardingRule", (ins)>,
    InterfaceMethod<[{
      How the operator takes part in operator merging.
    }], "::mlir::alpa::OperatorRole", "getOperatorRole", (ins),
      /*methodBody=*/"",
      /*defaultImplementation=*/"return ::mlir::alpa::OperatorRole::Leader;">,
    InterfaceMethod<[{
      Whether the results depend on the device that runs the operator, and not
      on the operands alone: random numbers from a state of the device. What the
      first device of the mesh makes is then sent to all others.
    }], "bool", "isDeviceDependent", (ins),
      /*methodBody=*/"",
      /*defaultImplementation=*/"return false;">,
    InterfaceMethod<[{
      The collectives of the local form along the axes that split an ordered or
      windowed factor of the rule, where the factors are split in so many
      blocks. By default one iteration of every result is gathered.
    }], "::llvm::SmallVector<::mlir::alpa::Exchange>", "getExchanges",
      (ins "const ::mlir::alpa::ShardingRule &":$rule, "unsigned":$factor,
           "::llvm::ArrayRef<int64_t>":$factorShards),
      /*methodBody=*/"",
      /*defaultImplementation=*/[{
        return ::mlir::alpa::getIterationExchanges($_op, rule, factor, factorShards);
      }]>,
    InterfaceMethod<[{
      What the local form does beside, or instead of, what rule, operands and
      results tell, where the factors are split in so many blocks: of an
      operator that is a program of its own. By default nothing.
    }], "::mlir::alpa::InnerWork", "getInnerWork",
      (ins "const ::mlir::alpa::ShardingRule &":$rule,
           "::llvm::ArrayRef<int64_t>":$factorShards),
      /*methodBody=*/"",
      /*defaultImplementation=*/"return {};">,
    InterfaceMethod<[{
      Writes the operator for one device at the insertion point of the context's
      builder and returns its local results. The default clones the operator
      with local types; override it where an attribute names a size that may be
      split, or where the device's position matters.
    }], "::mlir::FailureOr<::llvm::SmallVector<::mlir::Value>>", "localize",
      (ins "::mlir::alpa::LocalContext &":$context),
      /*methodBody=*/"",
      /*defaultImplementation=*/[{
        return ::mlir::alpa::cloneLocal($_op.getOperation(), context);
      }]>,
  ];
}

#endif // DIALECTS_ALPA_SHARDINGRULEINTERFACE_TD
