//===- MergingRemarks.cpp - What merging tells the user -------------------===//

#include "cpp/transforms/MergingRemarks.h"

#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

void remarkOpaque(Operation *op, const ShardingRule &rule) {
  auto call = dyn_cast<stablehlo::CustomCallOp>(op);
  if (call && rule.isReplicated()) {
    op->emitRemark() << "'" << op->getName() << "' @"
                     << call.getCallTargetName()
                     << " has no sharding rule and is replicated";
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
