//===- pipeline_fuzzer.cpp - libFuzzer on parser and passes ---------------===//
//
// Whatever the text, every call returns, with a result or an error. The first
// byte chooses what is run on the rest.
//
//===----------------------------------------------------------------------===//

#include "cpp/capi/StablehloAlpa.h"

#include <cstring>

static AlpaStringRef toRef(const char *text) {
  return {text, std::strlen(text)};
}

static void runStrategies(AlpaStringRef text) {
  AlpaStringRef names[] = {toRef("x"), toRef("y")};
  int64_t sizes[] = {2, 4};
  alpaResultDestroy(alpaGetStrategyGraph(text, names, sizes, 2));
}

static void runPipeline(AlpaStringRef text, const char *pipeline) {
  AlpaResult *result = alpaRunPipeline(text, toRef(pipeline), false, false);
  if (!alpaResultHasFailed(result)) {
    // What is printed is read again.
    runStrategies(alpaResultGetString(result, 0, 0));
  }
  alpaResultDestroy(result);
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (size == 0) {
    return 0;
  }
  AlpaStringRef text = {reinterpret_cast<const char *>(data) + 1, size - 1};
  switch (data[0] % 8) {
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
    alpaResultDestroy(alpaGetMemory(text, nullptr, 0));
    alpaResultDestroy(alpaGetCommunication(text));
    alpaResultDestroy(alpaGetWork(text));
    break;
  case 7:
    alpaResultDestroy(alpaGetSignature(text));
    alpaResultDestroy(alpaGetBoundaryRule(text));
    break;
  }
  return 0;
}
