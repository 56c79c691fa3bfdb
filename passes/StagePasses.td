//===- StagePasses.td - Passes that cut steps into parts ---*- tablegen -*-===//

#ifndef PASSES_STAGE_PASSES_TD
#define PASSES_STAGE_PASSES_TD

include "mlir/Pass/PassBase.td"

def LoopSecondPass : Pass<"alpa-loop-second-pass", "::mlir::ModuleOp"> {
  let summary = "Goes through the batch a second time in a loop";
  let description = [{
    Input: a prepared module of the whole batch. Where gradients are taken at
    what others of the same step have made (sharpness-aware minimisation, a
    generator against the updated discriminator), the batch has to be gone
    through once more. What is behind the first gradients becomes a function of
    the batch and of their sums, which is cut as the step is
    (`alpa-split-micro-batches`, so that the sharding rules prove that its
    summands add up), and comes back as a loop over its micro-batches, followed
    by what uses its sums. Operators that are not to be cut again have
    `alpa.once`. What of the first pass the second uses per example is made
    again. A third pass is a second one of the second.

    Loops and branches that use the whole batch (a line search, several updates
    on one batch) go through it by themselves: what a turn or a branch does is
    cut likewise, and comes back as a loop inside of it.

    Likewise where examples meet each other in a loss (contrastive losses, ranks,
    statistics of results) and no barrier stands around gradients: the first pass
    makes what they meet in, the loss and its derivative by that are taken of the
    whole, and the second pass takes the gradients, part by part.
    `alpa-split-micro-batches` runs this pass where it would refuse a step.

    Steps that go through the batch once stay as they are, and so do those whose
    examples meet in the second pass again, or in turns. Fails where the pass behind
    gradients cannot be cut.

    before:
    ```mlir
    %1 = stablehlo.dot_general %x, %h : (tensor<4x8xf32>, tensor<8x4xf32>)
        -> tensor<4x4xf32>
    %w1 = stablehlo.subtract %w, %1
    %2 = stablehlo.dot_general %xt, %w1 : (tensor<8x4xf32>, tensor<4x4xf32>)
    ```
    after, with `micro-batches=2`:
    ```mlir
    %1 = stablehlo.dot_general %x, %h : (tensor<4x8xf32>, tensor<8x4xf32>)
        -> tensor<4x4xf32>
    %w1 = stablehlo.subtract %w, %1
    %xs = stablehlo.reshape %xt {alpa.once} : (tensor<8x4xf32>)
        -> tensor<2x4x4xf32>
    %2:4 = stablehlo.while(%i = %zero, %a = %xs, %b = %w1, %sum = ...) {alpa.once}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    ListOption<"batch", "batch", "int64_t",
               "arguments that have to be cut; by default whatever can be">,
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches of a step">,
  ];
}

def SplitMicroBatches : Pass<"alpa-split-micro-batches", "::mlir::ModuleOp"> {
  let summary = "Puts a step on the axis of time";
  let description = [{
    A micro-batch is a shard in time. Input: a prepared module of the whole
    batch. Finds the arguments that can be cut along dimension 0, so that the
    sharding rules of the operators give every micro-batch its part, a summand
    or all of each value, and nothing has to be communicated; writes the module
    with shardings on the mesh `time` for `alpa-insert-reshards` and
    `alpa-lower-to-spmd{micro-batches}`. Where that does not do, what is cheap
    to make of the whole batch (examples in another order, slices of it) is made
    by every micro-batch, which takes its part of the result. Of values of which
    elements are picked (their largest, a row, in order) it takes its part, too:
    made again in parts they would be rounded otherwise, and what is equal to
    the largest would not be. Rows that are sorted by integers for products in
    groups, and brought back, are sorted in the part of each micro-batch
    (`alpa.manual` on the mesh `time`), if nothing shows their order. Where a
    value leaves the micro-batches stands an
    `alpa.accumulate`; what depends on such values runs behind it, once per
    step. What can be done to a sum is not done to its summands, where
    no more is added up for it. The barrier in the scope `alpa_gradients` is one
    of these places. With one micro-batch the module stays as it is but for the
    joins.

    Fails if an operator with floating-point work would have to see more than
    one micro-batch (batch statistics, rows that meet each other), or if no
    argument can be cut. With `independent` the module is that of one
    micro-batch already and only what joins results is inserted.

    before, with `micro-batches=2`:
    ```mlir
    %1 = stablehlo.dot_general %x, %w : (tensor<8x4xf32>, tensor<4x2xf32>)
        -> tensor<8x2xf32>
    %2 = stablehlo.reduce(%1 init: %zero) ... : tensor<f32>
    return %2
    ```
    after:
    ```mlir
    %1 = stablehlo.dot_general ... {alpa.results = [#alpa.sharding<S0R>]}
    %2 = stablehlo.reduce ... {alpa.results = [#alpa.sharding<P0>]}
    %3 = alpa.accumulate %2 {alpa.operands = [#alpa.sharding<P0>],
                             alpa.results = [#alpa.sharding<>]}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    ListOption<"batch", "batch", "int64_t",
               "arguments that have to be cut; by default whatever can be">,
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches of a step">,
    Option<"independent", "independent", "std::string", "\"\"",
           "the module is that of one micro-batch, results are joined so: mean, "
           "sum, or the number of the result that is the weight; one micro-batch "
           "is all of a part of the batch">,
    Option<"onePass", "one-pass", "bool", "false",
           "with one micro-batch: gradients at what others have made are joined as "
           "these are, which is refused later on">,
  ];
}

def MarkLayers : Pass<"alpa-mark-layers", "::mlir::ModuleOp"> {
  let summary = "Turns name scopes into layers and phases of a train step";
  let description = [{
    Input: the module of one micro-batch, with an `alpa.accumulate` or
    `alpa.collect` where values leave it, whose differentiated function was
    traced in scopes `alpa_layer_<n>`. Writes `alpa.layer` and `alpa.phase`.
    What gives an argument another type or shape is made by every layer that
    uses it, in each phase.

    Fails if something behind the joins uses one micro-batch.

    before:
    ```mlir
    %1 = stablehlo.dot_general ... loc("jit(step)/transpose(jvp(alpa_layer_0))/dot")
    %2 = alpa.accumulate %1
    %3 = stablehlo.subtract %arg0, %2
    ```
    after:
    ```mlir
    %1 = stablehlo.dot_general ... {alpa.layer = 0, alpa.phase = 1}
    %2 = alpa.accumulate %1 {alpa.layer = 0, alpa.phase = 1}
    %3 = stablehlo.subtract %arg0, %2 {alpa.phase = 2}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"microBatches", "micro-batches", "int64_t", "1",
           "micro-batches of a step">,
  ];
}

def SliceStages : Pass<"alpa-slice-stages", "::mlir::ModuleOp"> {
  let summary = "Cuts a train step into stages at layer boundaries";
  let description = [{
    Input: a module with layers and phases. Output: one nested module per stage
    with the function `main`, which says of its arguments and results what they
    are: `alpa.input`, `alpa.output`, `alpa.transfer`. Operators that depend on
    nothing a stage has made are made again wherever they are used; gradients
    that several stages contribute to are summed once per step; what crosses
    and is the same for every micro-batch is made once per step (`alpa.once`).
    A result that any stage could make, the count of steps of an optimiser for
    example, is made by the first; with `last-makes-free` by the last, whose
    update comes first where stages update by themselves.

    Fails if a layer has no stage or a stage no layer.

    before, with `stages=0,1`: one function; after:
    ```mlir
    module @stage_0 { func.func @main(%arg0: ... {alpa.input = 0})
      -> (... {alpa.transfer = 0}) }
    module @stage_1 { func.func @main(%arg0: ... {alpa.transfer = 0})
      -> (... {alpa.output = 0}) }
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    ListOption<"stages", "stages", "int64_t", "stage of every layer">,
    Option<"lastMakesFree", "last-makes-free", "bool", "false",
           "results made from arguments alone belong to the last stage">,
  ];
}

def SplitPhases : Pass<"alpa-split-phases", "::mlir::ModuleOp"> {
  let summary = "Cuts a planned stage into the programs of its phases";
  let description = [{
    Input: the planned module of a stage, with shardings and reshards. Output:
    one nested module per phase with the function `main`: `prepare` (what runs
    before the first micro-batch), `forward`, `backward`,
    `backward_weight` (with `split-backward`: what only gradients of parameters
    need), `apply_0`, `apply_1` ... Values between phases are results of one and
    arguments of the other (`alpa.local`), sums over micro-batches are added to
    an argument (`alpa.accumulator`).

    Values that take no memory in one program are made again by the phases that
    use them. Programs round differently: what an earlier phase keeps is not
    compared with what it is made of and is made again, as the gradient of a
    maximum does; the earlier phase compares, and hands on the booleans. Where
    the later phase itself compares it is given both.

    In the backward phase of several layers what a layer takes of the one behind
    it waits for that one's sums (`stablehlo.optimization_barrier`), and so does
    what is computed again behind a barrier: a backend that runs last what
    nothing waits for would keep the operands of all products that make
    gradients.
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"splitBackward", "split-backward", "bool", "false",
           "delay what only gradients of parameters need">,
  ];
}

def SplitStacks : Pass<"alpa-split-stacks", "::mlir::ModuleOp"> {
  let summary = "Makes several arguments of one that holds all layers";
  let description = [{
    Parameters of equal layers are often one tensor, which a loop runs through.
    Of a loop that is cut for layers, slices (`alpa_stack` in their scope) say
    which layer needs what of it. Each part becomes an argument of its own, so
    that it can lie with its layer; so do the parts of all that is like it, the
    moments of an optimiser for example, and results: gradients, next values.
    What is done to the whole is done to the parts, by the sharding rules: a loop
    that is parallel is cut, reductions combine the results of their parts, of
    branches there is one operator per part. Operators of which that is not
    known read the parts put together.

    Notes on arguments and results which of the program's they are, or are parts
    of (`alpa.input`, `alpa.output`). Arguments of `whole` stay as they are; the
    next value of an argument is cut where the argument is, and nowhere else.

    before, with `aliases=0:0`:
    ```mlir
    func.func @main(%w: tensor<4x8xf32>, %x: tensor<8xf32>) -> tensor<4x8xf32> {
      %0 = stablehlo.slice %w [0:2, 0:8] loc("alpa_stack")
      %1 = stablehlo.slice %w [2:4, 0:8] loc("alpa_stack")
      ...
      %2 = stablehlo.multiply %w, %s
      return %2
    ```
    after:
    ```mlir
    func.func @main(%a: tensor<2x8xf32>, %b: tensor<2x8xf32>, %x: tensor<8xf32>)
        -> (tensor<2x8xf32>, tensor<2x8xf32>) {
      ...
      %2 = stablehlo.multiply %a, %s0
      %3 = stablehlo.multiply %b, %s1
      return %2, %3
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    ListOption<"aliases", "aliases", "std::string",
               "argument:result pairs, the result being the argument's value "
               "in the next step">,
    ListOption<"whole", "whole", "int64_t", "arguments that are not cut">,
  ];
}

#endif // PASSES_STAGE_PASSES_TD
