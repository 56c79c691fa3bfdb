//===- WholeRemarks.cpp - What every device does by itself ----------------===//

#include "cpp/transforms/WholeRemarks.h"

#include "cpp/transforms/PaddedLoop.h"
#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/Support/FormatVariadic.h"
#include <algorithm>

namespace mlir::alpa {

/// Operators that do less are not worth a word: it takes a device about as long
/// to start one. Heuristic.
static constexpr double kLeastFlops = 1e6, kLeastBytes = 64 * 1024;

/// Nor are those that a plan keeps whole by choice, and are less of what the
/// step does. Heuristic.
static constexpr double kLeastShare = 0.02;

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

/// What an operator does in all its runs, as a part of what the step does. What
/// operators read of a fusion is counted less than once in the step, and so at
/// most all of it here.
static double getPart(Operation *op, double once, double step) {
  return step > 0 ? std::min(1.0, getRuns(op) * once / step) : 0;
}

/// The same in per cent.
static std::string getShare(Operation *op, double once, double step) {
  return llvm::formatv("{0:F1} %", 100 * getPart(op, once, step));
}

/// Ends a remark by what every device does.
static void describeWork(InFlightDiagnostic &remark, Operation *op,
                         double flops, double bytes, const TotalWork &step) {
  remark << "every device does " << static_cast<int64_t>(flops)
         << " FLOPs, reads and writes " << static_cast<int64_t>(bytes)
         << " bytes, " << getShare(op, flops, step.flops) << " and "
         << getShare(op, bytes, step.bytes) << " of those of the step";
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
    InFlightDiagnostic remark = op->emitRemark();
    remark << getName(op)
           << " has no dimension that can be split and is replicated: ";
    describeWork(remark, op, rule.flops, bytes, step());
  }
}

void remarkKeptWhole(func::FuncOp function) {
  std::optional<TotalWork> step;
  forEachPlanned(function.getBody().front(), [&](Operation *op) {
    // What brings values from one sharding to another does nothing itself.
    if (!op->hasAttr(kStrategyAttrName) || isSplit(op) || isa<ResolveOp>(op)) {
      return;
    }
    std::optional<ShardingRule> rule = getShardingRule(op);
    if (!rule || rule->isReplicated()) {
      return;
    }
    double bytes = getBytes(op, &*rule);
    if (rule->flops < kLeastFlops && bytes < kLeastBytes) {
      return;
    }
    step = step ? step : getTotalWork(function);
    if (getPart(op, rule->flops, step->flops) < kLeastShare &&
        getPart(op, bytes, step->bytes) < kLeastShare) {
      return;
    }
    InFlightDiagnostic remark = op->emitRemark();
    remark << getName(op)
           << " can be split and is not, for what that would move or what is "
              "prescribed: ";
    describeWork(remark, op, rule->flops, bytes, *step);
  });
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
