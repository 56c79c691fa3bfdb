//===- DataFlowInterface.td - Values through regions --------*- tablegen -*-===//

#ifndef DIALECTS_ALPA_DATAFLOWINTERFACE_TD
#define DIALECTS_ALPA_DATAFLOWINTERFACE_TD

include "mlir/IR/OpBase.td"

def Alpa_DataFlowOpInterface : OpInterface<"DataFlowOpInterface"> {
  let cppNamespace = "::mlir::alpa";
  let description = [{
    What an operator whose regions are part of the program (a loop, a branch, a
    scan) says about itself so that what its regions do can be planned and
    lowered: which values are one and the same on their way through it. Attach
    it to operators of any dialect with an external model. The regions of an
    operator without it (the combiner of a reduction) are copied as they are.

    Values on one edge have one sharding. Operands, results, arguments of regions
    and operands of terminators that are on no edge (the number of a branch, the
    condition of a loop, its induction variable) are the same on every device.

    **Constraints:**
    - (C1) a region is empty or has one block, with a terminator;
    - (C2) an edge has an operand or a result of the operator;
    - (C3) a value is on one edge at most;
    - (C4) the values of an edge have one type; those inside of regions lack the
      edge's `sliced` dimension, if there is one.
  }];
  let methods = [
    InterfaceMethod<[{
      All edges, in a fixed order.
    }], "::llvm::SmallVector<::mlir::alpa::DataFlowEdge>", "getDataFlowEdges",
      (ins)>,
    InterfaceMethod<[{
      The edge of an argument of a region; one without values if it is on none.
      Override it where the edge can be found without making all of them: it is
      asked for at every use of an argument.
    }], "::mlir::alpa::DataFlowEdge", "getDataFlowEdge",
      (ins "::mlir::BlockArgument":$argument),
      /*methodBody=*/"",
      /*defaultImplementation=*/[{
        return ::mlir::alpa::findDataFlowEdge($_op.getOperation(), argument);
      }]>,
    InterfaceMethod<[{
      How often each region runs when the operator runs once: the trip count of
      a loop. None if that is not known. By default one region is chosen, each
      as likely as the others.
    }], "std::optional<double>", "getRegionRuns", (ins),
      /*methodBody=*/"",
      /*defaultImplementation=*/[{
        return 1.0 / $_op.getOperation()->getNumRegions();
      }]>,
    InterfaceMethod<[{
      The operator anew, on other operands and with other types of results, and
      as many regions, which are empty: the caller fills them. Override it where
      an attribute or a type parameter follows from the types.
    }], "::mlir::Operation *", "cloneWithTypes",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::ValueRange":$operands,
           "::mlir::TypeRange":$resultTypes),
      /*methodBody=*/"",
      /*defaultImplementation=*/[{
        return ::mlir::alpa::cloneWithEmptyRegions($_op.getOperation(), builder,
                                                   operands, resultTypes);
      }]>,
    InterfaceMethod<[{
      Puts an operator in the place of this one that has one edge more, its
      last, from `initial` through all regions to the last result; regions hand
      the value on as they get it. Null, and nothing has changed, if it cannot
      have one.
    }], "::mlir::Operation *", "addDataFlowEdge",
      (ins "::mlir::OpBuilder &":$builder, "::mlir::Value":$initial),
      /*methodBody=*/"",
      /*defaultImplementation=*/"return nullptr;">,
  ];
}

#endif // DIALECTS_ALPA_DATAFLOWINTERFACE_TD
