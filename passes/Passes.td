//===- Passes.td - Passes of the planner -------------------*- tablegen -*-===//

#ifndef PASSES_PASSES_TD
#define PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

// One file per part of the way from a traced step to the programs of devices.
include "passes/ImportPasses.td"
include "passes/StagePasses.td"
include "passes/PlanningPasses.td"
include "passes/LoweringPasses.td"

// Analyses, shown.

def PrintShardingRules : Pass<"alpa-print-sharding-rules", "::mlir::ModuleOp"> {
  let summary = "Shows the loop nest of every operator";
  let description = [{
    Emits a remark per operator with its sharding rule, as it can be written on
    an operator as `alpa.rule`, and with its role in merging.
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    Option<"asAttributes", "as-attributes", "bool", "false",
           "write the rules on their operators instead">,
  ];
}

def PrintMaterialization : Pass<"alpa-print-materialization", "::mlir::ModuleOp"> {
  let summary = "Shows what the program keeps in memory";
  let description = [{
    Emits a remark per value that is stored, with the first and the last program
    point at which it lies in memory, and one per operator that reads or writes
    memory, with its bytes. Everything else is computed inside of the fusions
    that read it. Fails if the module has not exactly one public function.
  }];
  let options = [
    ListOption<"donated", "donated", "int64_t",
               "arguments whose memory may be written over">,
    Option<"platform", "platform", "std::string", "",
           "what jax calls that which runs it: for \"tpu\" the rules of XLA for "
           "TPU are followed, for others those of XLA for GPU">,
  ];
}

#endif // PASSES_PASSES_TD
