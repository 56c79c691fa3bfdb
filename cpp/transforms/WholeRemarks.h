//===- WholeRemarks.h - What every device does by itself --------*- C++ -*-===//

#ifndef CPP_TRANSFORMS_WHOLEREMARKS_H
#define CPP_TRANSFORMS_WHOLEREMARKS_H

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

/// Names the operators of a planned function that could be split and are not,
/// where they are much of what that does, and what they cost every device.
void remarkKeptWhole(func::FuncOp function);

/// Says where a callback runs and what that moves.
void remarkCallback(CallbackOp callback);

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_WHOLEREMARKS_H
