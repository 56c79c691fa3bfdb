//===- ImportPasses.td - Passes that import a trace --------*- tablegen -*-===//

#ifndef PASSES_IMPORT_PASSES_TD
#define PASSES_IMPORT_PASSES_TD

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
    which JAX itself puts behind PRNG keys. What only a propagation asks goes:
    barriers, and, with a remark, groups of values that are to be split alike
    (`sdy.sharding_group`). The meshes go. All of that is read as well in the
    form in which XLA stores modules: strings in `mhlo.frontend_attributes`,
    and calls of `@xla.sdy.FuncResultSharding` and the like. Before the inliner,
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
  let summary = "Reads the rules that operators come with";
  let description = [{
    A `sdy.sharding_rule` on a custom call of which nothing else is known, as
    JAX and its users write it, becomes an `alpa.rule`. A factor is parallel if
    an operand and every result have it; those that Shardy reduces are sums; all
    others are replicated. Rules by which nothing could be split are left out,
    and so are those that do not fit; a remark says why. An `alpa.rule` that says
    what its operator says itself, as `alpa-print-sharding-rules` writes it, is
    dropped: the operator may then get another form.

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
    decomposition) stay. Where there are several public functions, those that
    something refers to become private.

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

def FoldIndices : Pass<"alpa-fold-indices", "::mlir::ModuleOp"> {
  let summary = "What the ranges of indices tell is not asked again";
  let description = [{
    JAX asks of every index whether it counts from the end or is outside, also of
    those that can be neither: positions, orders of a sort, the places of
    maxima. Selections of which the ranges of integers tell what they take are
    that.

    The gradient of `x.at[order].set(y)` writes numbers of the rows of `y` and
    reads them again, to find those of them that others have overwritten. Where
    every index is there once (an order of a sort, constants), what is read is
    what was written, and all of `y` is there: two lookups and a write as large
    as `y` are left out, and rows that are sorted and brought back so can be
    followed.

    before:
    ```mlir
    %1:2 = "stablehlo.sort"(%keys, %positions) ({...})
    %2 = stablehlo.compare LT, %1#1, %zeros
    %3 = stablehlo.add %1#1, %sizes
    %4 = stablehlo.select %2, %3, %1#1
    ```
    after:
    ```mlir
    %1:2 = "stablehlo.sort"(%keys, %positions) ({...})
    ```
  }];
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

def BatchLookups : Pass<"alpa-batch-lookups", "::mlir::ModuleOp"> {
  let summary = "Rows that look up in themselves are a batch";
  let description = [{
    Where a component of the indices of a `gather` or `scatter` is known to be
    the position along a dimension of the indices, and the dimension that it
    selects from has the same size, both become batching dimensions: row i is
    looked up in row i. `x[jnp.arange(n), labels]` is written so; as two
    dimensions that any index may point into, the rows of `x` would be gathered
    on every device, and could not be cut into micro-batches. Limits that no
    position exceeds (`mode="clip"`) are looked through, and the stacks in which
    a scan keeps the indices of every turn for its gradient. Where no component
    is left (`x[jnp.arange(n)]`), the indices are zeros, of a dimension of size
    one.

    before:
    ```mlir
    %0 = stablehlo.iota dim = 0 : tensor<8x1xi32>
    %1 = stablehlo.concatenate %0, %labels, dim = 1
        : (tensor<8x1xi32>, tensor<8x1xi32>) -> tensor<8x2xi32>
    %2 = "stablehlo.gather"(%x, %1)
        <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [0, 1],
          start_index_map = [0, 1], index_vector_dim = 1>,
          slice_sizes = array<i64: 1, 1>}>
        : (tensor<8x4xf32>, tensor<8x2xi32>) -> tensor<8xf32>
    ```
    after:
    ```mlir
    %2 = "stablehlo.gather"(%x, %labels)
        <{dimension_numbers = #stablehlo.gather<collapsed_slice_dims = [1],
          operand_batching_dims = [0], start_indices_batching_dims = [0],
          start_index_map = [1], index_vector_dim = 1>,
          slice_sizes = array<i64: 1, 1>}>
        : (tensor<8x4xf32>, tensor<8x1xi32>) -> tensor<8xf32>
    ```
  }];
}

def MoveTransposes : Pass<"alpa-move-transposes", "::mlir::ModuleOp"> {
  let summary = "Transposes what is small of a product";
  let description = [{
    JAX writes a product in the order in which `dot_general` makes it, and
    transposes it to that which was asked for: a kernel's gradient, the scores of
    grouped queries, which are the largest values of a step. With operands
    swapped, or the queries transposed, the product comes out as it is read. A
    product's operand that is transposed is read as it lies, and what the product
    makes is transposed instead where that is less.

    A transposition behind a product goes where dimensions of the batch are in
    front, then those of one operand, then those of the other, each in any order,
    and operands whose dimensions change places have fewer bytes than the product.
    One in front of products goes where it leaves a batch of matrices, and all
    that read it are products whose dimensions stay in place or which have fewer
    bytes than it. XLA for TPU transposes a parameter and the moments of its
    optimiser throughout the step to the order of a gradient; that for GPU stores
    scores that are transposed in the wider type of their softmax.

    before:
    ```mlir
    %0 = stablehlo.dot_general %k, %q, batching_dims = [0] x [0],
        contracting_dims = [2] x [3] : (tensor<2x64x8xbf16>,
        tensor<2x64x4x8xbf16>) -> tensor<2x64x64x4xbf16>
    %1 = stablehlo.transpose %0, dims = [0, 3, 2, 1]
        : (tensor<2x64x64x4xbf16>) -> tensor<2x4x64x64xbf16>
    ```
    after:
    ```mlir
    %0 = stablehlo.transpose %q, dims = [0, 2, 1, 3]
        : (tensor<2x64x4x8xbf16>) -> tensor<2x4x64x8xbf16>
    %1 = stablehlo.dot_general %0, %k, batching_dims = [0] x [0],
        contracting_dims = [3] x [2] : (tensor<2x4x64x8xbf16>,
        tensor<2x64x8xbf16>) -> tensor<2x4x64x64xbf16>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
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
    Moves to the device (`annotate_device_placement`) go where their operand
    lies there: it was not moved to the host, and is no argument that says it
    lies on the host (`mhlo.memory_kind`).

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

#endif // PASSES_IMPORT_PASSES_TD
