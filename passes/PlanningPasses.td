//===- PlanningPasses.td - Passes that choose strategies ---*- tablegen -*-===//

#ifndef PASSES_PLANNING_PASSES_TD
#define PASSES_PLANNING_PASSES_TD

include "mlir/Pass/PassBase.td"

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

    What slices and windows without padding leave of a dimension that is a
    multiple is computed in as many elements as there were, from where it is cut
    to where it is as long again, reduced, or read by what has no longer form:

    ```mlir
    %1 = stablehlo.slice %x [1:8] : (tensor<8xf32>) -> tensor<7xf32>
    %2 = stablehlo.slice %x [0:7] : (tensor<8xf32>) -> tensor<7xf32>
    %3 = stablehlo.subtract %1, %2 : tensor<7xf32>
    ```
    becomes
    ```mlir
    %1 = stablehlo.pad %x, %zero, low = [-1], high = [1] : tensor<8xf32>
    %2 = stablehlo.subtract %1, %x : tensor<8xf32>
    %3 = stablehlo.slice %2 [0:7] : (tensor<8xf32>) -> tensor<7xf32>
    ```

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

def SortInParts : Pass<"alpa-sort-in-parts", "::mlir::ModuleOp"> {
  let summary = "Sorts rows for products in groups within equal parts of them";
  let description = [{
    Rows are sorted by integers so that those of a group stand together (tokens
    of a mixture by expert), multiplied in groups, and brought back or added up
    by rows. If nothing shows in which order they stand, each row goes the same
    way beside the rows of its part alone, and devices that have a part each
    send none of them. So the rows are sorted within `parts` equal parts, which
    are a batch of the sorts, gathers, scatters and products in groups; how many
    rows a group has, and where they begin, is counted for each part.

    Followed are indices that are computed from positions, as far as those of a
    part stay in it; counts by a scatter or by a sum of comparisons; running
    totals of these; and what is done to each row. A remark says that it was
    done.

    before, with `parts=2`:
    ```mlir
    %1:2 = stablehlo.sort %group, %iota : tensor<8xi32>, tensor<8xi32>
    %2 = stablehlo.gather %x, %1#1 : tensor<8x4xf32>
    %3 = chlo.ragged_dot %2, %w, %sizes : tensor<8x5xf32>
    %4 = stablehlo.scatter %zero, %1#1, %3 : tensor<8x5xf32>
    ```
    after, with reshapes from `8` to `2x4` and back:
    ```mlir
    %1:2 = stablehlo.sort %group, %iota : tensor<2x4xi32>, tensor<2x4xi32>
    %2 = stablehlo.gather %x, %1#1 : tensor<2x4x4xf32>
    %3 = chlo.ragged_dot %2, %w, %sizes : tensor<2x4x5xf32>
    %4 = stablehlo.scatter %zero, %1#1, %3 : tensor<2x4x5xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect",
                           "::mlir::chlo::ChloDialect"];
  let options = [
    Option<"parts", "parts", "int64_t", "1",
           "how many parts: the number of devices">,
  ];
}

def OutlineAttention : Pass<"alpa-outline-attention", "::mlir::ModuleOp"> {
  let summary = "Attention over many keys as one operator";
  let description = [{
    Recognises attention and its gradient, as `jax.nn.dot_product_attention` and
    the usual products with `jax.nn.softmax` between them give them: a product
    over the depth of heads; any elementwise function of it, of iotas, and of
    values around it (scale, mask, bias, soft cap); a softmax along the keys,
    differentiated by whatever rule; dropout, by a product with a mask or by a
    selection; a product with the values. Attention with
    fewer keys than `keys`, and whatever else needs scores or weights (the
    gradient of a bias of every score, the largest score of a row, weights that
    are multiplied by other numbers or returned), stay as they are. Random bits
    by position, as threefry has them, are made anew in the region: the loop that
    JAX writes them with becomes its turns.

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

def PlaceSmallValues : Pass<"alpa-place-small-values", "::mlir::ModuleOp"> {
  let summary = "Strategies of arguments and results of few elements";
  let description = [{
    Input: a module with roles, in which what has a few elements is the same on
    every device. Marks the arguments and results that are named with
    `alpa.placed` where they are so small: they have strategies, as whoever
    calls the function asks for one. What reads such an argument reads all of
    it, which is gathered first, by an `alpa.resolve`.

    Fails on numbers that no argument or result has.

    before, with `inputs=0`:
    ```mlir
    func.func @main(%bias: tensor<8xf32>, %x: tensor<64x8xf32>) {
      %0 = stablehlo.broadcast_in_dim %bias ...
    ```
    after:
    ```mlir
    func.func @main(%bias: tensor<8xf32> {alpa.placed}, %x: tensor<64x8xf32>) {
      %0 = alpa.resolve %bias {alpa.role = "replicated"} : tensor<8xf32>
      %1 = stablehlo.broadcast_in_dim %0 ...
    ```
  }];
  let dependentDialects = ["::mlir::alpa::AlpaDialect"];
  let options = [
    ListOption<"inputs", "inputs", "int64_t", "numbers of arguments">,
    ListOption<"results", "results", "int64_t", "numbers of results">,
  ];
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
    get theirs where they are made. A remark names what could be split and is
    not, where that is much of what the program does.

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

def MoveReshards : Pass<"alpa-move-reshards", "::mlir::ModuleOp"> {
  let summary = "Has light operators work on parts of what is exchanged";
  let description = [{
    Light operators follow the strategy of another operator, and reshards stand
    where strategies meet: a sum is completed behind the transposition and the
    scaling of its shares, and what a product needs whole is gathered in front of
    the addition that makes it. Devices exchange the same elements on the other
    side of such operators, which then work on parts: a reduction moves in front
    of them, an all-gather behind them, where no more bytes are moved. Of other
    operands devices have to hold the parts, or all.

    Only where the light operator alone reads what is reduced or gathered, makes
    as many elements, and runs as often as those behind it. What strategies say
    of it is changed with it.

    before:
    ```mlir
    %1 = stablehlo.transpose %0, dims = [1, 0] {alpa.results = [<RRP0>], ...}
    %2 = alpa.reshard %1 from <RRP0> to <S0R> : tensor<4x8xf32>
    %3 = alpa.reshard %a from <S0R> to <RR> : tensor<8x4xf32>
    %4 = stablehlo.add %3, %b {alpa.results = [<RR>], ...}
    ```
    after:
    ```mlir
    %1 = alpa.reshard %0 from <RRP0> to <RS0> : tensor<8x4xf32>
    %2 = stablehlo.transpose %1, dims = [1, 0] {alpa.results = [<S0R>], ...}
    %3 = alpa.reshard %b from <RR> to <S0R> : tensor<8x4xf32>
    %4 = stablehlo.add %a, %3 {alpa.results = [<S0R>], ...}
    %5 = alpa.reshard %4 from <S0R> to <RR> : tensor<8x4xf32>
    ```
  }];
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

#endif // PASSES_PLANNING_PASSES_TD
