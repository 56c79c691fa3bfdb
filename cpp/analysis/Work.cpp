//===- Work.cpp - FLOPs and memory traffic of a program -------------------===//

#include "cpp/analysis/Work.h"

#include "cpp/analysis/ArgumentUses.h"
#include "cpp/analysis/Entry.h"
#include "cpp/analysis/HostMoves.h"
#include "cpp/analysis/Materialization.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/ShardingRule.h"

namespace mlir::alpa {

std::string getElementName(Type type) {
  std::string name;
  llvm::raw_string_ostream stream(name);
  getElementTypeOrSelf(type).print(stream);
  return name;
}

namespace {

/// Bytes that an operator moves, and those of elements of at most 16 bits among
/// them.
struct MovedBytes {
  double all, narrow;
};

MovedBytes getBytes(Operation *op, const ShardingRule &rule,
                    const Materialization &memory) {
  SmallVector<int64_t> whole(rule.factors.size(), 1);
  MovedBytes bytes = {getInnerWork(op, rule, whole).bytes, 0};
  for (OpResult result : op->getResults()) {
    if (!llvm::is_contained(rule.untouchedResults, result.getResultNumber())) {
      double written = memory.getWrittenBytes(result);
      bytes.all += written;
      bytes.narrow += memory.isNarrow(result) ? written : 0;
    }
  }
  for (OpOperand &operand : op->getOpOperands()) {
    if (!llvm::is_contained(rule.untouchedOperands,
                            operand.getOperandNumber())) {
      bytes.all += memory.getReadBytes(operand);
      bytes.narrow += memory.getNarrowReadBytes(operand);
    }
  }
  return bytes;
}

/// Of products, the bytes of what is computed in their kernels.
using EpilogueBytes = DenseMap<Operation *, double>;

EpilogueBytes getEpilogueBytes(func::FuncOp function,
                               const Materialization &memory) {
  EpilogueBytes bytes;
  function.walk([&](Operation *op) {
    Operation *product = memory.getProduct(op);
    std::optional<ShardingRule> rule;
    if (product && (rule = getShardingRule(op))) {
      bytes[product] += getBytes(op, *rule, memory).all;
    }
  });
  return bytes;
}

/// What seconds are looked up by.
std::string getOperatorName(Operation *op) {
  return isHostMove(op) ? "host_move" : op->getName().getStringRef().str();
}

void visit(Block &block, double runs, const Materialization &memory,
           const EpilogueBytes &epilogues, std::vector<OperatorWork> &work) {
  for (Operation &op : block.without_terminator()) {
    if (auto dataFlow = dyn_cast<DataFlowOpInterface>(op)) {
      for (Region &region : op.getRegions()) {
        for (Block &inner : region) {
          visit(inner, runs * getRegionRuns(dataFlow), memory, epilogues, work);
        }
      }
      continue;
    }
    std::optional<ShardingRule> rule = getShardingRule(&op);
    if (!rule) {
      continue;
    }
    double flops = rule->flops, bytes = epilogues.lookup(&op), narrow = 0;
    if (!memory.getProduct(&op)) {
      MovedBytes own = getBytes(&op, *rule, memory);
      bytes += own.all;
      narrow = isProduct(*rule) ? 0 : own.narrow;
    }
    if (flops == 0 && bytes == 0) {
      continue;
    }
    std::string dtype = flops > 0 && op.getNumOperands() > 0
                            ? getElementName(op.getOperand(0).getType())
                            : "";
    std::optional<ProductShape> shape;
    if (isProduct(*rule)) {
      shape = getProductShape(*rule, {}, {});
    }
    for (OpOperand &operand : op.getOpOperands()) {
      if (double copied = memory.getCopiedBytes(operand)) {
        work.push_back({"copy", runs, 0, runs * copied, runs, std::nullopt,
                        ProductForm::Usual, 1, "", isSplit(&op),
                        memory.isNarrow(operand.get()) ? runs * copied : 0});
      }
    }
    work.push_back({getOperatorName(&op), runs, runs * flops, runs * bytes,
                    runs * memory.getNumKernels(&op), shape,
                    getProductForm(&op), getChannelPadding(&op, *rule, {}, {}),
                    dtype, isSplit(&op), runs * narrow});
  }
}

std::vector<OperatorWork> getWork(func::FuncOp function, Backend backend) {
  std::vector<OperatorWork> work;
  Materialization memory(function, [](BlockArgument) { return false; },
                         {.backend = backend});
  visit(function.getBody().front(), 1, memory,
        getEpilogueBytes(function, memory), work);
  return work;
}

} // namespace

bool isSplit(Operation *op) {
  auto strategy = op->getAttrOfType<StrategyAttr>(kStrategyAttrName);
  return strategy &&
         llvm::any_of(strategy.getAxes(), [](int entry) { return entry >= 0; });
}

TotalWork getTotalWork(func::FuncOp function) {
  TotalWork total;
  for (const OperatorWork &op : getWork(function, Backend::Gpu)) {
    total.flops += op.flops;
    total.bytes += op.bytes;
  }
  return total;
}

FailureOr<std::vector<OperatorWork>> getWork(ModuleOp module, Backend backend) {
  FailureOr<func::FuncOp> entry = getEntryFunction(module);
  if (failed(entry)) {
    return failure();
  }
  return getWork(*entry, backend);
}

} // namespace mlir::alpa
