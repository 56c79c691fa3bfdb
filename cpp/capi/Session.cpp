//===- Session.cpp - A context, and modules that live in it ---------------===//

#include "cpp/capi/Session.h"

#include "cpp/analysis/Guards.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/capi/BooleanElements.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/ImportManual.h"
#include "passes/Passes.h"
#include "llvm/Support/raw_ostream.h"
#include <mutex>

using namespace mlir;
using namespace mlir::alpa;

/// Passes are looked up by name in a registry of the process.
static void registerPassesOnce() {
  static std::once_flag once;
  std::call_once(once, [] {
    registerAlpaPasses();
    registerAlpaPipelines();
    registerTransformsPasses();
  });
}

Session::Session() {
  registerPassesOnce();
  DialectRegistry registry;
  registerAlpaDialects(registry);
  context.appendDialectRegistry(registry);
  context.loadAllAvailableDialects();
  context.allowUnregisteredDialects();
  // To print an operator numbers and verifies the whole module, for a note that
  // `record` leaves out.
  context.printOpOnDiagnostic(false);
  context.getDiagEngine().registerHandler(
      [this](Diagnostic &diagnostic) { record(diagnostic); });
}

OwningOpRef<ModuleOp> Session::parse(StringRef text, bool isPlanned,
                                     AlpaResult &result) {
  // MLIR's lexer reads up to a terminator, which the caller's text lacks.
  std::string source = packBooleans(text);
  if (std::string reason = getReasonToRefuse(source); !reason.empty()) {
    fail(result, "the module does not parse: " + reason);
    return nullptr;
  }
  // Calls in the body of an operator that is not known have no valid callee:
  // verified once Shardy's manual computations are known.
  ParserConfig config(&context, /*verifyAfterParse=*/false);
  auto module = parseSourceString<ModuleOp>(source, config, "module");
  if (!module || (isPlanned ? importManual(*module) : success()).failed() ||
      verify(*module).failed()) {
    fail(result, "the module does not parse");
    return nullptr;
  }
  if (isPlanned && refuseUnknownRegions(*module).failed()) {
    fail(result, "the module cannot be planned");
    return nullptr;
  }
  return module;
}

void Session::fail(AlpaResult &result, const Twine &reason) {
  result.failed = true;
  result.error = errors.empty() ? reason.str() : errors;
  errors.clear();
}

void Session::record(Diagnostic &diagnostic) {
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
  // Notes, which mostly say where something else is, are left out.
  if (diagnostic.getSeverity() == DiagnosticSeverity::Error) {
    errors += (errors.empty() ? "" : "\n") + text;
  } else {
    remarks.push_back(text);
  }
}
