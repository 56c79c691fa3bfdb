//===- StablehloAlpa.cpp - C interface of the compiler --------------------===//

#include "cpp/capi/StablehloAlpa.h"

#include "cpp/analysis/BoundaryRule.h"
#include "cpp/analysis/Communication.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/Guards.h"
#include "cpp/analysis/Liveness.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/analysis/Work.h"
#include "cpp/capi/BooleanElements.h"
#include "cpp/capi/GraphArrays.h"
#include "cpp/capi/Result.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/ImportManual.h"
#include "passes/Passes.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

using namespace mlir;
using namespace mlir::alpa;

namespace {

StringRef toRef(AlpaStringRef text) { return {text.data, text.length}; }
AlpaStringRef toRef(const std::string &text) {
  return {text.data(), text.size()};
}

/// Passes are looked up by name in a registry of the process.
void registerPassesOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerAlpaPasses();
    registerAlpaPipelines();
    registerTransformsPasses();
  });
}

/// A context with a parsed module whose diagnostics go to a result.
class Session {
public:
  /// `isPlanned`: the module is analysed or inlined, which needs its regions
  /// known.
  Session(AlpaResult &result, AlpaStringRef text, bool isPlanned = true)
      : result(result), source(packBooleans(toRef(text))) {
    registerPassesOnce();
    DialectRegistry registry;
    registerAlpaDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
    context.allowUnregisteredDialects();
    context.getDiagEngine().registerHandler(
        [this](Diagnostic &diagnostic) { record(diagnostic); });
    if (std::string reason = getReasonToRefuse(source); !reason.empty()) {
      fail("the module does not parse: " + reason);
      return;
    }
    // Calls in the body of an operator that is not known have no valid callee:
    // verified once Shardy's manual computations are known.
    ParserConfig config(&context, /*verifyAfterParse=*/false);
    module = parseSourceString<ModuleOp>(source, config, "module");
    if (!module || (isPlanned ? importManual(*module) : success()).failed() ||
        verify(*module).failed()) {
      fail("the module does not parse");
      module = nullptr;
      return;
    }
    if (isPlanned && refuseUnknownRegions(*module).failed()) {
      fail("the module cannot be planned");
      module = nullptr;
    }
  }

  bool hasModule() const { return static_cast<bool>(module); }
  ModuleOp getModule() { return *module; }
  MLIRContext &getContext() { return context; }
  std::vector<std::string> takeRemarks() { return std::move(remarks); }

  void fail(StringRef reason) {
    result.failed = true;
    result.error = errors.empty() ? reason.str() : errors;
  }

private:
  void record(Diagnostic &diagnostic) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    // Of a traced program's location, which is a whole Python stack, the name
    // scope says where the operator is.
    Location location = diagnostic.getLocation();
    if (std::string scope = getScope(location); !scope.empty()) {
      stream << scope << ": ";
    } else if (auto file = dyn_cast<FileLineColLoc>(location)) {
      stream << file.getFilename().getValue() << ":" << file.getLine() << ":"
             << file.getColumn() << ": ";
    }
    stream << diagnostic;
    // Notes only repeat the printed operator.
    if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
      errors += (errors.empty() ? "" : "\n") + text;
    } else {
      remarks.push_back(text);
    }
  }

  AlpaResult &result;
  /// MLIR's lexer reads up to a terminator, which the caller's text lacks.
  std::string source;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  OwningOpRef<ModuleOp> module;
  std::string errors;
  std::vector<std::string> remarks;
};

/// Sizes and element type, `8x4xf32`.
std::string getTypeName(Type type) {
  std::string name;
  llvm::raw_string_ostream stream(name);
  if (auto tensor = dyn_cast<RankedTensorType>(type)) {
    for (int64_t size : tensor.getShape()) {
      stream << size << "x";
    }
    type = tensor.getElementType();
  }
  type.print(stream);
  return name;
}

/// What an argument or a result of a stage is, `input 3` or `transfer 0`.
std::string getKind(ArrayRef<NamedAttribute> attributes) {
  for (StringRef name :
       {StringRef(kInputAttrName), StringRef(kBatchAttrName),
        StringRef(kMicroBatchAttrName), StringRef(kOutputAttrName),
        StringRef(kTransferAttrName), StringRef(kLocalAttrName),
        StringRef(kAccumulatorAttrName)}) {
    for (NamedAttribute attribute : attributes) {
      if (auto number = dyn_cast<IntegerAttr>(attribute.getValue());
          number && attribute.getName() == name) {
        return (name.substr(StringRef("alpa.").size()) + " " +
                Twine(number.getInt()))
            .str();
      }
    }
  }
  return "";
}

} // namespace

void alpaResultDestroy(AlpaResult *result) { delete result; }
bool alpaResultHasFailed(const AlpaResult *result) { return result->failed; }
AlpaStringRef alpaResultGetError(const AlpaResult *result) {
  return toRef(result->error);
}
size_t alpaResultGetNumArrays(const AlpaResult *result) {
  return result->arrays.size();
}
AlpaArrayRef alpaResultGetArray(const AlpaResult *result, size_t index) {
  const AlpaResult::Array &array = result->arrays[index];
  return {toRef(array.name), array.type, array.data.data(), array.rows,
          array.columns};
}
size_t alpaResultGetNumStringLists(const AlpaResult *result) {
  return result->lists.size();
}
AlpaStringRef alpaResultGetStringListName(const AlpaResult *result,
                                          size_t list) {
  return toRef(result->lists[list].name);
}
size_t alpaResultGetStringListSize(const AlpaResult *result, size_t list) {
  return result->lists[list].strings.size();
}
AlpaStringRef alpaResultGetString(const AlpaResult *result, size_t list,
                                  size_t index) {
  return toRef(result->lists[list].strings[index]);
}

AlpaResult *alpaRunPipeline(AlpaStringRef text, AlpaStringRef pipeline,
                            bool printGeneric, bool printLocations) {
  auto *result = new AlpaResult();
  StringRef passes = toRef(pipeline);
  Session session(*result, text,
                  passes.contains("inline") || passes.contains("alpa-"));
  if (!session.hasModule()) {
    return result;
  }
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  FailureOr<OpPassManager> parsed =
      parsePassPipeline(toRef(pipeline), errorStream);
  if (failed(parsed)) {
    session.fail("the pipeline does not parse: " + errors);
    return result;
  }
  PassManager manager(&session.getContext(), parsed->getOpAnchorName());
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  // Between passes the verifier takes a third of the time of all of them, and
  // has nothing to say that it does not say behind the last. The tests of the
  // passes have it everywhere.
  manager.enableVerifier(false);
  if (failed(manager.run(session.getModule())) ||
      failed(verify(session.getModule()))) {
    session.fail("the pipeline failed");
    return result;
  }
  OpPrintingFlags flags;
  if (printGeneric) {
    flags.printGenericOpForm();
  }
  if (printLocations) {
    flags.enableDebugInfo();
  }
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  session.getModule().print(stream, flags);
  result->addList("text", {unpackBooleans(printed)});
  result->addList("remarks", session.takeRemarks());
  return result;
}

AlpaResult *alpaGetStrategyGraph(AlpaStringRef text,
                                 const AlpaStringRef *axisNames,
                                 const int64_t *axisSizes, size_t numAxes) {
  auto *result = new AlpaResult();
  Session session(*result, text);
  if (!session.hasModule()) {
    return result;
  }
  SmallVector<std::string> axes;
  for (size_t axis = 0; axis < numAxes; ++axis) {
    axes.push_back(
        (toRef(axisNames[axis]) + ":" + Twine(axisSizes[axis])).str());
  }
  FailureOr<func::FuncOp> entry = getEntryFunction(session.getModule());
  FailureOr<MeshAttr> mesh = parseMesh(&session.getContext(), axes, [&] {
    return session.getModule().emitError();
  });
  if (failed(entry) || failed(mesh)) {
    session.fail("no strategies can be enumerated");
    return result;
  }
  FailureOr<StrategyGraph> graph = buildStrategyGraph(*entry, *mesh);
  if (failed(graph)) {
    session.fail("no strategies can be enumerated");
    return result;
  }
  addGraphArrays(*graph, *result);
  result->addList("remarks", session.takeRemarks());
  return result;
}

AlpaResult *alpaGetCommunication(AlpaStringRef text) {
  auto *result = new AlpaResult();
  Session session(*result, text);
  if (!session.hasModule()) {
    return result;
  }
  auto volumes = getCommunication(session.getModule());
  if (failed(volumes)) {
    session.fail("the module's communication cannot be counted");
    return result;
  }
  std::vector<int8_t> kinds, beside;
  std::vector<int32_t> axes;
  std::vector<double> bytes, counts;
  std::vector<std::string> names;
  for (const CollectiveVolume &volume : *volumes) {
    kinds.push_back(static_cast<int8_t>(volume.kind));
    axes.push_back(static_cast<int32_t>(volume.axes));
    bytes.push_back(volume.bytes);
    counts.push_back(volume.count);
    beside.push_back(static_cast<int8_t>(volume.beside));
    names.push_back(volume.name);
  }
  result->addArray("kind", kinds);
  result->addArray("axes", axes);
  result->addArray("bytes", bytes);
  result->addArray("count", counts);
  result->addArray("beside", beside);
  result->addList("name", std::move(names));
  return result;
}

AlpaResult *alpaGetMemory(AlpaStringRef text, const int64_t *donated,
                          size_t numDonated) {
  auto *result = new AlpaResult();
  Session session(*result, text);
  if (!session.hasModule()) {
    return result;
  }
  auto profile =
      getMemoryProfile(session.getModule(), ArrayRef(donated, numDonated));
  if (failed(profile)) {
    session.fail("the module's memory cannot be counted");
    return result;
  }
  std::vector<double> bytes;
  std::vector<std::string> names;
  for (const LiveTensor &tensor : profile->live) {
    bytes.push_back(tensor.bytes);
    names.push_back(tensor.name);
  }
  result->addArray("peak_bytes", std::vector<double>{profile->peakBytes});
  result->addArray("bytes", bytes);
  result->addList("name", std::move(names));
  return result;
}

AlpaResult *alpaGetSignature(AlpaStringRef text) {
  auto *result = new AlpaResult();
  Session session(*result, text);
  if (!session.hasModule()) {
    return result;
  }
  FailureOr<func::FuncOp> entry = getEntryFunction(session.getModule());
  MeshAttr mesh = getMesh(session.getModule());
  if (failed(entry)) {
    session.fail("the module has no signature");
    return result;
  }
  std::vector<std::string> axes, inputs, outputs, inputKinds, outputKinds,
      inputTypes, outputTypes;
  std::vector<int64_t> sizes, onceInputs;
  if (mesh) {
    sizes.assign(mesh.getSizes().begin(), mesh.getSizes().end());
    for (StringAttr name : mesh.getNames()) {
      axes.push_back(name.str());
    }
  }
  auto getNotation = [](ShardingAttr sharding) {
    return sharding ? toString(sharding.getAxes(), sharding.getRank())
                    : std::string();
  };
  FunctionOpInterface function = *entry;
  auto getArgAttrs = [&](unsigned index) {
    return function_interface_impl::getArgAttrs(function, index);
  };
  auto getResultAttrs = [&](unsigned index) {
    return function_interface_impl::getResultAttrs(function, index);
  };
  for (unsigned index = 0; index < entry->getNumArguments(); ++index) {
    inputs.push_back(getNotation(
        entry->getArgAttrOfType<ShardingAttr>(index, kShardingAttrName)));
    inputKinds.push_back(getKind(getArgAttrs(index)));
    inputTypes.push_back(getTypeName(entry->getArgumentTypes()[index]));
    onceInputs.push_back(
        entry->getArgAttr(index, kOnceAttrName) != nullptr ? 1 : 0);
  }
  for (unsigned index = 0; index < entry->getNumResults(); ++index) {
    outputs.push_back(getNotation(
        entry->getResultAttrOfType<ShardingAttr>(index, kShardingAttrName)));
    outputKinds.push_back(getKind(getResultAttrs(index)));
    outputTypes.push_back(getTypeName(entry->getResultTypes()[index]));
  }
  result->addArray("mesh_shape", sizes);
  result->addList("mesh_axes", std::move(axes));
  result->addList("inputs", std::move(inputs));
  result->addList("outputs", std::move(outputs));
  result->addList("input_kinds", std::move(inputKinds));
  result->addList("output_kinds", std::move(outputKinds));
  result->addArray("input_once", onceInputs);
  result->addList("input_types", std::move(inputTypes));
  result->addList("output_types", std::move(outputTypes));
  return result;
}

static void addClasses(AlpaResult &result, const std::string &side,
                       const std::vector<std::vector<int64_t>> &tensors) {
  std::vector<int64_t> classes, offsets = {0};
  for (const std::vector<int64_t> &tensor : tensors) {
    classes.insert(classes.end(), tensor.begin(), tensor.end());
    offsets.push_back(static_cast<int64_t>(classes.size()));
  }
  result.addArray(side + "_class", classes);
  result.addArray(side + "_offset", offsets);
}

AlpaResult *alpaGetBoundaryRule(AlpaStringRef text) {
  auto *result = new AlpaResult();
  Session session(*result, text);
  if (!session.hasModule()) {
    return result;
  }
  FailureOr<func::FuncOp> entry = getEntryFunction(session.getModule());
  if (failed(entry)) {
    session.fail("the module has no function to describe");
    return result;
  }
  BoundaryRule rule = getBoundaryRule(*entry);
  addClasses(*result, "input", rule.arguments);
  addClasses(*result, "output", rule.results);
  result->addArray("class_size", rule.sizes);
  std::vector<int8_t> uses;
  for (const std::vector<DimensionUse> &argument : rule.uses) {
    for (DimensionUse use : argument) {
      uses.push_back(static_cast<int8_t>(use));
    }
  }
  result->addArray("input_use", uses);
  return result;
}

AlpaResult *alpaGetWork(AlpaStringRef text) {
  auto *result = new AlpaResult();
  Session session(*result, text);
  if (!session.hasModule()) {
    return result;
  }
  auto work = getWork(session.getModule());
  if (failed(work)) {
    session.fail("the module's work cannot be counted");
    return result;
  }
  std::vector<double> runs, flops, bytes, kernels, shapes;
  std::vector<int8_t> areSplit;
  std::vector<std::string> ops, dtypes;
  for (const OperatorWork &op : *work) {
    areSplit.push_back(op.isSplit ? 1 : 0);
    ops.push_back(op.op);
    runs.push_back(op.runs);
    flops.push_back(op.flops);
    bytes.push_back(op.bytes);
    kernels.push_back(op.kernels);
    ProductShape shape = op.shape.value_or(ProductShape());
    shapes.insert(shapes.end(), shape.begin(), shape.end());
    dtypes.push_back(op.dtype);
  }
  result->addList("op", std::move(ops));
  result->addArray("runs", runs);
  result->addArray("flops", flops);
  result->addArray("bytes", bytes);
  result->addArray("kernels", kernels);
  result->addArray("is_split", areSplit);
  result->addArray("shape", shapes, ProductShape().size());
  result->addList("dtype", std::move(dtypes));
  return result;
}

AlpaResult *alpaGetSubmodules(AlpaStringRef text) {
  auto *result = new AlpaResult();
  Session session(*result, text);
  if (!session.hasModule()) {
    return result;
  }
  std::vector<std::string> names, texts;
  for (auto nested : session.getModule().getOps<ModuleOp>()) {
    names.push_back(nested.getSymName().value_or("").str());
    // On its own: the aliases of the text around it do not reach it.
    OwningOpRef<ModuleOp> alone = nested.clone();
    std::string printed;
    llvm::raw_string_ostream stream(printed);
    alone->print(stream,
                 OpPrintingFlags().printGenericOpForm().enableDebugInfo());
    texts.push_back(unpackBooleans(printed));
  }
  result->addList("names", std::move(names));
  result->addList("texts", std::move(texts));
  return result;
}
