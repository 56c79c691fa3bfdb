//===- MergingRemarks.h - What merging tells the user -----------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_MERGINGREMARKS_H
#define CPP_TRANSFORMS_MERGINGREMARKS_H

#include "cpp/analysis/Work.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/ShardingRule.h"

namespace mlir::alpa {

/// Names an operator that nothing is known of, and what it costs every device.
///
/// \param step what that does of which it is a part.
void remarkUnknown(Operation *op, function_ref<TotalWork()> step);

/// Names an operator by whose rule nothing can be split, and what it costs
/// every device; says nothing of those that cost next to nothing.
///
/// \param step what that does of which it is a part.
void remarkWhole(Operation *op, const ShardingRule &rule,
                 function_ref<TotalWork()> step);

/// Says where a callback runs and what that moves.
void remarkCallback(CallbackOp callback);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_MERGINGREMARKS_H
