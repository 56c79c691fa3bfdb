//===- Passes.td - Passes of the planner ---------------------*- tablegen -*-===//

#ifndef PASSES_PASSES_TD
#define PASSES_PASSES_TD

include "mlir/Pass/PassBase.td"

def CheckRegions : Pass<"alpa-check-regions", "::mlir::ModuleOp"> {
  let summary = "Refuses unknown operators that have a region";
  let description = [{
    Nothing is known about when such a region runs, so it cannot be planned;
    and some of MLIR's passes do not survive them. Unknown operators without
    regions pass: they are replicated.
  }];
}

def ImportConstraints : Pass<"alpa-import-constraints", "::mlir::ModuleOp"> {
  let summary = "Makes sharding constraints known to the planner";
  let description = [{
    Constraints of Shardy (`sdy.sharding_constraint`) and of GSPMD
    (`custom_call @Sharding`), which the program's author wrote: one becomes an
    `alpa.constrain` where all axes of its mesh are among `axes`, the names that
    a plan will use. So do the shardings of arguments and results
    (`sdy.sharding`). Of another mesh, or in a notation without names or with
    parts of axes, it is left out, and so is what a propagation has written on
    operators; a remark says how many are, but for those on a mesh without axes,
    which JAX itself puts behind PRNG keys. The meshes go. Before the inliner,
    for which these operations are unknown.

    before, with `axes=data`:
    ```mlir
    sdy.mesh @mesh = <["data"=2]>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"data"}, {} ]> : tensor<8x4xf32>
    ```
    after:
    ```mlir
    %1 = alpa.constrain %0 [["data"], []] : tensor<8x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    ListOption<"axes", "axes", "std::string",
               "mesh axes that constraints may name">,
  ];
}

def ImportRules : Pass<"alpa-import-rules", "::mlir::ModuleOp"> {
  let summary = "Reads Shardy's rules of custom calls";
  let description = [{
    A `sdy.sharding_rule` on a custom call of which nothing else is known, as
    JAX and its users write it, becomes an `alpa.rule`. A factor is parallel if
    an operand and every result have it; those that Shardy reduces are sums; all
    others are replicated. Rules by which nothing could be split are left out,
    and so are those that do not fit; a remark says why.

    Fails on a rule of a kernel that is made for the sizes of the whole tensors
    (Pallas, cuDNN's attention), unless the operator itself can be split.

    before:
    ```mlir
    %1 = stablehlo.custom_call @solve(%0) {sdy.sharding_rule =
      #sdy.op_sharding_rule<([i, j])->([i, k]) {i=8, j=4, k=4}, custom>}
    ```
    after:
    ```mlir
    %1 = stablehlo.custom_call @solve(%0) {alpa.rule =
      #alpa.rule<([a, b]) -> ([a, c]) {a=8, b=4:replicated, c=4:replicated}>}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
}

def ImportManual : Pass<"alpa-import-manual", "::mlir::ModuleOp"> {
  let summary = "Computations that are split by hand become operators";
  let description = [{
    Each `sdy.manual_computation` (a `shard_map` of JAX) becomes an
    `alpa.manual`. Before what refuses unknown operators with regions.

    Fails on one inside of another, on axes of one dimension in another order
    than that of the mesh, and on partial sums.

    before:
    ```mlir
    sdy.mesh @mesh = <["x"=2]>
    %1 = sdy.manual_computation(%0) in_shardings=[<@mesh, [{"x"} ]>]
           out_shardings=[<@mesh, [{"x"} ]>] manual_axes={"x"}
           (%a: tensor<4xf32>) { ... sdy.return %b } : (tensor<8xf32>) -> tensor<8xf32>
    ```
    after:
    ```mlir
    %1 = alpa.manual (%0) on <["x"=2]> ins [[["x"]]] outs [[["x"]]]
        : (tensor<8xf32>) -> tensor<8xf32> {
    ^bb0(%a: tensor<4xf32>):
      ...
      alpa.yield %b : tensor<4xf32>
    }
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
}

def InlineCalls : Pass<"alpa-inline-calls", "::mlir::ModuleOp"> {
  let summary = "Puts the bodies of private functions in the place of calls";
  let description = [{
    Every `func.call` of a private function with one block becomes the
    function's body; private functions that nothing needs any more go. An
    operator's location is then that of the call around its own, from which the
    name scopes of layers are read. Does what MLIR's inliner does to such calls,
    in time that is linear in the operators that come out, times the depth of
    calls. Functions that something other than a call refers to (a
    decomposition) stay.

    Fails on functions that call each other in a circle.

    before:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %0 = call @relu(%x) : (tensor<8xf32>) -> tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    func.func private @relu(%x: tensor<8xf32>) -> tensor<8xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
      %0 = stablehlo.maximum %x, %zero : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
    after:
    ```mlir
    func.func @main(%x: tensor<8xf32>) -> tensor<8xf32> {
      %zero = stablehlo.constant dense<0.0> : tensor<8xf32>
      %0 = stablehlo.maximum %x, %zero : tensor<8xf32>
      return %0 : tensor<8xf32>
    }
    ```
  }];
  let options = [
    Option<"report", "report", "bool", "false",
           "remarks how often an operator was read, moved or copied">
  ];
}

def ImportCallbacks : Pass<"alpa-import-callbacks", "::mlir::ModuleOp"> {
  let summary = "Custom calls of callbacks become operators";
  let description = [{
    `custom_call @alpa_callback`, as the front end writes functions of the host,
    becomes `alpa.callback`. Ordered ones hand on a token, through loops and
    branches, in the order in which they stand. Calls have been inlined.

    Fails on ordered callbacks in the condition of a loop and in regions of
    other operators than loops and branches.

    before:
    ```mlir
    stablehlo.custom_call @alpa_callback(%0) {has_side_effect = true,
      backend_config = {index = 0, name = "log", ordered = true}}
    ```
    after:
    ```mlir
    %t = stablehlo.constant dense<0> : tensor<i32>
    %1 = alpa.callback "log" index 0 ordered (%t, %0)
        : (tensor<i32>, tensor<8xf32>) -> tensor<i32>
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
}

def FoldPadding : Pass<"alpa-fold-padding", "::mlir::ModuleOp"> {
  let summary = "Windows over padded tensors pad by themselves";
  let description = [{
    A `pad` that a convolution or a `reduce_window` reads is made padding and
    dilation of the window, where it pads with what the window itself pads with:
    zero, or the initial value. JAX writes the gradient of average pooling with
    such a pad, and authors pad before they convolve. The blocks of a padded
    tensor do not lie under those of the window's results; those of the tensor
    itself often do, so that it can be split.

    The gradient of maximum pooling is padded with a number that loses to all
    others, and what it makes of that is cut off: `select_and_scatter` gets the
    padding and `alpa.explicit_padding`, as padding of its own would be elements
    that are not there, and -inf and NaN tell the difference.

    before:
    ```mlir
    %1 = stablehlo.pad %0, %zero, low = [1], high = [1], interior = [1]
        : (tensor<8xf32>, tensor<f32>) -> tensor<17xf32>
    %2 = "stablehlo.reduce_window"(%1, %zero)
        <{window_dimensions = array<i64: 2>}> ({...})
        : (tensor<17xf32>, tensor<f32>) -> tensor<16xf32>
    ```
    after:
    ```mlir
    %2 = "stablehlo.reduce_window"(%0, %zero)
        <{base_dilations = array<i64: 2>, padding = dense<1> : tensor<1x2xi64>,
          window_dimensions = array<i64: 2>}> ({...})
        : (tensor<8xf32>, tensor<f32>) -> tensor<16xf32>
    ```
  }];
}

def Import : Pass<"alpa-import", "::mlir::ModuleOp"> {
  let summary = "Prepares a StableHLO module for planning";
  let description = [{
    The module must have one public function; calls have been inlined. Checks
    that it can be planned: static shapes, and results that are functions of
    operands. Notes on the arguments which result is their next-step value, and
    as JAX does (`jax.buffer_donor`) which of them are given away. Forgets the
    numbers of `alpa-split-stacks`: arguments and results are counted anew. Tensors
    without elements, of which nothing has a part, become constants, and are
    dropped from concatenations; padding around one is its value, broadcast.

    Fails on dynamic shapes; outside of `alpa.manual` on collectives, on
    `partition_id` and `replica_id`, and on what exchanges values with other
    devices or the host (`infeed`, `send`, ...): replicated, they would not be
    the same on all devices.

    before, with `aliases=0:1`:
    ```mlir
    func.func @main(%arg0: tensor<8xf32>) -> (tensor<f32>, tensor<8xf32>)
    ```
    after:
    ```mlir
    func.func @main(%arg0: tensor<8xf32> {alpa.alias = 1}) -> ...
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    ListOption<"aliases", "aliases", "std::string",
               "argument:result pairs, the result being the argument's value "
               "in the next step">,
    ListOption<"donated", "donated", "int64_t",
               "arguments whose memory results may take">,
  ];
}

def HintTripCounts : Pass<"alpa-hint-trip-counts", "::mlir::ModuleOp"> {
  let summary = "Loops of which it is not known how often they run";
  let description = [{
    Notes on loops that do not say themselves how often they run, as one that
    ends when values have converged, how often their author says they do. Costs
    are weighed by it; nothing else depends on it. It goes with the plan: on the
    program of one device it is noted again where that is to be priced.

    Fails on a number below one.

    before, with `count=50`:
    ```mlir
    %0 = stablehlo.while(%x) cond { %p = stablehlo.compare LT, %norm, %small ... }
    ```
    after:
    ```mlir
    %0 = stablehlo.while(%x) ... {alpa.trip_count = 50}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    Option<"count", "count", "int64_t", /*default=*/"1",
           "how often they run, at least 1">,
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
    `alpa-lower-to-spmd{micro-batches}`. Where a value leaves the micro-batches
    stands an `alpa.accumulate`; what depends on such values runs behind it,
    once per step. What can be done to a sum is not done to its summands, where
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

def PadDimensions : Pass<"alpa-pad-dimensions", "::mlir::ModuleOp"> {
  let summary = "Pads sizes that the devices do not divide";
  let description = [{
    Makes loops of products longer whose sizes are no multiples of `multiple`:
    a vocabulary of 50257 on 8 devices, 3 heads, a batch of 6. A loop is the
    dimensions that go together by the sharding rules; it is padded where its
    products have a share of the program's FLOPs, its blocks become smaller by
    it, and no more than `most-added` of its size is added.

    Arguments and results keep their shapes. The operators that are padded are
    those between the products and a minimum cut: the values of the fewest bytes
    to be padded on the one side and sliced on the other. Operators that depend
    on the size of the loop in a way that nothing is known of (sorts along it,
    loops and branches, custom calls) are on the other side of the cut. Where
    the loop is reduced, what stands behind the elements of the program is
    replaced by the neutral element.

    A remark says what is padded and how many bytes that moves.

    before, with `multiple=4`:
    ```mlir
    %1 = stablehlo.dot_general %x, %w : (tensor<8x4xf32>, tensor<4x5xf32>)
        -> tensor<8x5xf32>
    %2 = stablehlo.reduce(%1 init: %zero) applies stablehlo.add
        across dimensions = [1] : tensor<8xf32>
    ```
    after:
    ```mlir
    %p = stablehlo.pad %w, %zero, low = [0, 0], high = [0, 3] : tensor<4x8xf32>
    %1 = stablehlo.dot_general %x, %p : tensor<8x8xf32>
    %m = stablehlo.select %isInside, %1, %zeros : tensor<8x8xf32>
    %2 = stablehlo.reduce(%m init: %zero) applies stablehlo.add
        across dimensions = [1] : tensor<8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"multiple", "multiple", "int64_t", "1",
           "what padded sizes are multiples of: the number of devices">,
    Option<"mostAdded", "most-added", "double", "8.0",
           "what padding may add to a size, as a share of it">,
  ];
}

def OutlineAttention : Pass<"alpa-outline-attention", "::mlir::ModuleOp"> {
  let summary = "Attention over many keys as one operator";
  let description = [{
    Recognises attention and its gradient, as `jax.nn.dot_product_attention` and
    the usual products with `jax.nn.softmax` between them give them: a product
    over the depth of heads; any elementwise function of it, of iotas, and of
    values around it (scale, mask, bias, soft cap); a softmax along the keys,
    differentiated by whatever rule; a product with the values. Attention with
    fewer keys than `keys`, and whatever else needs scores or weights (dropout,
    the gradient of a bias of every score, the largest score of a row, weights
    that are returned), stay as they are.

    Each becomes `alpa.attention`, with `alpa.attention_gradient` for its
    gradient, of which no device ever has all scores, and whose queries, keys
    and values are split along one sequence.

    before:
    ```mlir
    %s = stablehlo.dot_general %q, %k, batching_dims = [0] x [0],
        contracting_dims = [2] x [2] : tensor<2x8x8xf32>
    %m = stablehlo.reduce(%s init: %low) applies stablehlo.maximum
        across dimensions = [2] : tensor<2x8xf32>
    %d = stablehlo.subtract %s, %m_of_rows : tensor<2x8x8xf32>
    %e = stablehlo.exponential %d : tensor<2x8x8xf32>
    %l = stablehlo.reduce(%e init: %zero) applies stablehlo.add
        across dimensions = [2] : tensor<2x8xf32>
    %p = stablehlo.divide %e, %l_of_rows : tensor<2x8x8xf32>
    %o = stablehlo.dot_general %p, %v, batching_dims = [0] x [0],
        contracting_dims = [2] x [1] : tensor<2x8x4xf32>
    ```
    after:
    ```mlir
    %o, %m, %l = "alpa.attention"(%q, %k, %v) <{batch = 1, ...}> ({
    ^bb0(%s: tensor<2x8x8xf32>):
      alpa.yield %s : tensor<2x8x8xf32>
    }) : (...) -> (tensor<2x8x4xf32>, tensor<2x8xf32>, tensor<2x8xf32>)
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"fewestKeys", "keys", "int64_t", "8192",
           "attention over fewer keys stays as it is">,
    Option<"blockBytes", "block-bytes", "int64_t", "67108864",
           "bytes of scores that a device makes at once">,
  ];
}

def MergeOperators : Pass<"alpa-merge-operators", "::mlir::ModuleOp"> {
  let summary = "Lets light operators follow their deepest operand";
  let description = [{
    Section 4.2 of the Alpa paper. Writes `alpa.role` on every operator:
    `leader` (has strategies), `follower` with `alpa.follows` (the operand whose
    sharding it takes), `rematerialized` (made again wherever it is needed) or
    `replicated`; inserts `alpa.resolve` where a partial sum has to be reduced
    once for several uses, and where several products read one value; writes
    `alpa.trip_count` on counted loops, and `alpa.partial_edges` on loops that
    add up what may stay partial until they are done. A sum with zero is its
    other summand, as XLA has it.

    What is computed whole on every device is followed by nothing: what stands
    behind it follows an operand that can be split, or leads. A remark names
    every operator without a sharding rule, and every one by whose rule nothing
    can be split, with what it costs; those that cost next to nothing are not
    named.
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
}

def EnumerateStrategies : Pass<"alpa-enumerate-strategies", "::mlir::ModuleOp"> {
  let summary = "Shows the strategies of every node of the graph";
  let description = [{
    Input: a module with roles. Builds the strategy graph for the mesh and
    emits one remark per node with its strategies, `operands->results` in the
    paper's notation. The planner reads the same graph as arrays.
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    ListOption<"mesh", "mesh", "std::string", "mesh axes, name:size">,
  ];
}

def ChooseStrategies : Pass<"alpa-choose-strategies", "::mlir::ModuleOp"> {
  let summary = "Names the chosen strategy on every operator";
  let description = [{
    Input: a module with roles; `solution` has one strategy index per node, in
    the order of `alpa-enumerate-strategies`. Writes `alpa.mesh` on the module
    and `alpa.strategy` on operators; where values have no operator of their
    own, their shardings: `alpa.sharding` on arguments and results of the
    function, `alpa.results` on loops and branches. Rematerialized operators
    get theirs where they are made.

    Fails if the solution does not fit the graph.

    before, with `mesh=x:2`:
    ```mlir
    %1 = stablehlo.dot_general %x, %w {alpa.role = "leader"}
    ```
    after:
    ```mlir
    %1 = stablehlo.dot_general %x, %w
        {alpa.role = "leader", alpa.strategy = #alpa.strategy<a=[0]>}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    ListOption<"mesh", "mesh", "std::string", "mesh axes, name:size">,
    ListOption<"solution", "solution", "int64_t",
               "index of the chosen strategy of every node">,
  ];
}

def ApplyStrategies : Pass<"alpa-apply-strategies", "::mlir::ModuleOp"> {
  let summary = "Writes the shardings that follow from the strategies";
  let description = [{
    Input: a module with roles, a mesh and strategies. Writes `alpa.operands`
    and `alpa.results`; makes rematerialized operators once per sharding in
    which they are needed; reduces the sums that light reductions leave right
    behind them. Takes the roles away.

    Fails if an operator has no strategy, or one that is none of its rule's.

    before:
    ```mlir
    %1 = stablehlo.dot_general %x, %w {alpa.strategy = #alpa.strategy<b=[0]>}
    ```
    after:
    ```mlir
    %1 = stablehlo.dot_general %x, %w {alpa.strategy = #alpa.strategy<b=[0]>,
      alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>],
      alpa.results = [#alpa.sharding<RRP0>]}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
}

def VerifyPlan : Pass<"alpa-verify-plan", "::mlir::ModuleOp"> {
  let summary = "Proves that a plan follows from its strategies";
  let description = [{
    Input: a planned module. Makes of every operator's rule and strategy what
    its operands and results have to be, and compares that with what is written;
    checks that values come in the sharding in which they are needed, that what
    loops carry and branches return keeps one, that all devices decide alike,
    that combiners use what every device has, and that no partial sum leaves the
    program. Changes nothing; one walk.

    Fails at the first operator, argument or result that does not follow. The
    passes that take a plan further (`alpa-lower-to-spmd`,
    `alpa-export-shardings`, `alpa-split-phases`) ask the same before they
    begin.

    Refused, since the rows of `%w` are what the product sums over:
    ```mlir
    %1 = stablehlo.dot_general %x, %w {alpa.strategy = #alpa.strategy<b=[0]>,
      alpa.operands = [#alpa.sharding<RS0>, #alpa.sharding<S0R>],
      alpa.results = [#alpa.sharding<RR>]}
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    Option<"resharded", "resharded", "bool", "true",
           "reshards stand between producers and consumers that differ">,
    Option<"microBatches", "micro-batches", "bool", "false",
           "positions of the mesh are micro-batches">,
  ];
}

def InsertReshards : Pass<"alpa-insert-reshards", "::mlir::ModuleOp"> {
  let summary = "Inserts `alpa.reshard` where producer and consumer differ";
  let description = [{
    before:
    ```mlir
    %0 = stablehlo.dot_general ... {alpa.results = [#alpa.sharding<RRP1>]}
    %1 = stablehlo.tanh %0 {alpa.operands = [#alpa.sharding<RS1>]}
    ```
    after:
    ```mlir
    %1 = alpa.reshard %0 from <RRP1> to <RS1>
    %2 = stablehlo.tanh %1
    ```
    Uses of one value in one sharding share a reshard. Where its result takes
    more memory than its operand they do so within a phase alone, and within
    `reach` operators: what was gathered is gathered again rather than kept.
  }];
  let options = [
    Option<"reach", "reach", "unsigned", "0",
           "operators between the first and the last that share what was "
           "gathered; 0: all of a phase">
  ];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
}

def OptimizeCollectives : Pass<"alpa-optimize-collectives", "::mlir::ModuleOp"> {
  let summary = "Starts reshards from where less has to be moved";
  let description = [{
    Where a value is resharded twice, the second reshard starts from the result
    of the first if that moves less: after an all-reduce a slice is free, after
    a reduce-scatter an all-gather is half an all-reduce. A result that takes
    more memory than its operand serves a phase alone, and `reach` operators of
    it.
  }];
  let options = [
    Option<"reach", "reach", "unsigned", "0",
           "operators between the first and the last that share what was "
           "gathered; 0: all of a phase">
  ];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
}

def ChooseProductRings : Pass<"alpa-choose-product-rings", "::mlir::ModuleOp"> {
  let summary = "Says which products are done beside the collectives around them";
  let description = [{
    Input: a module with shardings and reshards. An all-gather over one axis
    before a product, or a reduce-scatter over one axis behind one, need not be
    waited for: its blocks can go from neighbour to neighbour while the product
    is made of one after the other (Wang et al., ASPLOS 2023). `rings` numbers
    those for which that is to be done among those for which it can, in the
    order in which their reshards stand and, of one reshard, the reduce-scatter
    first; it is written on the products as `alpa.product_ring`. Lowering writes
    out the blocks, `alpa-verify-plan` proves that it can. What is computed is
    the same, sums in another order.

    Fails on a number that there is none of, and on two that one product would
    be in.

    before:
    ```mlir
    %1 = alpa.reshard %0 from <S0R> to <RR> : tensor<8x4xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] ...
    ```
    after, with `rings=0`:
    ```mlir
    %1 = alpa.reshard %0 from <S0R> to <RR> : tensor<8x4xf32>
    %2 = stablehlo.dot_general %1, %w, contracting_dims = [1] x [0] ...
        {alpa.product_ring = "lhs"}
    ```
    and by `alpa-lower-to-spmd`, for the device at position p of two:
    ```mlir
    %1 = "stablehlo.collective_permute"(%0)
        <{source_target_pairs = [[0, 1], [1, 0]]}>
    %2 = stablehlo.dot_general %0, %w ... // block p
    %3 = stablehlo.dynamic_update_slice %zeros, %2, %p_rows, %c0
    %4 = stablehlo.dot_general %1, %w ... // block p - 1
    %5 = stablehlo.dynamic_update_slice %3, %4, %q_rows, %c0
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    ListOption<"rings", "rings", "int64_t",
               "numbers of those that are to be done beside products">,
  ];
}

def LowerToSpmd : Pass<"alpa-lower-to-spmd", "::mlir::ModuleOp"> {
  let summary = "Writes the module for one device";
  let description = [{
    Input: a module with shardings and reshards. Output: local shapes, explicit
    StableHLO collectives with replica groups in mesh order, nothing of the
    `alpa` dialect. Fails on what `alpa-verify-plan` refuses.

    before, on `#alpa.mesh<["x"=2]>`:
    ```mlir
    %1 = alpa.reshard %0 from <S0R> to <RR> : tensor<8x4xf32>
    ```
    after:
    ```mlir
    %1 = "stablehlo.all_gather"(%0) <{all_gather_dim = 0, ...}>
        : (tensor<4x4xf32>) -> tensor<8x4xf32>
    ```

    With `micro-batches` the mesh is that of `alpa-split-micro-batches`: the
    position on it is the argument with `alpa.micro_batch`, joins stay and say
    how they join, and so do the attributes of arguments.
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect",
                           "::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"microBatches", "micro-batches", "bool", "false",
           "positions of the mesh are micro-batches">,
  ];
}

def ReduceBeforeTransposes
    : Pass<"alpa-reduce-before-transposes", "::mlir::ModuleOp"> {
  let summary = "Adds up over devices what is not yet transposed";
  let description = [{
    A plan completes a sum where it is read, which may be behind a transposition:
    the gradient of a kernel is transposed once its product has made it. Devices
    exchange the same elements in front of it. XLA for TPU lays a reduce-scatter's
    operand out as it is written, so that a product which is transposed writes
    its result twice; in front of the transposition it writes it once, and the
    smaller part is transposed.

    Only where the collective alone reads what is transposed. What a collective
    of several operands takes stays as it is.

    before, in groups of 2:
    ```mlir
    %1 = stablehlo.transpose %0, dims = [1, 0] : (tensor<4x6xf32>) -> tensor<6x4xf32>
    %2 = "stablehlo.reduce_scatter"(%1) <{scatter_dimension = 0, ...}> ({...})
        : (tensor<6x4xf32>) -> tensor<3x4xf32>
    ```
    after:
    ```mlir
    %1 = "stablehlo.reduce_scatter"(%0) <{scatter_dimension = 1, ...}> ({...})
        : (tensor<4x6xf32>) -> tensor<4x3xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] : (tensor<4x3xf32>) -> tensor<3x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def BlockExchanges : Pass<"alpa-block-exchanges", "::mlir::ModuleOp"> {
  let summary = "Lays what all-to-alls exchange along a leading dimension";
  let description = [{
    Splits off the blocks that an all-to-all exchanges as dimension 0, and joins
    them where they belong behind it. Each is contiguous then, whatever the
    layout of the other dimensions. XLA for TPU lays the operand out by the
    dimension that is split otherwise, and copies more around the collective;
    XLA for GPU copies less as it stands.

    Blocks that lie one behind another as they are, all in front of what is split
    having a size of 1, and are joined along dimension 0, stay as they are.

    before, in groups of 4:
    ```mlir
    %1 = "stablehlo.all_to_all"(%0) <{split_dimension = 0,
        concat_dimension = 1, ...}> : (tensor<16x4xf32>) -> tensor<4x16xf32>
    ```
    after:
    ```mlir
    %1 = stablehlo.reshape %0 : (tensor<16x4xf32>) -> tensor<4x4x4xf32>
    %2 = "stablehlo.all_to_all"(%1) <{split_dimension = 0,
        concat_dimension = 0, ...}> : (tensor<4x4x4xf32>) -> tensor<4x4x4xf32>
    %3 = stablehlo.transpose %2, dims = [1, 0, 2]
    %4 = stablehlo.reshape %3 : (tensor<4x4x4xf32>) -> tensor<4x16xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def GatherRaggedExchanges
    : Pass<"alpa-gather-ragged-exchanges", "::mlir::ModuleOp"> {
  let summary = "Does exchanges of rows by all-gathers";
  let description = [{
    Input: a module of one device that may call `ragged_all_to_all`
    (`jax.lax.ragged_all_to_all` in a `shard_map`), which sends each device of a
    group as many rows as the data say. XLA for CPU has no such collective. The
    operands, offsets and sizes of all devices are gathered instead, and each
    device takes the rows that are for it: the same values, and more bytes.

    Calls with dynamic shapes, or without groups, stay.

    before, on 2 devices, each with a piece of rows for either:
    ```mlir
    %r = stablehlo.custom_call @ragged_all_to_all(%rows, %place, %starts, %sizes,
        %targets, %received) : (tensor<4x8xf32>, tensor<6x8xf32>, ...)
        -> tensor<6x8xf32>
    ```
    after:
    ```mlir
    %0 = "stablehlo.all_gather"(%starts) : (tensor<2xi32>) -> tensor<4xi32>
    ... // of starts, targets and sizes the pieces that are for this device
    %1 = ... : tensor<6xi32> // per row of the result its row of %3
    %2 = "stablehlo.all_gather"(%rows) : (tensor<4x8xf32>) -> tensor<8x8xf32>
    %3 = stablehlo.concatenate %2, %place, dim = 0 : tensor<14x8xf32>
    %r = "stablehlo.gather"(%3, %1) : tensor<6x8xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def FenceExchanges : Pass<"alpa-fence-exchanges", "::mlir::ModuleOp"> {
  let summary = "Keeps what is in front of all-to-alls apart from their blocks";
  let description = [{
    Input: a module of one device. XLA for CPU makes an all-to-all one of slices
    of its operand, and then looks for the slices in what the operand is joined
    of: one slice may be found where another is not, and have another layout
    (of dimensions of size 1, for instance). Its verifier takes that for another
    shape ("all-to-all has operands with different shapes", XLA of jaxlib
    0.10.2). Behind a barrier all slices are of one value.

    before:
    ```mlir
    %1 = stablehlo.concatenate %a, %b, dim = 0
    %2 = "stablehlo.all_to_all"(%1) : ...
    ```
    after:
    ```mlir
    %1 = stablehlo.concatenate %a, %b, dim = 0
    %2 = stablehlo.optimization_barrier %1
    %3 = "stablehlo.all_to_all"(%2) : ...
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def RowMajorTransforms
    : Pass<"alpa-row-major-transforms", "::mlir::ModuleOp"> {
  let summary = "Keeps Fourier transforms in row-major layout";
  let description = [{
    Input: a module of one device. XLA for CPU runs Fourier transforms whose
    operand is row-major, and does not ask for that layout: what follows, such
    as an all-gather along another dimension, may choose one that it then
    refuses (`fft_thunk.cc`, XLA of jaxlib 0.10.2). Of one dimension there is
    one layout, which the operand gets from the result.

    Transforms of one dimension, or of dynamic shapes, stay.

    before:
    ```mlir
    %1 = stablehlo.fft %0, type = FFT, length = [16] : tensor<8x16xcomplex<f32>>
    ```
    after:
    ```mlir
    %1 = stablehlo.fft %0, type = FFT, length = [16] : tensor<8x16xcomplex<f32>>
    %2 = stablehlo.reshape %1 : tensor<128xcomplex<f32>>
    %3 = stablehlo.optimization_barrier %2
    %4 = stablehlo.reshape %3 : tensor<8x16xcomplex<f32>>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def ExportShardings : Pass<"alpa-export-shardings", "::mlir::ModuleOp"> {
  let summary = "Writes the plan for one of XLA's partitioners";
  let description = [{
    Input: a module with shardings and reshards. Output: the global program
    whose values are constrained to the shardings of the plan, for XLA to split.
    Reshards become constraints; partial sums, which cannot be asked for, are
    left to the partitioner. Values are constrained by operators, not by
    attributes: those XLA drops. Arguments and results of the function carry
    attributes as well.
    Convolutions in groups of the batch, of which XLA's partitioners compute
    something else, become convolutions in groups of features.

    before, on `#alpa.mesh<["x"=2]>`:
    ```mlir
    %1 = alpa.reshard %0 from <RR> to <S0R> : tensor<8x4xf32>
    ```
    after, with `form=shardy`:
    ```mlir
    %1 = sdy.sharding_constraint %0 <mesh<["x"=2]>, [{"x"}, {} ]>
        : tensor<8x4xf32>
    ```
    with `form=gspmd`:
    ```mlir
    %1 = stablehlo.custom_call @Sharding(%0)
        {mhlo.sharding = "{devices=[2,1]<=[2]}" }
        : (tensor<8x4xf32>) -> tensor<8x4xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
  let options = [
    Option<"form", "form", "std::string", "\"shardy\"",
           "whose constraints: shardy or gspmd">,
  ];
}

def VerifySpmd : Pass<"alpa-verify-spmd", "::mlir::ModuleOp"> {
  let summary = "Proves that nothing of the alpa dialect is left";
  let description = [{
    Fails on operators of the dialect and on discardable attributes `alpa.*`.
  }];
}

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
  ];
}

#endif // PASSES_PASSES_TD
