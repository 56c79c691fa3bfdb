//===- Session.h - A context, and modules that live in it -------*- C++ -*-===//

#ifndef CPP_CAPI_SESSION_H
#define CPP_CAPI_SESSION_H

#include "cpp/analysis/StepAnalyses.h"
#include "cpp/capi/Result.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace mlir::alpa {

inline StringRef toRef(AlpaStringRef text) { return {text.data, text.length}; }

/// A context whose diagnostics are collected. Its mutex is held by whoever
/// works on a module in it.
class Session {
public:
  Session();

  /// The module of a text; null, and `result` says why, where it is refused.
  /// `isPlanned`: it is analysed or inlined, which needs its regions known.
  OwningOpRef<ModuleOp> parse(StringRef text, bool isPlanned,
                              AlpaResult &result);

  /// Marks a result as failed, with the diagnostics since the last failure or
  /// else with a reason.
  void fail(AlpaResult &result, const Twine &reason);

  MLIRContext &getContext() { return context; }
  std::mutex &getMutex() { return mutex; }
  std::vector<std::string> takeRemarks() {
    return std::exchange(remarks, std::vector<std::string>());
  }

private:
  void record(Diagnostic &diagnostic);

  std::mutex mutex;
  MLIRContext context{MLIRContext::Threading::DISABLED};
  std::string errors;
  std::vector<std::string> remarks;
};

} // namespace mlir::alpa

/// A module, its context shared with those that were cut from it.
struct AlpaModule {
  std::shared_ptr<mlir::alpa::Session> session;
  mlir::OwningOpRef<mlir::ModuleOp> op;
  /// Of its entry function; null until it is asked for strategies, and again
  /// once passes have run.
  std::unique_ptr<mlir::alpa::StepAnalyses> analyses = nullptr;
};

#endif // CPP_CAPI_SESSION_H
