//===- InnerStep.cpp - What goes through the batch in a region ------------===//

#include "cpp/transforms/InnerStep.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/StrategyGraph.h"
#include "cpp/transforms/PassLoop.h"
#include "cpp/transforms/ReferencedFunctions.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

static bool isConstant(Value value) {
  Operation *maker = value.getDefiningOp();
  return maker && matchPattern(maker, m_Constant());
}

SmallVector<Region *> getInnerSteps(Operation *op,
                                    const MicroBatchStates &states) {
  SmallVector<Region *> regions;
  bool isDifferentiated = StringRef(getScope(op->getLoc())).contains("jvp(");
  if (!states.isAfter(op) || op->hasAttr(kOnceAttrName) || isDifferentiated) {
    return regions;
  }
  auto multiplies = [](Region &region) {
    return llvm::any_of(region.getOps(), [](Operation &inner) {
      return getProductFlops(&inner) > 0;
    });
  };
  if (auto loop = dyn_cast<stablehlo::WhileOp>(op)) {
    // The condition, which turns go on by, runs as it is.
    if (!multiplies(loop.getCond()) && multiplies(loop.getBody())) {
      regions.push_back(&loop.getBody());
    }
  } else if (isa<stablehlo::CaseOp, stablehlo::IfOp>(op)) {
    for (Region &region : op->getRegions()) {
      if (multiplies(region)) {
        regions.push_back(&region);
      }
    }
  }
  return regions;
}

InnerStep::InnerStep(Block &body, const MicroBatchStates &states)
    : body(body), op(body.getParentOp()), states(states) {
  findTaken();
  findBatch();
}

void InnerStep::findTaken() {
  taken.insert(body.args_begin(), body.args_end());
  for (Operation &inner : body) {
    forEachUsedValue(&inner, [&](Value value) {
      if (value.getParentBlock() != &body && !isConstant(value)) {
        taken.insert(value);
      }
    });
  }
  for (Value value : body.getTerminator()->getOperands()) {
    if (value.getParentBlock() == &body && value.getDefiningOp()) {
      returned.insert(value);
    }
  }
}

/// A batch that turns hand on is that of the step if they leave it as it is.
void InnerStep::findBatch() {
  for (auto [index, value] : llvm::enumerate(taken)) {
    Value source = value;
    if (index < body.getNumArguments()) {
      bool isSame = body.getTerminator()->getOperand(index) == value;
      source = isSame ? op->getOperand(index) : Value();
    }
    if (source && states.getState(source) == 0) {
      batch.push_back(index);
    }
  }
}

bool InnerStep::isOfNoBatch() const {
  auto hasParts = [&](Value value) { return states.getState(value) >= 0; };
  return llvm::none_of(op->getOperands(), hasParts) &&
         llvm::none_of(taken, hasParts);
}

ModuleOp InnerStep::outline() {
  auto step = op->getParentOfType<func::FuncOp>();
  auto module = step->getParentOfType<ModuleOp>();
  OpBuilder builder(step);
  auto made = ModuleOp::create(builder, op->getLoc());
  builder.setInsertionPointToStart(made.getBody());
  auto type =
      builder.getFunctionType(TypeRange(ValueRange(taken.getArrayRef())),
                              TypeRange(ValueRange(returned.getArrayRef())));
  auto function =
      func::FuncOp::create(builder, op->getLoc(), step.getName(), type);
  Block &block = *function.addEntryBlock();
  IRMapping mapping;
  mapping.map(taken.getArrayRef(), block.getArguments());
  builder.setInsertionPointToEnd(&block);
  for (Operation &inner : body.without_terminator()) {
    forEachUsedValue(&inner, [&](Value value) {
      if (value.getParentBlock() != &body && !mapping.contains(value)) {
        builder.clone(*value.getDefiningOp(), mapping);
      }
    });
    builder.clone(inner, mapping);
  }
  func::ReturnOp::create(builder, body.getTerminator()->getLoc(),
                         llvm::map_to_vector(returned, [&](Value value) {
                           return mapping.lookup(value);
                         }));
  copyReferencedFunctions(module, made);
  return made;
}

LogicalResult InnerStep::embed(ModuleOp module) {
  FailureOr<func::FuncOp> function = getEntryFunction(module);
  if (failed(function)) {
    return failure();
  }
  auto old =
      llvm::to_vector(llvm::make_pointer_range(body.without_terminator()));
  OpBuilder builder(body.getTerminator());
  FailureOr<SmallVector<Value>> results = emitPassLoop(
      builder, *function, taken.getArrayRef(), states.getNumMicroBatches());
  if (failed(results)) {
    return failure();
  }
  for (auto [value, made] : llvm::zip_equal(returned, *results)) {
    body.getTerminator()->replaceUsesOfWith(value, made);
  }
  for (Operation *inner : llvm::reverse(old)) {
    inner->dropAllUses();
    inner->erase();
  }
  return success();
}

} // namespace mlir::alpa
