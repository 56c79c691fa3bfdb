//===- MergingRemarks.cpp - What merging tells the user -------------------===//

#include "cpp/transforms/MergingRemarks.h"

#include "cpp/transforms/PaddedLoop.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

namespace mlir::alpa {

/// Operators that do less are not worth a word: it takes a device about as long
/// to start one. Heuristic.
static constexpr double kLeastFlops = 1e6, kLeastBytes = 64 * 1024;

/// The operator as a user knows it.
static std::string getName(Operation *op) {
  std::string name = "'" + op->getName().getStringRef().str() + "'";
  if (auto call = dyn_cast<stablehlo::CustomCallOp>(op)) {
    name += " @" + call.getCallTargetName().str();
    // Kernels that authors split are all calls of one target.
    auto config = dyn_cast_or_null<DictionaryAttr>(call.getBackendConfigAttr());
    auto own = config ? config.getAs<StringAttr>("name") : nullptr;
    name += own ? " '" + own.str() + "'" : "";
  }
  return name;
}

/// What the operator reads and writes when it is computed whole.
static double getBytes(Operation *op, const ShardingRule *rule) {
  double bytes = 0;
  for (auto [index, type] : llvm::enumerate(op->getOperandTypes())) {
    bool isTouched =
        !rule || !llvm::is_contained(rule->untouchedOperands, index);
    bytes += isTouched ? getTensorBytes(type) : 0;
  }
  for (auto [index, type] : llvm::enumerate(op->getResultTypes())) {
    bool isTouched =
        !rule || !llvm::is_contained(rule->untouchedResults, index);
    bytes += isTouched ? getTensorBytes(type) : 0;
  }
  return bytes;
}

/// Per cent of what the step does in all its runs. What operators read of a
/// fusion is counted less than once in the step, and so at most all of it here.
static std::string getShare(Operation *op, double once, double step) {
  double share = step > 0 ? std::min(1.0, getRuns(op) * once / step) : 0;
  return llvm::formatv("{0:F1} %", 100 * share);
}

void remarkUnknown(Operation *op, function_ref<TotalWork()> step) {
  double bytes = getBytes(op, nullptr);
  op->emitRemark() << getName(op)
                   << " has no sharding rule and is replicated: every device "
                      "reads and writes "
                   << static_cast<int64_t>(bytes) << " bytes, "
                   << getShare(op, bytes, step().bytes)
                   << " of those of the step";
}

void remarkWhole(Operation *op, const ShardingRule &rule,
                 function_ref<TotalWork()> step) {
  double bytes = getBytes(op, &rule);
  // Of what a kernel does it is known how much, or nothing.
  if (isa<stablehlo::CustomCallOp>(op) && rule.flops == 0) {
    remarkUnknown(op, step);
  } else if (rule.flops >= kLeastFlops || bytes >= kLeastBytes) {
    op->emitRemark() << getName(op)
                     << " has no dimension that can be split and is "
                        "replicated: every device does "
                     << static_cast<int64_t>(rule.flops)
                     << " FLOPs, reads and writes "
                     << static_cast<int64_t>(bytes) << " bytes, "
                     << getShare(op, rule.flops, step().flops) << " and "
                     << getShare(op, bytes, step().bytes)
                     << " of those of the step";
  }
}

void remarkCallback(CallbackOp callback) {
  double taken = 0, given = 0;
  unsigned numTokens = callback.getOrdered() ? 1 : 0;
  for (Value operand : callback.getOperands().drop_front(numTokens)) {
    taken += getTensorBytes(operand.getType());
  }
  for (Value result : callback.getResults().drop_front(numTokens)) {
    given += getTensorBytes(result.getType());
  }
  callback.emitRemark() << "callback '" << callback.getName()
                        << "' runs on the first device: "
                        << static_cast<int64_t>(taken)
                        << " bytes are gathered there, "
                        << static_cast<int64_t>(given)
                        << " bytes come back to all devices";
}

} // namespace mlir::alpa
