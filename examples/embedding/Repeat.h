//===- Repeat.h - A loop of the compiler's own ----------------------------===//

#ifndef EXAMPLES_EMBEDDING_REPEAT_H
#define EXAMPLES_EMBEDDING_REPEAT_H

#include "dialects/alpa/DataFlow.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

/// `tiny.repeat(x) {count = n}`: its region `n` times, on what it made last.
struct RepeatOp : Op<RepeatOp, OpTrait::OneOperand, OpTrait::OneResult,
                     OpTrait::OneRegion, OpTrait::HasRecursiveMemoryEffects> {
  using Op::Op;
  static StringRef getOperationName() { return "tiny.repeat"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};

/// `tiny.done(x)`: what one run of the region has made.
struct DoneOp : Op<DoneOp, OpTrait::OneOperand, OpTrait::ZeroResults,
                   OpTrait::ZeroRegions, OpTrait::IsTerminator> {
  using Op::Op;
  static StringRef getOperationName() { return "tiny.done"; }
  static ArrayRef<StringRef> getAttributeNames() { return {}; }
};

/// One edge: operand, argument of the region, operand of `done`, result.
struct RepeatDataFlow
    : alpa::DataFlowOpInterface::ExternalModel<RepeatDataFlow, RepeatOp> {
  SmallVector<alpa::DataFlowEdge> getDataFlowEdges(Operation *op) const {
    Block &body = op->getRegion(0).front();
    alpa::DataFlowEdge edge;
    edge.sources = {&op->getOpOperand(0),
                    &body.getTerminator()->getOpOperand(0)};
    edge.targets = {body.getArgument(0), op->getResult(0)};
    return {edge};
  }
  std::optional<double> getRegionRuns(Operation *op) const {
    return op->getAttrOfType<IntegerAttr>("count").getInt();
  }
};

#endif // EXAMPLES_EMBEDDING_REPEAT_H
