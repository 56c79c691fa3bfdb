//===- core.cpp - stablehlo_alpa._core ------------------------------------===//
//
// Text, strings and numpy arrays; built on the C interface alone.
//
//===----------------------------------------------------------------------===//

#include "cpp/capi/StablehloAlpa.h"

#include <memory>
#include <optional>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace py = pybind11;

namespace {

struct CompilerError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

using Result = std::unique_ptr<AlpaResult, decltype(&alpaResultDestroy)>;

AlpaStringRef toRef(const std::string &text) {
  return {text.data(), text.size()};
}

std::string toString(AlpaStringRef text) { return {text.data, text.length}; }

/// Runs a call of the C interface without the interpreter's lock.
template <typename Call> Result run(Call call) {
  Result result(nullptr, alpaResultDestroy);
  {
    py::gil_scoped_release release;
    result.reset(call());
  }
  if (alpaResultHasFailed(result.get())) {
    throw CompilerError(toString(alpaResultGetError(result.get())));
  }
  return result;
}

template <typename T> py::array toNumpy(const AlpaArrayRef &array) {
  std::vector<py::ssize_t> shape = {static_cast<py::ssize_t>(array.rows)};
  if (array.columns != 0) {
    shape.push_back(static_cast<py::ssize_t>(array.columns));
  }
  // Without a base object numpy copies.
  return py::array_t<T>(shape, static_cast<const T *>(array.data));
}

py::array toNumpy(const AlpaArrayRef &array) {
  switch (array.type) {
  case ALPA_INT8:
    return toNumpy<int8_t>(array);
  case ALPA_INT32:
    return toNumpy<int32_t>(array);
  case ALPA_INT64:
    return toNumpy<int64_t>(array);
  case ALPA_FLOAT64:
    return toNumpy<double>(array);
  }
  throw CompilerError("unknown array type");
}

py::list toList(const Result &result, size_t list) {
  py::list strings;
  for (size_t index = 0;
       index < alpaResultGetStringListSize(result.get(), list); ++index) {
    strings.append(toString(alpaResultGetString(result.get(), list, index)));
  }
  return strings;
}

py::dict toDict(const Result &result) {
  py::dict dict;
  for (size_t index = 0; index < alpaResultGetNumArrays(result.get());
       ++index) {
    AlpaArrayRef array = alpaResultGetArray(result.get(), index);
    dict[py::str(toString(array.name))] = toNumpy(array);
  }
  for (size_t list = 0; list < alpaResultGetNumStringLists(result.get());
       ++list) {
    dict[py::str(toString(alpaResultGetStringListName(result.get(), list)))] =
        toList(result, list);
  }
  return dict;
}

py::tuple runPipeline(const std::string &text, const std::string &pipeline,
                      bool generic, bool locations) {
  Result result = run([&] {
    return alpaRunPipeline(toRef(text), toRef(pipeline), generic, locations);
  });
  return py::make_tuple(toList(result, 0)[0], toList(result, 1));
}

/// The rows of each boundary value, or None for a replicated one.
py::list splitSpecs(const py::dict &dict, const char *specs,
                    const char *offsets) {
  auto rows = dict[specs].cast<py::array>();
  auto bounds = dict[offsets].cast<std::vector<int64_t>>();
  py::list values;
  for (size_t index = 0; index + 1 < bounds.size(); ++index) {
    if (bounds[index] == bounds[index + 1]) {
      values.append(py::none());
    } else {
      values.append(rows[py::slice(bounds[index], bounds[index + 1], 1)]);
    }
  }
  return values;
}

/// A module that stays parsed.
class Module {
public:
  explicit Module(const std::string &text) : Module(nullptr) {
    AlpaModule *parsed = nullptr;
    run([&] { return alpaModuleParse(toRef(text), &parsed); });
    module.reset(parsed);
  }

  std::unique_ptr<Module> clone() {
    return std::unique_ptr<Module>(new Module(alpaModuleClone(get())));
  }

  py::list runPipeline(const std::string &pipeline) {
    return toList(run([&] { return alpaModuleRun(get(), toRef(pipeline)); }),
                  0);
  }

  py::object getText(bool generic, bool locations) {
    return toList(
        run([&] { return alpaModulePrint(get(), generic, locations); }), 0)[0];
  }

  py::dict getSubmodules() {
    Result names = run([&] { return alpaModuleGetSubmodules(get()); });
    py::dict found;
    for (size_t index = 0; index < alpaResultGetStringListSize(names.get(), 0);
         ++index) {
      std::unique_ptr<Module> nested(
          new Module(alpaModuleCloneSubmodule(get(), index)));
      found[py::str(toString(alpaResultGetString(names.get(), 0, index)))] =
          std::move(nested);
    }
    return found;
  }

  AlpaModule *get() const { return module.get(); }

private:
  explicit Module(AlpaModule *module) : module(module, alpaModuleDestroy) {}

  std::unique_ptr<AlpaModule, decltype(&alpaModuleDestroy)> module;
};

/// A module, as text or parsed.
using Source = std::variant<std::string, const Module *>;

/// What a call of the C interface says of a module.
template <typename Report> py::dict getReport(const Source &source, Report of) {
  if (const auto *text = std::get_if<std::string>(&source)) {
    Module parsed(*text);
    return toDict(run([&] { return of(parsed.get()); }));
  }
  const Module *module = std::get<const Module *>(source);
  return toDict(run([&] { return of(module->get()); }));
}

py::dict
getStrategyGraph(const Source &source,
                 const std::vector<std::pair<std::string, int64_t>> &mesh,
                 const std::string &platform) {
  std::vector<AlpaStringRef> names;
  std::vector<int64_t> sizes;
  for (const auto &[name, size] : mesh) {
    names.push_back(toRef(name));
    sizes.push_back(size);
  }
  py::dict dict = getReport(source, [&](AlpaModule *module) {
    return alpaModuleGetStrategyGraph(module, names.data(), sizes.data(),
                                      names.size(), toRef(platform));
  });
  for (std::string prefix : {"input", "output"}) {
    std::string specs = prefix + "_spec";
    std::string offsets = specs + "_offset";
    dict[py::str(prefix + "_specs")] =
        splitSpecs(dict, specs.c_str(), offsets.c_str());
    dict.attr("pop")(specs);
    dict.attr("pop")(offsets);
  }
  dict["input_is_parameter"] =
      dict["input_is_parameter"].attr("astype")(py::dtype::of<bool>());
  for (const char *key :
       {"num_points", "num_forward_points", "num_backward_points"}) {
    dict[key] = dict[key].attr("item")();
  }
  return dict;
}

py::dict getMemory(const Source &source, const std::vector<int64_t> &donated,
                   const std::string &platform) {
  py::dict dict = getReport(source, [&](AlpaModule *module) {
    return alpaModuleGetMemory(module, donated.data(), donated.size(),
                               toRef(platform));
  });
  dict["peak_bytes"] = dict["peak_bytes"].attr("item")();
  return dict;
}

py::dict getWork(const Source &source, const std::string &platform) {
  return getReport(source, [&](AlpaModule *module) {
    return alpaModuleGetWork(module, toRef(platform));
  });
}

using Cache =
    std::unique_ptr<AlpaSolverCache, decltype(&alpaSolverCacheDestroy)>;

struct SolverCache {
  Cache cache{alpaSolverCacheCreate(), alpaSolverCacheDestroy};
};

template <typename T>
using Flat = py::array_t<T, py::array::c_style | py::array::forcecast>;

AlpaCosts toCosts(const Flat<int64_t> &sizes, const Flat<double> &nodeCosts,
                  const Flat<int64_t> &edgeNodes,
                  const Flat<double> &edgeCosts) {
  return {static_cast<size_t>(sizes.size()),
          sizes.data(),
          nodeCosts.data(),
          static_cast<size_t>(nodeCosts.size()),
          static_cast<size_t>(edgeNodes.size()) / 2,
          edgeNodes.data(),
          edgeCosts.data(),
          static_cast<size_t>(edgeCosts.size())};
}

py::dict
minimize(const Flat<int64_t> &sizes, const Flat<double> &nodeCosts,
         const Flat<int64_t> &edgeNodes, const Flat<double> &edgeCosts,
         SolverCache *cache, double timeLimit, std::optional<int64_t> maxEffort,
         std::optional<int64_t> maxTable, std::optional<int64_t> maxWork,
         std::optional<int64_t> smallTable, std::optional<int64_t> maxBranches,
         std::optional<int64_t> maxSweeps) {
  AlpaCosts costs = toCosts(sizes, nodeCosts, edgeNodes, edgeCosts);
  AlpaMinimizeOptions options = alpaMinimizeOptionsDefault();
  options.timeLimitSeconds = timeLimit;
  options.maxEffort = maxEffort.value_or(options.maxEffort);
  options.maxTable = maxTable.value_or(options.maxTable);
  options.maxWork = maxWork.value_or(options.maxWork);
  options.smallTable = smallTable.value_or(options.smallTable);
  options.maxBranches = maxBranches.value_or(options.maxBranches);
  options.maxSweeps = maxSweeps.value_or(options.maxSweeps);
  AlpaSolverCache *tables = cache ? cache->cache.get() : nullptr;
  return toDict(run([&] { return alpaMinimize(&costs, &options, tables); }));
}

void defineReport(py::module_ &module, const char *name,
                  AlpaResult *(*of)(AlpaModule *), const char *description) {
  module.def(
      name, [of](const Source &source) { return getReport(source, of); },
      py::arg("module"), description);
}

void defineModule(py::module_ &module) {
  py::class_<Module>(module, "Module", "A module that stays parsed.")
      .def(py::init<const std::string &>(), py::arg("text"))
      .def("clone", &Module::clone, "A copy, in the same context.")
      .def("run", &Module::runPipeline, py::arg("pipeline"),
           "Runs a pass pipeline; returns the remarks.")
      .def("text", &Module::getText, py::arg("generic") = true,
           py::arg("locations") = true, "The printed module.")
      .def("submodules", &Module::getSubmodules,
           "Copies of the nested modules by name.");
}

/// Passes, and what they report of a module.
void defineCompiler(py::module_ &module) {
  module.def(
      "run_pipeline", &runPipeline, py::arg("text"), py::arg("pipeline"),
      py::arg("generic") = true, py::arg("locations") = true,
      "Runs a pass pipeline; returns the module's text and the remarks.");
  module.def("strategy_graph", &getStrategyGraph, py::arg("module"),
             py::arg("mesh"), py::arg("platform") = "",
             "The strategies of a module with roles on a mesh of (name, size) "
             "axes, as a dict of arrays.");
  module.def(
      "memory", &getMemory, py::arg("module"),
      py::arg("donated") = std::vector<int64_t>(), py::arg("platform") = "",
      "Peak memory of a per-device module on a platform of jax, and what "
      "is live there.");
  defineReport(module, "communication", alpaModuleGetCommunication,
               "The collectives of a planned module.");
  defineReport(module, "product_rings", alpaModuleGetProductRings,
               "Collectives of a planned module that can be done beside "
               "products.");
  defineReport(module, "signature", alpaModuleGetSignature,
               "Mesh and boundary shardings of a planned module.");
  defineReport(module, "boundary_rule", alpaModuleGetBoundaryRule,
               "Which dimensions of the boundary go together.");
  module.def("work", &getWork, py::arg("module"), py::arg("platform") = "",
             "FLOPs and bytes of a module's operators on a platform of jax.");
}

/// Choices of stages, an entry of each array for one.
AlpaStageChoices toStageChoices(const Flat<int64_t> &firsts,
                                const Flat<int64_t> &lasts,
                                const Flat<int64_t> &sizes,
                                const Flat<int64_t> &limits,
                                const Flat<double> &times) {
  auto count = times.size();
  if (firsts.size() != count || lasts.size() != count ||
      sizes.size() != count || limits.size() != count) {
    throw CompilerError("arrays of stages differ in length");
  }
  return {static_cast<size_t>(count),
          firsts.data(),
          lasts.data(),
          sizes.data(),
          limits.data(),
          times.data()};
}

/// The programmes over stages.
void defineStageSums(py::module_ &module) {
  module.def(
      "stage_sums",
      [](const Flat<int64_t> &firsts, const Flat<int64_t> &lasts,
         const Flat<int64_t> &sizes, const Flat<int64_t> &limits,
         const Flat<double> &times, int64_t numLayers, int64_t numDevices,
         int64_t mostStages, double bound, const Flat<int64_t> &lows,
         const Flat<int64_t> &highs) {
        AlpaStageChoices choices =
            toStageChoices(firsts, lasts, sizes, limits, times);
        if (lows.size() != numLayers + 1 || highs.size() != numLayers + 1) {
          throw CompilerError("arrays of layers differ in length");
        }
        py::dict dict = toDict(run([&] {
          return alpaGetStageSums(&choices, numLayers, numDevices, mostStages,
                                  bound, lows.data(), highs.data());
        }));
        return py::object(dict["sums"]);
      },
      py::arg("firsts"), py::arg("lasts"), py::arg("sizes"), py::arg("limits"),
      py::arg("times"), py::arg("num_layers"), py::arg("num_devices"),
      py::arg("most_stages"), py::arg("bound"), py::arg("lows"),
      py::arg("highs"), "Least sums of the times of pipeline stages.");
  module.def(
      "unlike_stage_sums",
      [](const Flat<int64_t> &firsts, const Flat<int64_t> &lasts,
         const Flat<int64_t> &sizes, const Flat<int64_t> &limits,
         const Flat<double> &times, const Flat<int64_t> &parts,
         const Flat<int64_t> &sources, int64_t numLayers,
         const Flat<int64_t> &deviceCounts, int64_t mostStages) {
        AlpaStageChoices choices =
            toStageChoices(firsts, lasts, sizes, limits, times);
        if (parts.size() != times.size() || sources.size() != times.size()) {
          throw CompilerError("arrays of stages differ in length");
        }
        py::dict dict = toDict(run([&] {
          return alpaGetUnlikeStageSums(
              &choices, parts.data(), sources.data(), numLayers,
              deviceCounts.data(), static_cast<size_t>(deviceCounts.size()),
              mostStages);
        }));
        return py::object(dict["sums"]);
      },
      py::arg("firsts"), py::arg("lasts"), py::arg("sizes"), py::arg("limits"),
      py::arg("times"), py::arg("parts"), py::arg("sources"),
      py::arg("num_layers"), py::arg("device_counts"), py::arg("most_stages"),
      "Least sums of the times of pipeline stages on several parts.");
}

/// Exact minimisation over flat arrays.
void defineSolver(py::module_ &module) {
  py::class_<SolverCache>(module, "SolverCache",
                          "Tables that several calls of minimize share.")
      .def(py::init<>());
  module.def(
      "minimize", &minimize, py::arg("sizes"), py::arg("node_costs"),
      py::arg("edge_nodes"), py::arg("edge_costs"),
      py::arg("cache") = py::none(), py::arg("time_limit_s") = 1e9,
      py::arg("max_effort") = py::none(), py::arg("max_table") = py::none(),
      py::arg("max_work") = py::none(), py::arg("small_table") = py::none(),
      py::arg("max_branches") = py::none(), py::arg("max_sweeps") = py::none(),
      "Chooses per node so that the sum of node and edge costs is "
      "least.");
  module.def(
      "drop_choices",
      [](const Flat<int64_t> &sizes, const Flat<double> &nodeCosts,
         const Flat<int64_t> &edgeNodes, const Flat<double> &edgeCosts,
         double cutoff, int64_t numSweeps) {
        AlpaCosts costs = toCosts(sizes, nodeCosts, edgeNodes, edgeCosts);
        return toDict(
            run([&] { return alpaDropChoices(&costs, cutoff, numSweeps); }));
      },
      py::arg("sizes"), py::arg("node_costs"), py::arg("edge_nodes"),
      py::arg("edge_costs"), py::arg("cutoff"), py::arg("num_sweeps"),
      "Drops the choices that no plan of at most the cutoff uses.");
}

} // namespace

PYBIND11_MODULE(_core, module) {
  module.doc() = "The compiler: passes on StableHLO text, strategy graphs as "
                 "numpy arrays.";
  py::register_exception<CompilerError>(module, "CompilerError",
                                        PyExc_ValueError);
  defineModule(module);
  defineCompiler(module);
  defineStageSums(module);
  defineSolver(module);
}
