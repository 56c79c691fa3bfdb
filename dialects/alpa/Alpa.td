//===- Alpa.td - The sharding dialect -----------------------*- tablegen -*-===//

#ifndef DIALECTS_ALPA_ALPA_TD
#define DIALECTS_ALPA_ALPA_TD

include "mlir/IR/AttrTypeBase.td"
include "mlir/IR/OpBase.td"
include "dialects/alpa/ShardingRuleInterface.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

def Alpa_Dialect : Dialect {
  let name = "alpa";
  let cppNamespace = "::mlir::alpa";
  let summary = "Device meshes, sharding rules, plans and resharding of tensors";
  let description = [{
    A planned module keeps its global types. What the planner decided stands in
    discardable attributes, of which the dialect knows the name, the type and
    the place of each:

    - `alpa.mesh` on the module: the logical device mesh;
    - `alpa.rule` on operators: the loop nest, where the operator has none of
      its own or where it is not to be split as freely as its own allows;
    - `alpa.strategy` on operators: the mesh axes that split each loop;
    - `alpa.operands` and `alpa.results` on operators: one sharding per operand
      (as the operator needs it) and per result (as the operator makes it), as
      they follow from rule and strategy; `alpa-verify-plan` proves it;
    - `alpa.sharding` on arguments and results of the entry function;
    - `alpa.alias` on an argument: the result that is its value in the next step;
    - `alpa.role`, `alpa.follows`: what operator merging found;
    - `alpa.trip_count` on operators with regions: how often each region runs
      when they run once;
    - `alpa.partial_edges` on operators with regions: the numbers of the
      data-flow edges on which a sum may stay partial, a loop's sums that begin
      with zeros;
    - `alpa.barrier` on the parts of an `optimization_barrier`: they have
      shardings of their own, and are one barrier again on the device;
    - `alpa.product_ring` on a `dot_general`: "lhs" or "rhs", the operand whose
      all-gather is done block by block beside the product, or "result", whose
      reduce-scatter is;
    - `alpa.explicit_padding` on a `select_and_scatter`: its padding stands for
      elements that lose to all others, not for elements that are not there.

    A step that is cut into pipeline stages carries:

    - `alpa.layer`, `alpa.phase` on operators: the layer of the model, and when
      the operator runs: 0 forward and 1 backward, once per micro-batch, 2 and
      above when gradients are applied, in that order, once per step;
    - `alpa.placed` on arguments and results of a function that have strategies
      however few elements they have;
    - `alpa.batch` on arguments of which every micro-batch has its own part, and
      `alpa.input` on the others: the number of the step's input. One input can
      be both, in parts and whole;
    - `alpa.micro_batch` on the argument that is the number of the micro-batch;
    - `alpa.once` on operators of the forward phase that run once per step all
      the same, before the first micro-batch, on operators of a step without
      phases that run behind the last, and on arguments and results of a stage
      that cross once per step;
    - `alpa.micro_batches` on the function: micro-batches of a step;
    - on arguments and results of a stage, what they are: `alpa.input`,
      `alpa.batch` and `alpa.output` (of the whole step, by number),
      `alpa.transfer` (a value that another stage makes or needs), `alpa.local`
      (one that another phase of the stage makes or needs), `alpa.accumulator`
      (what is joined over the micro-batches).
  }];
  let discardableAttrs = (ins
    "::mlir::alpa::MeshAttr":$mesh,
    "::mlir::alpa::RuleAttr":$rule,
    "::mlir::alpa::StrategyAttr":$strategy,
    "::mlir::ArrayAttr":$operands,
    "::mlir::ArrayAttr":$results,
    "::mlir::alpa::ShardingAttr":$sharding,
    "::mlir::UnitAttr":$placed,
    "::mlir::IntegerAttr":$alias,
    "::mlir::StringAttr":$role,
    "::mlir::IntegerAttr":$follows,
    "::mlir::IntegerAttr":$trip_count,
    "::mlir::DenseI64ArrayAttr":$partial_edges,
    "::mlir::IntegerAttr":$barrier,
    "::mlir::StringAttr":$product_ring,
    "::mlir::UnitAttr":$explicit_padding,
    "::mlir::IntegerAttr":$layer,
    "::mlir::IntegerAttr":$phase,
    "::mlir::UnitAttr":$once,
    "::mlir::IntegerAttr":$micro_batches,
    "::mlir::IntegerAttr":$micro_batch,
    "::mlir::IntegerAttr":$batch,
    "::mlir::IntegerAttr":$input,
    "::mlir::IntegerAttr":$output,
    "::mlir::IntegerAttr":$transfer,
    "::mlir::IntegerAttr":$local,
    "::mlir::IntegerAttr":$accumulator);
  let useDefaultAttributePrinterParser = 1;
  let hasOperationAttrVerify = 1;
  let hasRegionArgAttrVerify = 1;
  let hasRegionResultAttrVerify = 1;
}

//===----------------------------------------------------------------------===//
// Attributes
//===----------------------------------------------------------------------===//

class Alpa_Attr<string name, string attrMnemonic, list<Trait> traits = []>
    : AttrDef<Alpa_Dialect, name, traits> {
  let mnemonic = attrMnemonic;
}

def Alpa_MeshAttr : Alpa_Attr<"Mesh", "mesh"> {
  let summary = "Logical device mesh: named axes with sizes";
  let description = [{
    Devices are numbered row-major: the last axis varies fastest.

    Example: `#alpa.mesh<["x"=2, "y"=4]>`

    **Constraints:**
    - (C1) there are 1 to 8 axes;
    - (C2) axis names are unique and not empty;
    - (C3) axis sizes are positive.
  }];
  let parameters = (ins
    ArrayRefParameter<"::mlir::StringAttr">:$names,
    ArrayRefParameter<"int64_t">:$sizes);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
  let extraClassDeclaration = [{
    unsigned getNumAxes() const { return getSizes().size(); }
    int64_t getNumDevices() const;
  }];
}

def Alpa_ShardingAttr : Alpa_Attr<"Sharding", "sharding"> {
  let summary = "How a tensor lies on the mesh, in the paper's notation";
  let description = [{
    Per dimension `R` (not split) or `S` with the numbers of the mesh axes that
    split it, major to minor; then `P` with the axes over which the value is a
    partial sum (Shardy: unreduced). After Zheng et al., OSDI 2022, section 4.1;
    `P` is an addition.

    Examples: `#alpa.sharding<S0R>`, `#alpa.sharding<RS01>`,
    `#alpa.sharding<RRP1>`, and `#alpa.sharding<>` for a replicated scalar.

    **Constraints:**
    - (C1) an axis is used at most once;
    - (C2) the axes of one dimension ascend: the lower axis is the major one.
  }];
  let parameters = (ins
    "unsigned":$rank,
    ArrayRefParameter<"int8_t">:$axes);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// The dimension that `axis` splits, `kReplicated` or `kPartial`.
    int8_t getDim(unsigned axis) const {
      return axis < getAxes().size() ? getAxes()[axis] : int8_t(-1);
    }
    bool isReplicated() const { return getAxes().empty(); }
    bool hasPartial() const { return ::llvm::is_contained(getAxes(), int8_t(-2)); }
  }];
}

def Alpa_RuleAttr : Alpa_Attr<"Rule", "rule"> {
  let summary = "An operator as a loop nest: its sharding rule";
  let description = [{
    Per operand and result, in brackets, the factors (loops) that each dimension
    is made of: one, several from major to minor in parentheses, or `1` for a
    dimension that is the same on every device. In braces the factors with their
    sizes, and with their kinds where they are not parallel: `replicated` (never
    split), the monoid that combines their iterations: `sum`, `product`, `max`,
    `min`, `and`, `or`, or `ordered`, where the operator's local form exchanges
    what blocks have to know of each other, and `sorted`, where it sorts them
    together; `windowed` and `windowed_sum` are
    parallel and `sum`, but blocks need iterations of those beside them, which
    the local form fetches. A size that the shapes of the
    operator give may be left out, and so may a parallel factor without a size.

    Behind the braces, as far as there is something to say: `linear(...)`, a set
    of operands such that the result is a partial sum if all of them are, and no
    others (several sets may stand there; the empty one is that of a value that
    is zero); `algebraic(...)`, such a set that holds for real numbers only:
    shares of micro-batches go through it, shares of devices, whose rounding the
    sum would not forgive, do not; `accumulators(...)`, operands that have to be partial where a `sum`
    factor is split; `untouched_operands(...)` and `untouched_results(...)`,
    which are not read or written as a whole; `flops`, of the whole operator.

    Examples:
    ```mlir
    #alpa.rule<([i, k], [k, j]) -> ([i, j]) {k=sum}>
    #alpa.rule<([a, b], [b, c]) -> ([a, c]) {a=8, b=16:sum, c=4}
        linear(0) linear(1) flops=1024>
    #alpa.rule<([a, b, 1]) -> ([(a b)]) {a=2, b=4}>
    ```

    **Constraints:**
    - (C1) a factor is in a tensor at most once;
    - (C2) a factor that is not replicated has a positive size, and is in every
      result that has elements if it is parallel;
    - (C3) a factor with a monoid is in an operand and in no result, one that is
      ordered, sorted or windowed is in an operand and in the rule that the operator
      itself has;
    - (C4) sets of operands and results ascend and name those that are there;
    - (C5) the number of operations is finite and not negative.
  }];
  let parameters = (ins
    AttrParameter<"::mlir::alpa::ShardingRule", "the loop nest",
                  "const ::mlir::alpa::ShardingRule &">:$rule);
  let hasCustomAssemblyFormat = 1;
  let genVerifyDecl = 1;
}

def Alpa_StrategyAttr : Alpa_Attr<"Strategy", "strategy"> {
  let summary = "Which mesh axes split which loops of an operator";
  let description = [{
    Factors by the letters that the operator's rule is printed with, `linear(n)`
    for the n-th of its `linear` and `algebraic` sets of operands; of each the
    mesh axes that split its loop, or over which the operands of the set are
    partial.

    Examples: `#alpa.strategy<a=[0], c=[1, 2]>`, `#alpa.strategy<linear(0)=[1]>`,
    and `#alpa.strategy<>` where every device does the same.

    **Constraints:**
    - (C1) an axis is used at most once, and there are 8 at most;
    - (C2) the axes of one factor ascend: the lower axis is the major one.
  }];
  let parameters = (ins ArrayRefParameter<"int32_t">:$axes);
  let hasCustomAssemblyFormat = 1;
  let extraClassDeclaration = [{
    /// That of an assignment of mesh axes to factors.
    static StrategyAttr getOf(::mlir::MLIRContext *context,
                              ::llvm::ArrayRef<int> row);
    /// The assignment, with an entry per axis of a mesh.
    FactorRow getRow(unsigned numAxes) const;
  }];
}

//===----------------------------------------------------------------------===//
// Operations
//===----------------------------------------------------------------------===//

class Alpa_Op<string opMnemonic, list<Trait> traits = []>
    : Op<Alpa_Dialect, opMnemonic, traits>;

def Alpa_ResolveOp : Alpa_Op<"resolve", [
    Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<Alpa_ShardingRuleOpInterface, ["localize"]>]> {
  let summary = "A place where a value is resharded once for several uses";
  let description = [{
    The identity. Operator merging puts it behind operators whose result can be
    a partial sum and is used by operators that need the sum itself; it has
    strategies of its own, so that the planner chooses between an all-reduce and
    a reduce-scatter there, once for all uses. It stands before products that
    read one value, too: what query, key and value need is gathered, and
    charged, once.

    Example: `%1 = alpa.resolve %0 : tensor<8x4xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Alpa_ConstrainOp : Alpa_Op<"constrain", [
    Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<Alpa_ShardingRuleOpInterface, ["localize"]>]> {
  let summary = "A sharding that the program's author asks for";
  let description = [{
    The identity, which has only the strategies that lay its value out as it
    says: per dimension the names of the mesh axes that split it, major to
    minor. A dimension whose list ends in `unit` is open: axes that nothing
    names may split it further. Those of `replicated` split nothing.

    Examples:
    ```mlir
    %1 = alpa.constrain %0 [["data"], [unit], []] : tensor<8x4x2xf32>
    %2 = alpa.constrain %1 [["data", unit], [unit], []] replicated ["model"]
        : tensor<8x4x2xf32>
    ```

    **Constraints:**
    - (C1) there is an entry per dimension: names, and perhaps `unit` at the end;
    - (C2) an axis is named at most once.
  }];
  let arguments = (ins AnyRankedTensor:$operand, ArrayAttr:$dims,
                       OptionalAttr<StrArrayAttr>:$replicated);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $operand $dims (`replicated` $replicated^)? attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// Whether a sharding on a mesh is one that is asked for; `axes` has an
    /// entry per axis of the mesh. Axes that the mesh lacks count as size 1.
    bool allows(::llvm::ArrayRef<int8_t> axes, MeshAttr mesh);
  }];
}

def Alpa_AccumulateOp : Alpa_Op<"accumulate", [
    Pure, SameOperandsAndResultType,
    DeclareOpInterfaceMethods<Alpa_ShardingRuleOpInterface,
                              ["localize", "getOperatorRole"]>]> {
  let summary = "The sum of a value over the micro-batches of a step";
  let description = [{
    What it uses runs once per micro-batch, what uses it once per step. With one
    micro-batch it is the identity. A partial sum stays partial: gradients are
    reduced once per step.

    Example: `%1 = alpa.accumulate %0 : tensor<8x4xf32>`
  }];
  let arguments = (ins AnyRankedTensor:$operand);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = "$operand attr-dict `:` type($result)";
}

def Alpa_CollectOp : Alpa_Op<"collect", [
    Pure,
    DeclareOpInterfaceMethods<Alpa_ShardingRuleOpInterface,
                              ["localize", "getOperatorRole"]>]> {
  let summary = "The parts that the micro-batches of a step have, side by side";
  let description = [{
    What it uses runs once per micro-batch, what uses it once per step. The part
    of micro-batch `number` lies at position `number` of the dimension.

    Example:
    ```mlir
    %1 = alpa.collect %0 at %number along 0
        : tensor<2x4xf32>, tensor<ui32> to tensor<8x4xf32>
    ```

    **Constraints:**
    - (C1) operand and result have the same element type and the same sizes but
      for the dimension, where the result's is a multiple of the operand's;
    - (C2) the dimension is one of the operand's.
  }];
  let arguments = (ins AnyRankedTensor:$operand, AnyRankedTensor:$number,
                       I64Attr:$dimension);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $operand `at` $number `along` $dimension attr-dict `:` type($operand) `,`
    type($number) `to` type($result)
  }];
  let hasVerifier = 1;
}

def Alpa_ReshardOp : Alpa_Op<"reshard", [Pure, SameOperandsAndResultType]> {
  let summary = "Changes how a tensor lies on the mesh";
  let description = [{
    Types are global and equal; only the placement changes. Lowered to the
    cheapest sequence of collectives.

    Example:
    ```mlir
    %1 = alpa.reshard %0 from <S0R> to <RS0> : tensor<8x4xf32>
    ```

    **Constraints:**
    - (C1) both shardings have the rank of the operand;
    - (C2) in a module with a mesh the operand has a static shape, which both
      shardings divide.
  }];
  let arguments = (ins AnyRankedTensor:$operand, Alpa_ShardingAttr:$source,
                       Alpa_ShardingAttr:$target);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $operand `from` $source `to` $target attr-dict `:` type($result)
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
}

def Alpa_CallbackOp : Alpa_Op<"callback", [
    DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "A call of a function of the host";
  let description = [{
    Runs on the first device of the mesh with its operands whole; its results
    reach all devices. Its operands are replicated. `index` says which function
    of those beside the program. Unless it is `pure` it is neither removed nor
    made again; a pure one may be left out where nothing uses its results.

    An `ordered` callback runs after those before it: it takes a token first and
    gives one first, which the next one takes.

    Examples:
    ```mlir
    %1 = alpa.callback "sin" index 0 pure (%0) : (tensor<8xf32>) -> tensor<8xf32>
    %3 = alpa.callback "log" index 1 ordered (%2, %1)
        : (tensor<i32>, tensor<8xf32>) -> tensor<i32>
    ```

    **Constraints:**
    - (C1) `index` is not negative;
    - (C2) the first operand and the first result of an ordered callback are its
      tokens, `tensor<i32>`;
    - (C3) a pure callback is not ordered.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands, StrAttr:$name,
                       ConfinedAttr<I64Attr, [IntNonNegative]>:$index,
                       UnitAttr:$ordered, UnitAttr:$pure);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    $name `index` $index (`ordered` $ordered^)? (`pure` $pure^)? `(` $operands `)` attr-dict `:`
    functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Alpa_ManualOp : Alpa_Op<"manual", [IsolatedFromAbove, SingleBlock]> {
  let summary = "A computation that its author has split by hand";
  let description = [{
    Every device runs `body` on its blocks of the operands, which then makes its
    blocks of the results; what the devices exchange stands in the body. `ins`
    and `outs` say per value and dimension which axes of `mesh` split it, major
    to minor; over axes that are not named a value is replicated. The mesh that
    is planned for must be the same one.

    Example:
    ```mlir
    %1 = alpa.manual (%0) on <["data"=2, "model"=4]>
        ins [[["data"], []]] outs [[["data"], ["model"]]]
        : (tensor<8x4xf32>) -> tensor<8x4xf32> {
    ^bb0(%a: tensor<4x4xf32>):
      ...
      alpa.yield %b : tensor<4x1xf32>
    }
    ```

    **Constraints:**
    - (C1) there is an entry per value, and in it one per dimension;
    - (C2) an entry names axes of the mesh, which a value names once, and within
      a dimension in the order of the mesh;
    - (C3) the axes of a dimension divide it;
    - (C4) `body` takes blocks of the operands and yields blocks of the results.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands, Alpa_MeshAttr:$mesh,
                       ArrayAttr:$ins, ArrayAttr:$outs);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = [{
    `(` $operands `)` `on` $mesh `ins` $ins `outs` $outs attr-dict `:`
    functional-type(operands, results) $body
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let extraClassDeclaration = [{
    /// How an operand, or a result, lies on the mesh: per axis the dimension
    /// that it splits, -1 for none.
    ::llvm::SmallVector<int8_t, 4> getOperandRow(unsigned index);
    ::llvm::SmallVector<int8_t, 4> getResultRow(unsigned index);
  }];
}

class Alpa_Attention<string opMnemonic>
    : Alpa_Op<opMnemonic, [Pure, IsolatedFromAbove, SingleBlock]> {
  code sharedClassDeclaration = [{
    /// Dimensions of the scores: batch, rows (of queries), keys.
    ::llvm::ArrayRef<int64_t> getScoreShape() {
      return ::llvm::cast<::mlir::RankedTensorType>(
          getScores().front().getArgument(0).getType()).getShape();
    }
    unsigned getNumRowDims() { return getScoreShape().size() - getBatch() - 1; }
    int64_t getNumKeys() { return getScoreShape().back(); }
    /// Dimensions of the scores that those of an extra are.
    ::llvm::ArrayRef<int64_t> getExtraDims(unsigned extra) {
      return ::llvm::cast<::mlir::DenseI64ArrayAttr>(getDims()[extra]).asArrayRef();
    }
  }];
}

def Alpa_AttentionOp : Alpa_Attention<"attention"> {
  let summary = "Attention whose scores are never there as a whole";
  let description = [{
    Of query `q[b.., r.., d]`, key `k[b.., s, d]` and value `v[b.., s, f]`:

        x, w = scores(q k)         functions of every single score
        m = max_s x,  l = sum_s exp(x - m)
        out[b.., r.., f] = (w exp(x - m) / l) v

    and `m` and `l`, `[b.., r..]`. `batch` is the number of dimensions `b`. The
    region computes `x` from the products, and from extras: each is an argument
    of the region as well, and its dimensions are, in ascending order, those
    `dims` of the scores `[b.., r.., s]`. What the region yields behind `x`, is
    `w`: numbers to multiply by, and masks (`i1`) outside of which weights are
    zero, as dropout has them; one, where it yields `x` alone.

    `products` are the attributes of the `dot_general` of the scores and of the
    one with the values, the weights of which have the type `weights`;
    `block_bytes` are those of scores that a device makes at once. Its local form
    runs over blocks of keys, which go around where the sequence is split.

    **Constraints:**
    - (C1) query, key and value have the shapes above, with the sizes of the
      scores;
    - (C2) there is an entry of `dims` per extra, which ascends, with the sizes
      of the extra;
    - (C3) the region takes scores and extras, consists of elementwise
      operators, `iota`, splat constants and `broadcast_in_dim`, and yields
      tensors of the shape of the scores, the gradient's one;
    - (C4) results have the shapes above, `m` and `l` one type.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key,
                       AnyRankedTensor:$value,
                       Variadic<AnyRankedTensor>:$extras, I64Attr:$batch,
                       ArrayAttr:$dims, ArrayAttr:$products, TypeAttr:$weights,
                       ConfinedAttr<I64Attr, [IntPositive]>:$block_bytes);
  let results = (outs AnyRankedTensor:$out, AnyRankedTensor:$max,
                      AnyRankedTensor:$sum);
  let regions = (region SizedRegion<1>:$scores);
  let hasRegionVerifier = 1;
  let extraClassDeclaration = sharedClassDeclaration;
}

def Alpa_AttentionGradientOp : Alpa_Attention<"attention_gradient"> {
  let summary = "The gradients of attention, from its result and statistics";
  let description = [{
    With `g` the gradient of `out` of `alpa.attention`:

        p = exp(x - m) / l,  t = sum_f g out
        y = gradients(p * (w g v - t))   a function of every single score
        dq = y k,  dk = y q,  dv = w p g

    Scores are made again, in blocks. The region `gradients` takes the gradient
    of `x`, the products, and the extras. `products` are the attributes of the
    `dot_general` of the scores, of `g v`, and of `dq`, `dk` and `dv`.

    **Constraints:** those of `alpa.attention`, where `dq`, `dk` and `dv` have
    the shapes of `q`, `k` and `v`.
  }];
  let arguments = (ins AnyRankedTensor:$query, AnyRankedTensor:$key,
                       AnyRankedTensor:$value, AnyRankedTensor:$out,
                       AnyRankedTensor:$max, AnyRankedTensor:$sum,
                       AnyRankedTensor:$gradient,
                       Variadic<AnyRankedTensor>:$extras, I64Attr:$batch,
                       ArrayAttr:$dims, ArrayAttr:$products, TypeAttr:$weights,
                       ConfinedAttr<I64Attr, [IntPositive]>:$block_bytes);
  let results = (outs AnyRankedTensor:$queryGradient,
                      AnyRankedTensor:$keyGradient,
                      AnyRankedTensor:$valueGradient);
  let regions = (region SizedRegion<1>:$scores, SizedRegion<1>:$gradients);
  let hasRegionVerifier = 1;
  let extraClassDeclaration = sharedClassDeclaration;
}

def Alpa_YieldOp : Alpa_Op<"yield", [
    Pure, ReturnLike, Terminator,
    ParentOneOf<["ManualOp", "AttentionOp", "AttentionGradientOp"]>]> {
  let summary = "What a region makes";
  let description = [{
    Of a computation that is split by hand, on a device; of attention, for every
    score.

    Example: `alpa.yield %0 : tensor<4x4xf32>`
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$operands);
  let assemblyFormat = "($operands^ `:` type($operands))? attr-dict";
}

#endif // DIALECTS_ALPA_ALPA_TD
