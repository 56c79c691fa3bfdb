//===- Names.cpp - Readable names from locations --------------------------===//

#include "cpp/analysis/StrategyGraph.h"

namespace mlir::alpa {

std::string getScope(Location location) {
  if (auto name = dyn_cast<NameLoc>(location)) {
    return name.getName().str();
  }
  if (auto call = dyn_cast<CallSiteLoc>(location)) {
    std::string caller = getScope(call.getCaller());
    std::string callee = getScope(call.getCallee());
    if (caller.empty() || callee.empty()) {
      return caller.empty() ? callee : caller;
    }
    // The callee's own scope starts at the call.
    return StringRef(caller).rtrim('/').str() + "/" +
           StringRef(callee).rtrim('/').str();
  }
  if (auto fused = dyn_cast<FusedLoc>(location)) {
    for (Location part : fused.getLocations()) {
      std::string name = getScope(part);
      if (!name.empty()) {
        return name;
      }
    }
  }
  return {};
}

std::string getReadableName(BlockArgument argument) {
  std::string name = getScope(argument.getLoc());
  return name.empty() ? "argument " + std::to_string(argument.getArgNumber())
                      : name;
}

std::string getReadableName(Operation *op) {
  std::string scope = getScope(op->getLoc());
  return scope.empty() ? op->getName().getStringRef().str() : scope;
}

} // namespace mlir::alpa
