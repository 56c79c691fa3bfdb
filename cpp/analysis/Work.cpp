//===- Work.cpp - FLOPs and memory traffic of a program -------------------===//

#include "cpp/analysis/Work.h"

#include "cpp/analysis/Entry.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "dialects/alpa/ShardingRule.h"

namespace mlir::alpa {

namespace {

void visit(Block &block, double runs, std::vector<OperatorWork> &work) {
  for (Operation &op : block.without_terminator()) {
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
      for (Region &region : op.getRegions()) {
        for (Block &inner : region) {
          visit(inner, runs * getRegionRuns(dataFlow), work);
        }
      }
      continue;
    }
    if (!hasShardingRule(&op) ||
        getOperatorRole(&op) == OperatorRole::Rematerialized) {
      continue;
    }
    ShardingRule rule = *getShardingRule(&op);
    bool leads = getOperatorRole(&op) == OperatorRole::Leader;
    double bytes = 0;
    for (auto [index, result] : llvm::enumerate(op.getResultTypes())) {
      if (!llvm::is_contained(rule.untouchedResults, index)) {
        bytes += getTensorBytes(result);
      }
    }
    std::string dtype;
    if (leads) {
      for (auto [index, operand] : llvm::enumerate(op.getOperandTypes())) {
        if (!llvm::is_contained(rule.untouchedOperands, index)) {
          bytes += getTensorBytes(operand);
        }
      }
    }
    if (rule.flops > 0 && op.getNumOperands() > 0) {
      llvm::raw_string_ostream stream(dtype);
      getElementTypeOrSelf(op.getOperand(0).getType()).print(stream);
    }
    work.push_back({runs * rule.flops, runs * bytes, dtype});
  }
}

} // namespace

FailureOr<std::vector<OperatorWork>> getWork(ModuleOp module) {
  FailureOr<func::FuncOp> entry = getEntryFunction(module);
  if (failed(entry)) {
    return failure();
  }
  std::vector<OperatorWork> work;
  visit(entry->getBody().front(), 1, work);
  return work;
}

} // namespace mlir::alpa
