//===- LoweringPasses.td - Passes that lower plans ---------*- tablegen -*-===//

#ifndef PASSES_LOWERING_PASSES_TD
#define PASSES_LOWERING_PASSES_TD

include "mlir/Pass/PassBase.td"

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

def WriteReceivedResults
    : Pass<"alpa-write-received-results", "::mlir::ModuleOp"> {
  let summary = "Writes results that other devices send by an operator";
  let description = [{
    What devices gather, exchange or permute to return it, such as updated
    parameters, XLA for TPU receives in memory of its own and copies from there.
    Where it is returned in the memory of a donated argument, XLA copies that
    argument as well, when the program begins, and reads the copy from then on: a
    second copy of the parameters and the optimiser's state throughout the step. An
    operator between the collective and the result is one that writes into the
    argument's memory, as the copy did, and no argument is copied.

    Rounding to the format that numbers have is one that changes none of them.
    Results of integers and of narrower numbers than 16 bits stay as they are, and
    so does what is gathered along one of the two innermost dimensions in blocks
    that are no tiles of 8 times 128: those XLA copies to where they belong, and the
    copy writes the result.

    before:
    ```mlir
    %0 = "stablehlo.all_gather"(%a) <{...}> : (tensor<8x128xf32>) -> tensor<16x128xf32>
    return %0 : tensor<16x128xf32>
    ```
    after:
    ```mlir
    %0 = "stablehlo.all_gather"(%a) <{...}> : (tensor<8x128xf32>) -> tensor<16x128xf32>
    %1 = stablehlo.reduce_precision %0, format = e8m23 : tensor<16x128xf32>
    return %1 : tensor<16x128xf32>
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def ConstrainBlocks : Pass<"alpa-constrain-blocks", "::mlir::ModuleOp"> {
  let summary = "Keeps simplifications of whole arrays off the blocks of devices";
  let description = [{
    Before its partitioner XLA simplifies a program as one of whole arrays, and after
    it as one of blocks. A program of blocks meets both. XLA for TPU leaves out
    dimensions of 1 then, which a batch split by examples has everywhere, moves
    reshapes through elementwise operators and copies what it broadcasts, all of it
    before anything is laid out: norms are computed in the blocks of an all-to-all,
    and positions are written to memory.

    Constrains what is moved so: positions (iota), results of products, and what
    devices have sent each other, once it is in the order in which it is read. All
    axes of the mesh are the function's own, so that a constraint asks for nothing;
    XLA's partitioner removes it, and the simplifications that follow find the blocks
    as they would find those that it made itself.

    What a device reshapes of its own is left to XLA: the groups of a group norm,
    constrained, take 2.4 times the memory of a U-Net.

    Runs last: analyses of programs do not know the constraint.

    before:
    ```mlir
    %0 = "stablehlo.all_to_all"(%a) <{...}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.reshape %0 : (tensor<4x2xf32>) -> tensor<1x8xf32>
    %2 = stablehlo.negate %1 : tensor<1x8xf32>
    ```
    after:
    ```mlir
    %0 = "stablehlo.all_to_all"(%a) <{...}> : (tensor<4x2xf32>) -> tensor<4x2xf32>
    %1 = stablehlo.reshape %0 : (tensor<4x2xf32>) -> tensor<1x8xf32>
    %2 = sdy.sharding_constraint %1 <mesh<[]>, ...> : tensor<1x8xf32>
    %3 = stablehlo.negate %2 : tensor<1x8xf32>
    ```
  }];
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

def CompareMaxima : Pass<"alpa-compare-maxima", "::mlir::ModuleOp"> {
  let summary = "Asks positive parts, not what they are of, where it is positive";
  let description = [{
    Input: a module of one device. The gradient of a ReLU is zero where its
    argument is not positive, so that the argument stays until the backward
    phase, beside the positive part that the next product and the gradient of
    its kernel read. It is positive exactly where its positive part is, NaN
    included.

    The positive part comes out of a `stablehlo.optimization_barrier`: XLA would
    compute it again for the comparison, from what stays for that.

    What a kernel makes is compared so, perhaps with something smaller added, as
    a bias, if nothing else reads it: of what is computed again from values that
    stay anyway, as a norm is, nothing is gained. So is nothing of what is
    computed again in the backward phase. Modules without collectives stay as
    they were measured on one device.

    before:
    ```mlir
    %y = stablehlo.maximum %x, %zero
    %mask = stablehlo.compare GT, %x, %zero
    ```
    after:
    ```mlir
    %0 = stablehlo.maximum %x, %zero
    %y = stablehlo.optimization_barrier %0
    %mask = stablehlo.compare GT, %y, %zero
    ```
  }];
  let dependentDialects = ["::mlir::stablehlo::StablehloDialect"];
}

def OrderGradients : Pass<"alpa-order-gradients", "::mlir::ModuleOp"> {
  let summary = "Has the backward phase wait for gradients of parameters";
  let description = [{
    Input: a module of one device. Where there are collectives, XLA for GPU
    computes what no other kernel waits for behind everything that one does
    wait for: gradients of parameters, and what they are made of stays until
    then. That is to run them beside collectives, but a backward phase has as
    many of them as layers, and collectives in each.

    So each kernel that others wait for waits for the gradients before it: what
    it reads comes out of one `stablehlo.optimization_barrier` with them (see
    `findGradientCuts`), unless that would have to be written to memory for it.
    Gradients run beside what is sent for that kernel, and their sums over
    devices, which come behind, beside all that follows; no kernel waits for
    those. To the sum of micro-batches a gradient is added first.

    Modules without collectives stay.

    XLA for TPU puts gradients of convolutions off. If the head is one, a kernel
    waits for that (`of-head`): what the head reads, of few channels, which are
    padded to a tile, ends before the backward phase takes the most. To wait for
    the others takes time.

    before:
    ```mlir
    %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0]
    %sum = "stablehlo.all_reduce"(%dw)
    %dx = stablehlo.dot_general %dy, %w2, contracting_dims = [1] x [1]
    %dx1 = stablehlo.dot_general %dx, %w1, contracting_dims = [1] x [1]
    ```
    after:
    ```mlir
    %dw = stablehlo.dot_general %h, %dy, contracting_dims = [0] x [0]
    %dx = stablehlo.dot_general %dy, %w2, contracting_dims = [1] x [1]
    %b:2 = stablehlo.optimization_barrier %dx, %dw
    %sum = "stablehlo.all_reduce"(%b#1)
    %dx1 = stablehlo.dot_general %b#0, %w1, contracting_dims = [1] x [1]
    ```
  }];
  let options = [Option<"ofHead", "of-head", "bool", "false",
      "waits for the gradient of the head alone, if that is a convolution">];
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

def RowMajorResults
    : Pass<"alpa-row-major-results", "::mlir::ModuleOp"> {
  let summary = "Keeps results row-major that libraries write in that layout";
  let description = [{
    Input: a module of one device. XLA for CPU calls libraries for Fourier
    transforms and for convolutions of 8-bit into 32-bit integers. They write
    rows, and XLA does not ask for that layout: what follows, such as an
    all-gather or a reduce-scatter along another dimension, may choose one in
    which the transform is refused (`fft_thunk.cc`) and the numbers of the
    convolution are wrong (both: XLA of jaxlib 0.10.2). Of one dimension there
    is one layout, which the library's result gets so.

    Results of one dimension, or of dynamic shapes, stay.

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

def SliceNegativePadding
    : Pass<"alpa-slice-negative-padding", "::mlir::ModuleOp"> {
  let summary = "Cuts off what negative padding takes from convolutions";
  let description = [{
    Input: a module of one device. XLA for CPU reads beside the operand of a
    convolution that is cut off at the low end of a spatial dimension and padded
    at the high end as much or less (jaxlib 0.10.2): a gradient is one where the
    padding is larger than the kernel. Parts of such a convolution, whose rows
    come from other devices, may be what it does so with where the whole is not.

    Where holes are between the elements (`lhs_dilation`), what is left of the
    last one that is cut into stays as padding. What would leave nothing stays.

    before:
    ```mlir
    %0 = stablehlo.convolution(%x, %k), window = {pad = [[0, 0], [-2, 1]]}
        : (tensor<8x11x11x2xf32>, tensor<3x2x2x4xf32>) -> tensor<8x9x9x4xf32>
    ```
    after:
    ```mlir
    %0 = stablehlo.slice %x [0:8, 0:11, 2:11, 0:2]
    %1 = stablehlo.convolution(%0, %k), window = {pad = [[0, 0], [0, 1]]}
        : (tensor<8x11x9x2xf32>, tensor<3x2x2x4xf32>) -> tensor<8x9x9x4xf32>
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

#endif // PASSES_LOWERING_PASSES_TD
