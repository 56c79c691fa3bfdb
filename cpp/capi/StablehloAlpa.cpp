//===- StablehloAlpa.cpp - C interface of the compiler --------------------===//

#include "cpp/capi/StablehloAlpa.h"

#include "cpp/capi/BooleanElements.h"
#include "cpp/capi/Session.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::alpa;

namespace {

/// A module of a text; without an operation where it was refused.
AlpaModule parse(AlpaStringRef text, AlpaResult &result,
                 bool isPlanned = true) {
  AlpaModule module{std::make_shared<Session>(), nullptr};
  module.op = module.session->parse(toRef(text), isPlanned, result);
  return module;
}

/// What is said of a text is said of the module that it parses to.
template <typename Report>
AlpaResult *reportOn(AlpaStringRef text, Report report) {
  auto result = std::make_unique<AlpaResult>();
  AlpaModule module = parse(text, *result);
  return module.op ? report(&module) : result.release();
}

std::string print(ModuleOp module, bool isGeneric, bool hasLocations) {
  OpPrintingFlags flags;
  if (isGeneric) {
    flags.printGenericOpForm();
  }
  if (hasLocations) {
    flags.enableDebugInfo();
  }
  std::string printed;
  llvm::raw_string_ostream stream(printed);
  module.print(stream, flags);
  return unpackBooleans(printed);
}

SmallVector<ModuleOp> getNested(AlpaModule *module) {
  return llvm::to_vector(module->op->getOps<ModuleOp>());
}

std::vector<std::string> getNames(ArrayRef<ModuleOp> modules) {
  std::vector<std::string> names;
  for (ModuleOp module : modules) {
    names.push_back(module.getSymName().value_or("").str());
  }
  return names;
}

} // namespace

//===----------------------------------------------------------------------===//
// Modules
//===----------------------------------------------------------------------===//

AlpaResult *alpaModuleParse(AlpaStringRef text, AlpaModule **module) {
  auto *result = new AlpaResult();
  AlpaModule parsed = parse(text, *result);
  *module = parsed.op ? new AlpaModule(std::move(parsed)) : nullptr;
  return result;
}

AlpaModule *alpaModuleClone(AlpaModule *module) {
  std::lock_guard lock(module->session->getMutex());
  return new AlpaModule{module->session, module->op->clone()};
}

void alpaModuleDestroy(AlpaModule *module) {
  if (!module) {
    return;
  }
  {
    std::lock_guard lock(module->session->getMutex());
    module->op = nullptr;
  }
  delete module;
}

AlpaResult *alpaModuleRun(AlpaModule *module, AlpaStringRef pipeline) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  std::string errors;
  llvm::raw_string_ostream errorStream(errors);
  FailureOr<OpPassManager> parsed =
      parsePassPipeline(toRef(pipeline), errorStream);
  if (failed(parsed)) {
    module->session->fail(*result, "the pipeline does not parse: " + errors);
    return result;
  }
  PassManager manager(&module->session->getContext(),
                      parsed->getOpAnchorName());
  static_cast<OpPassManager &>(manager) = std::move(*parsed);
  module->analyses = nullptr;
  // Between passes the verifier takes a third of the time of all of them, and
  // has nothing to say that it does not say behind the last. The tests of the
  // passes have it everywhere.
  manager.enableVerifier(false);
  if (failed(manager.run(*module->op)) || failed(verify(*module->op))) {
    module->session->fail(*result, "the pipeline failed");
    return result;
  }
  result->addList("remarks", module->session->takeRemarks());
  return result;
}

AlpaResult *alpaModulePrint(AlpaModule *module, bool printGeneric,
                            bool printLocations) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  result->addList("text", {print(*module->op, printGeneric, printLocations)});
  return result;
}

AlpaResult *alpaModuleGetSubmodules(AlpaModule *module) {
  auto *result = new AlpaResult();
  std::lock_guard lock(module->session->getMutex());
  result->addList("names", getNames(getNested(module)));
  return result;
}

AlpaModule *alpaModuleCloneSubmodule(AlpaModule *module, size_t index) {
  std::lock_guard lock(module->session->getMutex());
  SmallVector<ModuleOp> nested = getNested(module);
  if (index >= nested.size()) {
    return nullptr;
  }
  return new AlpaModule{module->session, nested[index].clone()};
}

//===----------------------------------------------------------------------===//
// Texts
//===----------------------------------------------------------------------===//

AlpaResult *alpaRunPipeline(AlpaStringRef text, AlpaStringRef pipeline,
                            bool printGeneric, bool printLocations) {
  auto parsing = std::make_unique<AlpaResult>();
  StringRef passes = toRef(pipeline);
  AlpaModule module = parse(
      text, *parsing, passes.contains("inline") || passes.contains("alpa-"));
  if (!module.op) {
    return parsing.release();
  }
  AlpaResult *result = alpaModuleRun(&module, pipeline);
  if (!result->failed) {
    result->lists.insert(
        result->lists.begin(),
        {"text", {print(*module.op, printGeneric, printLocations)}});
  }
  return result;
}

AlpaResult *alpaGetStrategyGraph(AlpaStringRef text,
                                 const AlpaStringRef *axisNames,
                                 const int64_t *axisSizes, size_t numAxes,
                                 AlpaStringRef platform) {
  return reportOn(text, [&](AlpaModule *module) {
    return alpaModuleGetStrategyGraph(module, axisNames, axisSizes, numAxes,
                                      platform);
  });
}

AlpaResult *alpaGetCommunication(AlpaStringRef text) {
  return reportOn(text, alpaModuleGetCommunication);
}

AlpaResult *alpaGetProductRings(AlpaStringRef text) {
  return reportOn(text, alpaModuleGetProductRings);
}

AlpaResult *alpaGetMemory(AlpaStringRef text, const int64_t *donated,
                          size_t numDonated, AlpaStringRef platform) {
  return reportOn(text, [&](AlpaModule *module) {
    return alpaModuleGetMemory(module, donated, numDonated, platform);
  });
}

AlpaResult *alpaGetSignature(AlpaStringRef text) {
  return reportOn(text, alpaModuleGetSignature);
}

AlpaResult *alpaGetBoundaryRule(AlpaStringRef text) {
  return reportOn(text, alpaModuleGetBoundaryRule);
}

AlpaResult *alpaGetWork(AlpaStringRef text, AlpaStringRef platform) {
  return reportOn(text, [&](AlpaModule *module) {
    return alpaModuleGetWork(module, platform);
  });
}

AlpaResult *alpaGetSubmodules(AlpaStringRef text) {
  return reportOn(text, [](AlpaModule *module) {
    auto *result = new AlpaResult();
    SmallVector<ModuleOp> nested = getNested(module);
    std::vector<std::string> texts;
    for (ModuleOp one : nested) {
      // On its own: the aliases of the text around it do not reach it.
      OwningOpRef<ModuleOp> alone = one.clone();
      texts.push_back(print(*alone, /*isGeneric=*/true, /*hasLocations=*/true));
    }
    result->addList("names", getNames(nested));
    result->addList("texts", std::move(texts));
    return result;
  });
}
