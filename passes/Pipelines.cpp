//===- Pipelines.cpp - The order of the passes ----------------------------===//

#include "dialects/stablehlo/DataFlow/DataFlow.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/Dialect/Func/Extensions/InlinerExtension.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Quant/IR/Quant.h"
#include "mlir/Dialect/Shape/IR/Shape.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/ChloOps.h"

namespace mlir::alpa {

namespace {

/// What pipelines take that begin with a traced module.
template <typename Base> struct WithState : Base {
  typename Base::template ListOption<std::string> aliases{
      *this, "aliases", llvm::cl::desc("argument:result pairs of the state")};
  typename Base::template ListOption<int64_t> donated{
      *this, "donated",
      llvm::cl::desc("arguments whose memory results may take")};
  typename Base::template Option<int64_t> tripCountHint{
      *this, "trip-count-hint",
      llvm::cl::desc("how often loops run of which that is not known"),
      llvm::cl::init(0)};
};

/// Of a module whose author may know the mesh.
template <typename Base> struct WithAxes : Base {
  typename Base::template ListOption<std::string> axes{
      *this, "axes",
      llvm::cl::desc("mesh axes that sharding constraints may name")};
};

/// The form that a step is planned in.
template <typename Base> struct WithForm : Base {
  typename Base::template Option<int64_t> padTo{
      *this, "pad-to",
      llvm::cl::desc("sizes are padded to multiples of it, "
                     "where that is worth while"),
      llvm::cl::init(1)};
  typename Base::template Option<double> mostAdded{
      *this, "most-added",
      llvm::cl::desc("what padding may add to a size, as "
                     "a share of it"),
      llvm::cl::init(8)};
  typename Base::template Option<int64_t> sortParts{
      *this, "sort-parts",
      llvm::cl::desc("rows are sorted for products in groups within so many "
                     "parts"),
      llvm::cl::init(1)};
  typename Base::template Option<int64_t> attentionKeys{
      *this, "attention-keys",
      llvm::cl::desc("attention over that many keys and more becomes one "
                     "operator; 0: none does"),
      llvm::cl::init(0)};
  typename Base::template Option<int64_t> blockBytes{
      *this, "block-bytes",
      llvm::cl::desc("bytes of scores that a device makes at once"),
      llvm::cl::init(int64_t(1) << 26)};
};

template <typename Base> struct WithMicroBatches : Base {
  typename Base::template Option<int64_t> microBatches{
      *this, "micro-batches", llvm::cl::desc("micro-batches of a step"),
      llvm::cl::init(1)};
};

/// How a step is cut into micro-batches.
template <typename Base> struct WithCut : WithMicroBatches<Base> {
  typename Base::template ListOption<int64_t> batch{
      *this, "batch",
      llvm::cl::desc("arguments that have to be cut; by default "
                     "whatever can be")};
  typename Base::template Option<std::string> independent{
      *this, "independent",
      llvm::cl::desc("the module is that of one micro-batch: mean, sum or the "
                     "number of the result that is the weight")};
  typename Base::template Option<bool> onePass{
      *this, "one-pass",
      llvm::cl::desc("gradients at what others have made are refused"),
      llvm::cl::init(false)};
};

struct ImportPipelineOptions
    : WithAxes<WithState<PassPipelineOptions<ImportPipelineOptions>>> {};
struct MergePipelineOptions
    : WithForm<PassPipelineOptions<MergePipelineOptions>> {};
struct PreparePipelineOptions
    : WithForm<
          WithAxes<WithState<PassPipelineOptions<PreparePipelineOptions>>>> {};
struct CutPipelineOptions : WithCut<PassPipelineOptions<CutPipelineOptions>> {};
struct MarkPipelineOptions
    : WithMicroBatches<WithForm<PassPipelineOptions<MarkPipelineOptions>>> {};
struct LayersPipelineOptions
    : WithCut<WithForm<WithState<PassPipelineOptions<LayersPipelineOptions>>>> {
};

template <typename T>
SmallVector<T>
toVector(const mlir::detail::PassOptions::ListOption<T> &option) {
  return SmallVector<T>(option.begin(), option.end());
}

/// Folds and the patterns of operators, until the worklist is empty. Programs
/// have single blocks, of which simplifying regions finds nothing that the
/// worklist does not; and a second round only confirms that the first, which
/// visits whatever touches what has changed, has left nothing to do.
void addCanonicalizer(OpPassManager &manager) {
  GreedyRewriteConfig config;
  config.setRegionSimplificationLevel(GreedySimplifyRegionLevel::Disabled)
      .setMaxIterations(1);
  manager.addPass(createCanonicalizerPass(config));
}

/// Of options with a state.
template <typename T>
void addImport(OpPassManager &manager, const T &options,
               ArrayRef<std::string> axes) {
  // Takes regions out of the way of what refuses unknown ones.
  manager.addPass(createImportManual());
  // First of all: some of MLIR's passes do not survive what this refuses.
  manager.addPass(createCheckRegions());
  ImportConstraintsOptions constraintOptions;
  constraintOptions.axes.assign(axes.begin(), axes.end());
  manager.addPass(createImportConstraints(constraintOptions));
  // Before operators are told apart by what they carry.
  manager.addPass(createImportRules());
  // JAX puts library functions and loop bodies into private functions; an
  // operator has one sharding only once every call has its own copy.
  manager.addPass(createInlineCalls());
  // Equal constants and views become one value, so that they get one sharding.
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
  // Behind the canonicaliser, by which numbers are known to be the same.
  manager.addPass(createFoldPadding());
  // Behind the elimination of common subexpressions: the same indices are one
  // value.
  manager.addPass(createFoldIndices());
  // Likewise; before anything asks along which dimensions rows meet.
  manager.addPass(createBatchLookups());
  // Before anything asks what products look like.
  manager.addPass(createMoveTransposes());
  // Behind the inliner: the order of callbacks is that of the whole program.
  manager.addPass(createImportCallbacks());
  // Checks what is left, so that errors name operators the user can find.
  ImportOptions importOptions;
  importOptions.aliases.assign(options.aliases.begin(), options.aliases.end());
  importOptions.donated.assign(options.donated.begin(), options.donated.end());
  manager.addPass(createImport(importOptions));
  if (options.tripCountHint != 0) {
    // Behind the inliner, which copies loops.
    HintTripCountsOptions hintOptions;
    hintOptions.count = options.tripCountHint;
    manager.addPass(createHintTripCounts(hintOptions));
  }
}

/// On the program as a whole, of which strategies are to know nothing else.
void addPadding(OpPassManager &manager, int64_t multiple, double mostAdded) {
  if (multiple > 1) {
    PadDimensionsOptions options;
    options.multiple = multiple;
    options.mostAdded = mostAdded;
    manager.addPass(createPadDimensions(options));
  }
}

/// Behind padding: attention as one operator is not padded.
void addAttention(OpPassManager &manager, int64_t keys, int64_t blockBytes) {
  if (keys > 0) {
    OutlineAttentionOptions options;
    options.fewestKeys = keys;
    options.blockBytes = blockBytes;
    manager.addPass(createOutlineAttention(options));
  }
}

void buildImportPipeline(OpPassManager &manager,
                         const ImportPipelineOptions &options) {
  addImport(manager, options, toVector(options.axes));
}

/// Of options with a form: what is imported, as it is planned on one mesh.
template <typename T> void addMerged(OpPassManager &manager, const T &options) {
  if (options.sortParts > 1) {
    manager.addPass(createSortInParts({options.sortParts}));
    addCanonicalizer(manager);
    manager.addPass(createCSEPass());
  }
  addPadding(manager, options.padTo, options.mostAdded);
  addAttention(manager, options.attentionKeys, options.blockBytes);
  manager.addPass(createMergeOperators());
}

void buildMergePipeline(OpPassManager &manager,
                        const MergePipelineOptions &options) {
  addMerged(manager, options);
}

void buildPreparePipeline(OpPassManager &manager,
                          const PreparePipelineOptions &options) {
  addImport(manager, options, toVector(options.axes));
  addMerged(manager, options);
}

struct StacksPipelineOptions : PassPipelineOptions<StacksPipelineOptions> {
  ListOption<std::string> aliases{
      *this, "aliases", llvm::cl::desc("argument:result pairs of the state")};
  ListOption<int64_t> whole{*this, "whole",
                            llvm::cl::desc("arguments that are not cut")};
};

void buildStacksPipeline(OpPassManager &manager,
                         const StacksPipelineOptions &options) {
  manager.addPass(createImportManual());
  manager.addPass(createCheckRegions());
  // Library functions are called on whole stacks.
  manager.addPass(createInlineCalls());
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
  SplitStacksOptions splitOptions;
  splitOptions.aliases.assign(options.aliases.begin(), options.aliases.end());
  splitOptions.whole.assign(options.whole.begin(), options.whole.end());
  manager.addPass(createSplitStacks(splitOptions));
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
}

/// Behind the cut.
void addMicroBatchForm(OpPassManager &manager) {
  manager.addPass(createInsertReshards());
  LowerToSpmdOptions lowerOptions;
  lowerOptions.microBatches = true;
  manager.addPass(createLowerToSpmd(lowerOptions));
  // Slices and zeros are emitted anew wherever they are needed.
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
  // Padding that is not written out is written out by lowering.
  manager.addPass(createFoldPadding());
}

/// Of options with a cut: what is imported, in micro-batches.
template <typename T> void addCut(OpPassManager &manager, const T &options) {
  SplitMicroBatchesOptions splitOptions;
  splitOptions.batch.assign(options.batch.begin(), options.batch.end());
  splitOptions.microBatches = options.microBatches;
  splitOptions.independent = options.independent;
  splitOptions.onePass = options.onePass;
  manager.addPass(createSplitMicroBatches(splitOptions));
  if (options.microBatches > 1 && options.independent.empty()) {
    addMicroBatchForm(manager);
  }
}

/// Of options with a form and a number of micro-batches: these with layers.
template <typename T> void addMarks(OpPassManager &manager, const T &options) {
  // Of the sizes that a micro-batch has. What nothing uses any longer would be
  // taken for what runs once per step.
  addPadding(manager, options.padTo, options.mostAdded);
  if (options.padTo > 1) {
    addCanonicalizer(manager);
  }
  // Of micro-batches, before layers are marked: what takes the place of several
  // operators has the layer of their products.
  addAttention(manager, options.attentionKeys, options.blockBytes);
  // Behind the inliner, which gives operators of called functions the scope of
  // the call, and behind the joins, where the micro-batches end.
  MarkLayersOptions markOptions;
  markOptions.microBatches = options.microBatches;
  manager.addPass(createMarkLayers(markOptions));
}

void buildCutPipeline(OpPassManager &manager,
                      const CutPipelineOptions &options) {
  addCut(manager, options);
}

void buildMarkPipeline(OpPassManager &manager,
                       const MarkPipelineOptions &options) {
  addMarks(manager, options);
}

void buildLayersPipeline(OpPassManager &manager,
                         const LayersPipelineOptions &options) {
  // Stages have meshes of their own, which no author knows.
  addImport(manager, options, {});
  addCut(manager, options);
  addMarks(manager, options);
}

void buildStagePipeline(OpPassManager &manager) {
  // Cutting has made operators again for each of their users.
  addCanonicalizer(manager);
  manager.addPass(createCSEPass());
  manager.addPass(createMergeOperators());
}

struct PlanPipelineOptions : PassPipelineOptions<PlanPipelineOptions> {
  ListOption<std::string> mesh{*this, "mesh",
                               llvm::cl::desc("mesh axes, name:size")};
  ListOption<int64_t> solution{*this, "solution",
                               llvm::cl::desc("chosen strategy of every node")};
  Option<unsigned> reach{
      *this, "reach",
      llvm::cl::desc("operators between the first and the last that share what "
                     "was gathered; 0: all of a phase"),
      llvm::cl::init(0)};
};

void buildPlanPipeline(OpPassManager &manager,
                       const PlanPipelineOptions &options) {
  ChooseStrategiesOptions chooseOptions;
  chooseOptions.mesh.assign(options.mesh.begin(), options.mesh.end());
  chooseOptions.solution.assign(options.solution.begin(),
                                options.solution.end());
  manager.addPass(createChooseStrategies(chooseOptions));
  manager.addPass(createApplyStrategies());
  // Errors name the operator before reshards stand around it.
  VerifyPlanOptions verifyOptions;
  verifyOptions.resharded = false;
  manager.addPass(createVerifyPlan(verifyOptions));
  InsertReshardsOptions insertOptions;
  insertOptions.reach = options.reach;
  manager.addPass(createInsertReshards(insertOptions));
  // Needs the reshards of one value side by side, as the pass before left them.
  OptimizeCollectivesOptions optimizeOptions;
  optimizeOptions.reach = options.reach;
  manager.addPass(createOptimizeCollectives(optimizeOptions));
  // What several operators share is known by now.
  manager.addPass(createMoveReshards());
  // What leaves the pipeline can be relied on.
  manager.addPass(createVerifyPlan());
}

struct SpmdPipelineOptions : PassPipelineOptions<SpmdPipelineOptions> {
  Option<std::string> platform{
      *this, "platform",
      llvm::cl::desc("whose compiler reads the module: cpu, cuda, rocm or tpu; "
                     "chooses among forms of equal meaning")};
};

void buildSpmdPipeline(OpPassManager &manager,
                       const SpmdPipelineOptions &options) {
  manager.addPass(createLowerToSpmd());
  manager.addPass(createVerifySpmd());
  if (options.platform == "tpu") {
    manager.addPass(createReduceBeforeTransposes());
    manager.addPass(createBlockExchanges());
    manager.addPass(createWriteReceivedResults());
  }
  if (options.platform == "cpu") {
    manager.addPass(createGatherRaggedExchanges());
    manager.addPass(createFenceExchanges());
    manager.addPass(createRowMajorResults());
    manager.addPass(createSliceNegativePadding());
  }
  // Device positions and zeros are emitted anew wherever they are needed.
  manager.addPass(createCSEPass());
  addCanonicalizer(manager);
  if (options.platform == "tpu") {
    OrderGradientsOptions ofHead;
    ofHead.ofHead = true;
    manager.addPass(createOrderGradients(ofHead));
  }
}

} // namespace

void addMicroBatches(OpPassManager &manager, int64_t count,
                     ArrayRef<int64_t> batch) {
  SplitMicroBatchesOptions splitOptions;
  splitOptions.batch.assign(batch.begin(), batch.end());
  splitOptions.microBatches = count;
  manager.addPass(createSplitMicroBatches(splitOptions));
  addMicroBatchForm(manager);
}

void registerAlpaPipelines() {
  PassPipelineRegistration<ImportPipelineOptions>(
      "alpa-import-pipeline", "From a traced module to its operators",
      buildImportPipeline);
  PassPipelineRegistration<MergePipelineOptions>(
      "alpa-merge-pipeline", "From operators to those with roles, in one form",
      buildMergePipeline);
  PassPipelineRegistration<PreparePipelineOptions>(
      "alpa-prepare-pipeline", "From a traced module to operators with roles",
      buildPreparePipeline);
  PassPipelineRegistration<StacksPipelineOptions>(
      "alpa-stacks-pipeline",
      "From a traced module to one that takes stacks of layers in parts",
      buildStacksPipeline);
  PassPipelineRegistration<CutPipelineOptions>(
      "alpa-cut-pipeline", "From operators to those of micro-batches",
      buildCutPipeline);
  PassPipelineRegistration<MarkPipelineOptions>(
      "alpa-mark-pipeline",
      "From micro-batches to operators with layers and phases, in one form",
      buildMarkPipeline);
  PassPipelineRegistration<LayersPipelineOptions>(
      "alpa-layers-pipeline",
      "From a traced train step to operators with layers and phases",
      buildLayersPipeline);
  PassPipelineRegistration<>("alpa-stage-pipeline",
                             "From a stage to operators with roles",
                             buildStagePipeline);
  PassPipelineRegistration<PlanPipelineOptions>(
      "alpa-plan-pipeline", "From a solution to shardings and reshards",
      buildPlanPipeline);
  PassPipelineRegistration<SpmdPipelineOptions>(
      "alpa-spmd-pipeline", "From shardings to the module for one device",
      buildSpmdPipeline);
}

void registerAlpaDialects(DialectRegistry &registry) {
  registry
      .insert<func::FuncDialect, AlpaDialect, stablehlo::StablehloDialect,
              chlo::ChloDialect, quant::QuantDialect, shape::ShapeDialect>();
  func::registerInlinerExtension(registry);
  stablehlo::registerDataFlow(registry);
  stablehlo::registerShardingRules(registry);
}

} // namespace mlir::alpa
