//===- StepAnalyses.cpp - What no mesh changes ----------------------------===//

#include "cpp/analysis/StepAnalyses.h"

#include "cpp/analysis/GradientCuts.h"
#include "dialects/alpa/Alpa.h"

namespace mlir::alpa {

bool isTransfer(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  unsigned index = argument.getArgNumber();
  return function.getArgAttr(index, kTransferAttrName) != nullptr &&
         function.getArgAttr(index, kOnceAttrName) == nullptr;
}

/// True if JAX, or who lowered the function, gives an argument away, or if it
/// is there for one micro-batch alone.
static bool isDonated(BlockArgument argument) {
  auto function = cast<func::FuncOp>(argument.getOwner()->getParentOp());
  unsigned index = argument.getArgNumber();
  return isTransfer(argument) ||
         function.getArgAttr(index, "tf.aliasing_output") != nullptr ||
         function.getArgAttr(index, kDonorAttrName) != nullptr;
}

StepAnalyses::StepAnalyses(func::FuncOp function)
    : function(function), classes(function, rules), leeway(function) {}

const Materialization &StepAnalyses::getMemory(int64_t numDevices,
                                               Backend backend) {
  bool overlaps = numDevices > 1;
  int64_t numShort = 0;
  function.walk([&](Operation *op) {
    numShort += static_cast<int64_t>(isShortColumnSum(op, numDevices));
  });
  std::unique_ptr<Materialization> &memory =
      memories[{overlaps, numShort, backend}];
  if (!memory) {
    memory = std::make_unique<Materialization>(
        function, isDonated,
        MaterializationOptions{.overlaps = overlaps,
                               .numDevices = numDevices,
                               .backend = backend});
  }
  return *memory;
}

} // namespace mlir::alpa
