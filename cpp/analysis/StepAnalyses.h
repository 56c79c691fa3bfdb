//===- StepAnalyses.h - What no mesh changes --------------------*- C++ -*-===//

#ifndef CPP_ANALYSIS_STEPANALYSES_H
#define CPP_ANALYSIS_STEPANALYSES_H

#include "cpp/analysis/DimensionClasses.h"
#include "cpp/analysis/Leeway.h"
#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/OperatorRules.h"
#include <map>
#include <memory>

namespace mlir::alpa {

/// What is known of a function whatever the mesh that it is planned for: made
/// once for all of them. Holds as long as the function does not change.
class StepAnalyses {
public:
  explicit StepAnalyses(func::FuncOp function);

  OperatorRules &getRules() { return rules; }
  const DimensionClasses &getClasses() const { return classes; }
  const Leeway &getLeeway() const { return leeway; }
  /// What is stored on a mesh of so many devices.
  const Materialization &getMemory(int64_t numDevices, Backend backend);

private:
  func::FuncOp function;
  OperatorRules rules;
  DimensionClasses classes;
  Leeway leeway;
  /// Without and with communication that runs beside, by how many sums are
  /// short on the devices, and backend: the order depends on that alone.
  std::map<std::tuple<bool, int64_t, Backend>, std::unique_ptr<Materialization>>
      memories;
};

/// True if another stage sends an argument with every micro-batch.
bool isTransfer(BlockArgument argument);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_STEPANALYSES_H
