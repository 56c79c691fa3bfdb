//===- MergingRemarks.h - What merging tells the user -----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_MERGINGREMARKS_H
#define CPP_TRANSFORMS_MERGINGREMARKS_H

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/ShardingRule.h"

namespace mlir::alpa {

/// Names a custom call that nothing is known of.
void remarkOpaque(Operation *op, const ShardingRule &rule);

/// Says where a callback runs and what that moves.
void remarkCallback(CallbackOp callback);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MERGINGREMARKS_H
