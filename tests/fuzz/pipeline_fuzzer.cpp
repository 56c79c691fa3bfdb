//===- pipeline_fuzzer.cpp - libFuzzer on parser and passes ---------------===//
//
// Whatever the text, every call returns, with a result or an error. The first
// byte chooses what is run on the rest.
//
//===----------------------------------------------------------------------===//

#include "cpp/capi/StablehloAlpa.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

static AlpaStringRef toRef(const char *text) {
  return {text, std::strlen(text)};
}

static void runStrategies(AlpaStringRef text) {
  AlpaStringRef names[] = {toRef("x"), toRef("y")};
  int64_t sizes[] = {2, 4};
  alpaResultDestroy(alpaGetStrategyGraph(text, names, sizes, 2, {"", 0}));
}

static void runPipeline(AlpaStringRef text, const char *pipeline) {
  AlpaResult *result = alpaRunPipeline(text, toRef(pipeline), false, false);
  if (!alpaResultHasFailed(result)) {
    // What is printed is read again.
    runStrategies(alpaResultGetString(result, 0, 0));
  }
  alpaResultDestroy(result);
}

//===----------------------------------------------------------------------===//
// From a text to the programs of its devices
//===----------------------------------------------------------------------===//

/// The module that a pipeline makes; empty if it was refused.
static std::string run(const std::string &text, const std::string &pipeline) {
  AlpaResult *result =
      alpaRunPipeline({text.data(), text.size()},
                      {pipeline.data(), pipeline.size()}, false, false);
  std::string made;
  if (!alpaResultHasFailed(result)) {
    AlpaStringRef printed = alpaResultGetString(result, 0, 0);
    made.assign(printed.data, printed.length);
  }
  alpaResultDestroy(result);
  return made;
}

/// Rows of the first array, one more than there are nodes: where the strategies
/// of each begin.
static const int64_t *getOffsets(const AlpaResult *graph, size_t &numNodes) {
  for (size_t i = 0; i < alpaResultGetNumArrays(graph); ++i) {
    AlpaArrayRef array = alpaResultGetArray(graph, i);
    if (std::string(array.name.data, array.name.length) == "node_offset") {
      numNodes = array.rows - 1;
      return static_cast<const int64_t *>(array.data);
    }
  }
  return nullptr;
}

/// A plan of a module with roles: of every node the strategy that `seed` says.
static std::string plan(const std::string &merged, unsigned seed) {
  AlpaStringRef names[] = {toRef("x"), toRef("y")};
  int64_t sizes[] = {2, 2};
  AlpaResult *graph = alpaGetStrategyGraph({merged.data(), merged.size()},
                                           names, sizes, 2, {"", 0});
  std::string planned;
  size_t numNodes = 0;
  const int64_t *offsets =
      alpaResultHasFailed(graph) ? nullptr : getOffsets(graph, numNodes);
  if (offsets) {
    std::string solution;
    for (size_t node = 0; node < numNodes; ++node) {
      seed = seed * 1664525u + 1013904223u;
      int64_t count = offsets[node + 1] - offsets[node];
      solution += (node > 0 ? "," : "") +
                  std::to_string((seed >> 8) % std::max<int64_t>(count, 1));
    }
    planned = run(merged, "builtin.module(alpa-plan-pipeline{mesh=x:2,y:2 "
                          "solution=" +
                              solution + "})");
  }
  alpaResultDestroy(graph);
  return planned;
}

/// What every nested module of a text is.
static std::vector<std::string> getSubmodules(const std::string &text) {
  std::vector<std::string> found;
  AlpaResult *result = alpaGetSubmodules({text.data(), text.size()});
  if (!alpaResultHasFailed(result)) {
    for (size_t i = 0; i < alpaResultGetStringListSize(result, 1); ++i) {
      AlpaStringRef one = alpaResultGetString(result, 1, i);
      found.emplace_back(one.data, one.length);
    }
  }
  alpaResultDestroy(result);
  return found;
}

static const char *const kSpmd = "builtin.module(alpa-spmd-pipeline,"
                                 "alpa-order-gradients,alpa-compare-maxima)";

/// One program of one mesh.
static void compileWhole(const std::string &text) {
  std::string merged = run(text, "builtin.module(alpa-prepare-pipeline)");
  if (!merged.empty()) {
    run(plan(merged, text.size()), kSpmd);
  }
}

/// Two micro-batches, a stage per layer, a program per phase.
static void compileStages(const std::string &text, const char *stages) {
  std::string layered =
      run(text, "builtin.module(alpa-layers-pipeline{micro-batches=2})");
  if (layered.empty()) {
    return;
  }
  std::string sliced =
      run(layered, std::string("builtin.module(alpa-slice-stages{stages=") +
                       stages + "})");
  for (const std::string &stage : getSubmodules(sliced)) {
    std::string merged = run(stage, "builtin.module(alpa-stage-pipeline)");
    std::string split =
        run(plan(merged, text.size()),
            "builtin.module(alpa-split-phases{split-backward=true})");
    for (const std::string &phase : getSubmodules(split)) {
      run(phase, kSpmd);
    }
  }
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) {
    return 0;
  }
  AlpaStringRef text = {reinterpret_cast<const char *>(data) + 1, size - 1};
  std::string whole(text.data, text.length);
  switch (data[0] % 16) {
  case 0:
    runPipeline(text, "builtin.module(alpa-prepare-pipeline{axes=x,y})");
    break;
  case 1:
    runPipeline(text, "builtin.module(alpa-layers-pipeline{batch=0 "
                      "micro-batches=2})");
    break;
  case 2:
    runPipeline(text, "builtin.module(alpa-insert-reshards,"
                      "alpa-optimize-collectives,alpa-spmd-pipeline)");
    break;
  case 3:
    runPipeline(text, "builtin.module(alpa-export-shardings)");
    break;
  case 4:
    runPipeline(text, "builtin.module(alpa-merge-operators)");
    break;
  case 5:
    runStrategies(text);
    break;
  case 6:
    alpaResultDestroy(alpaGetMemory(text, nullptr, 0, {"", 0}));
    alpaResultDestroy(alpaGetCommunication(text));
    alpaResultDestroy(alpaGetProductRings(text));
    alpaResultDestroy(alpaGetWork(text, {"", 0}));
    break;
  case 7:
    alpaResultDestroy(alpaGetSignature(text));
    alpaResultDestroy(alpaGetBoundaryRule(text));
    break;
  case 8:
    compileWhole(whole);
    break;
  case 9:
    compileStages(whole, "0");
    break;
  case 10:
    compileStages(whole, "0,1");
    break;
  case 11:
    runPipeline(text, "builtin.module(alpa-import-rules,alpa-print-sharding-"
                      "rules{as-attributes},alpa-merge-operators)");
    break;
  case 12:
    runPipeline(text, "builtin.module(alpa-verify-plan)");
    break;
  }
  return 0;
}
