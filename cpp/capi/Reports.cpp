//===- Reports.cpp - What is said of a module -----------------------------===//

#include "cpp/analysis/BoundaryRule.h"
#include "cpp/analysis/Communication.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/HostValues.h"
#include "cpp/analysis/Liveness.h"
#include "cpp/analysis/PlanVerification.h"
#include "cpp/analysis/ProductRings.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/analysis/Work.h"
#include "cpp/capi/GraphArrays.h"
#include "cpp/capi/Session.h"
#include "cpp/capi/StablehloAlpa.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::alpa;

namespace {

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

/// The sharding's, nothing where there is none.
std::string getNotation(ShardingAttr sharding) {
  return sharding ? toString(sharding.getAxes(), sharding.getRank())
                  : std::string();
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

AlpaResult *alpaModuleGetStrategyGraph(AlpaModule *module,
                                       const AlpaStringRef *axisNames,
                                       const int64_t *axisSizes, size_t numAxes,
                                       AlpaStringRef platform) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  MLIRContext *context = &module->session->getContext();
  SmallVector<std::string> axes;
  for (size_t axis = 0; axis < numAxes; ++axis) {
    axes.push_back(
        (toRef(axisNames[axis]) + ":" + Twine(axisSizes[axis])).str());
  }
  FailureOr<func::FuncOp> entry = getEntryFunction(*module->op);
  FailureOr<MeshAttr> mesh =
      parseMesh(context, axes, [&] { return (*module->op).emitError(); });
  if (failed(entry) || failed(mesh)) {
    module->session->fail(*result, "no strategies can be enumerated");
    return result;
  }
  if (!module->analyses) {
    module->analyses = std::make_unique<StepAnalyses>(*entry);
  }
  FailureOr<StrategyGraph> graph = buildStrategyGraph(
      *entry, *mesh, *module->analyses, getBackend(toRef(platform)));
  if (failed(graph)) {
    module->session->fail(*result, "no strategies can be enumerated");
    return result;
  }
  addGraphArrays(*graph, *result);
  result->addList("remarks", module->session->takeRemarks());
  return result;
}

AlpaResult *alpaModuleGetCommunication(AlpaModule *module) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  auto volumes = getCommunication(*module->op);
  if (failed(volumes)) {
    module->session->fail(*result,
                          "the module's communication cannot be counted");
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

AlpaResult *alpaModuleGetMemory(AlpaModule *module, const int64_t *donated,
                                size_t numDonated, AlpaStringRef platform) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  auto profile = getMemoryProfile(*module->op, ArrayRef(donated, numDonated),
                                  toRef(platform));
  if (failed(profile)) {
    module->session->fail(*result, "the module's memory cannot be counted");
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

AlpaResult *alpaModuleGetSignature(AlpaModule *module) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  FailureOr<func::FuncOp> entry = getEntryFunction(*module->op);
  MeshAttr mesh = getMesh(*module->op);
  if (failed(entry)) {
    module->session->fail(*result, "the module has no signature");
    return result;
  }
  std::vector<std::string> axes, inputs, outputs, inputKinds, outputKinds,
      inputTypes, outputTypes;
  std::vector<int64_t> sizes, onceInputs, hostInputs, hostOutputs;
  if (mesh) {
    sizes.assign(mesh.getSizes().begin(), mesh.getSizes().end());
    for (StringAttr name : mesh.getNames()) {
      axes.push_back(name.str());
    }
  }
  FunctionOpInterface function = *entry;
  auto getArgAttrs = [&](unsigned index) {
    return function_interface_impl::getArgAttrs(function, index);
  };
  auto getResultAttrs = [&](unsigned index) {
    return function_interface_impl::getResultAttrs(function, index);
  };
  llvm::DenseSet<Value> onHost = findHostValues(*entry);
  for (BlockArgument argument : entry->getArguments()) {
    hostInputs.push_back(onHost.contains(argument) ? 1 : 0);
  }
  for (Value output : entry->getBody().front().getTerminator()->getOperands()) {
    hostOutputs.push_back(onHost.contains(output) ? 1 : 0);
  }
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
  result->addArray("input_on_host", hostInputs);
  result->addArray("output_on_host", hostOutputs);
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

AlpaResult *alpaModuleGetBoundaryRule(AlpaModule *module) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  FailureOr<func::FuncOp> entry = getEntryFunction(*module->op);
  if (failed(entry)) {
    module->session->fail(*result, "the module has no function to describe");
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

AlpaResult *alpaModuleGetWork(AlpaModule *module, AlpaStringRef platform) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  auto work = getWork(*module->op, getBackend(toRef(platform)));
  if (failed(work)) {
    module->session->fail(*result, "the module's work cannot be counted");
    return result;
  }
  std::vector<double> runs, flops, bytes, narrowBytes, kernels, shapes,
      paddings;
  std::vector<int8_t> areSplit, forms;
  std::vector<std::string> ops, dtypes;
  for (const OperatorWork &op : *work) {
    areSplit.push_back(op.isSplit ? 1 : 0);
    forms.push_back(static_cast<int8_t>(op.form));
    ops.push_back(op.op);
    runs.push_back(op.runs);
    flops.push_back(op.flops);
    bytes.push_back(op.bytes);
    narrowBytes.push_back(op.narrowBytes);
    kernels.push_back(op.kernels);
    ProductShape shape = op.shape.value_or(ProductShape());
    shapes.insert(shapes.end(), shape.begin(), shape.end());
    paddings.push_back(op.padding);
    dtypes.push_back(op.dtype);
  }
  result->addList("op", std::move(ops));
  result->addArray("runs", runs);
  result->addArray("flops", flops);
  result->addArray("bytes", bytes);
  result->addArray("narrow_bytes", narrowBytes);
  result->addArray("kernels", kernels);
  result->addArray("is_split", areSplit);
  result->addArray("form", forms);
  result->addArray("shape", shapes, ProductShape().size());
  result->addArray("padding", paddings);
  result->addList("dtype", std::move(dtypes));
  return result;
}

namespace {

/// The arrays of alpaModuleGetProductRings.
class RingArrays {
public:
  explicit RingArrays(MeshAttr mesh) : mesh(mesh) {}

  void add(const ProductRing &ring, Beside besideWhat) {
    RingVolume volume = getVolume(ring, mesh);
    Operation *first = ring.products.front().op;
    kinds.push_back(static_cast<int8_t>(ring.step.kind));
    axes.push_back(static_cast<int32_t>(ring.step.getAxesMask()));
    bytes.push_back(volume.bytes);
    counts.push_back(getRunsPerStep(first));
    beside.push_back(static_cast<int8_t>(besideWhat));
    addedBytes.push_back(volume.addedBytes);
    addedKernels.push_back(volume.addedKernels);
    names.push_back(getReadableName(first));
    for (auto [product, size] :
         llvm::zip_equal(ring.products, volume.products)) {
      auto number = numbers.try_emplace(product.op, numbers.size()).first;
      products.push_back(static_cast<int64_t>(number->second));
      productRings.push_back(static_cast<int64_t>(kinds.size()) - 1);
      llvm::append_range(shapes, size.shape);
      llvm::append_range(blockShapes, size.blockShape);
      productBytes.push_back(size.bytes);
      blockBytes.push_back(size.blockBytes);
      llvm::raw_string_ostream(dtypes.emplace_back())
          << getElementTypeOrSelf(product.op->getOperand(0).getType());
    }
  }

  void addTo(AlpaResult &result) {
    result.addArray("kind", kinds);
    result.addArray("axes", axes);
    result.addArray("bytes", bytes);
    result.addArray("count", counts);
    result.addArray("beside", beside);
    result.addArray("added_bytes", addedBytes);
    result.addArray("added_kernels", addedKernels);
    result.addList("name", std::move(names));
    result.addArray("product", products);
    result.addArray("product_ring", productRings);
    result.addArray("shape", shapes, ProductShape().size());
    result.addArray("block_shape", blockShapes, ProductShape().size());
    result.addArray("product_bytes", productBytes);
    result.addArray("block_bytes", blockBytes);
    result.addList("dtype", std::move(dtypes));
  }

private:
  MeshAttr mesh;
  std::vector<int8_t> kinds, beside;
  std::vector<int32_t> axes;
  std::vector<double> bytes, counts, addedBytes, addedKernels;
  std::vector<std::string> names, dtypes;
  llvm::DenseMap<Operation *, size_t> numbers;
  std::vector<int64_t> products, productRings;
  std::vector<double> shapes, blockShapes, productBytes, blockBytes;
};

} // namespace

AlpaResult *alpaModuleGetProductRings(AlpaModule *module) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  FailureOr<func::FuncOp> entry = getEntryFunction(*module->op);
  FailureOr<MeshAttr> mesh = failure();
  if (succeeded(entry)) {
    mesh = getPlannedMesh(*module->op);
  }
  if (failed(mesh) ||
      failed(verifyPlan(*entry, *mesh, {/*isResharded=*/true}))) {
    module->session->fail(*result, "the module's rings cannot be found");
    return result;
  }
  Leeway leeway(*entry);
  RingArrays arrays(*mesh);
  for (const ProductRing &ring : ProductRings(*mesh).findAll(*entry)) {
    ReshardOp reshard = ring.reshard;
    arrays.add(ring, leeway.get(reshard.getResult()));
  }
  arrays.addTo(*result);
  return result;
}
