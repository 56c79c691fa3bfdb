//===- StageExtraction.cpp - The function of one stage --------------------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/StageSlicing.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::alpa {

/// What an argument of the step is; by default the input of its number.
NamedAttribute StageSlicing::getArgumentKind(BlockArgument argument) const {
  func::FuncOp function = this->function;
  MLIRContext *context = function.getContext();
  unsigned index = argument.getArgNumber();
  for (StringRef name : {StringRef(kInputAttrName), StringRef(kBatchAttrName),
                         StringRef(kMicroBatchAttrName)}) {
    if (Attribute number = function.getArgAttr(index, name)) {
      return NamedAttribute(StringAttr::get(context, name), number);
    }
  }
  return NamedAttribute(StringAttr::get(context, kInputAttrName),
                        IntegerAttr::get(IntegerType::get(context, 64), index));
}

/// The function of one stage, as it grows.
class StageSlicing::Extraction {
public:
  Extraction(const StageSlicing &slicing, OpBuilder &builder, int64_t stage,
             StringRef name)
      : slicing(slicing), function(slicing.function), stage(stage),
        made(func::FuncOp::create(builder, function.getLoc(), name,
                                  builder.getFunctionType({}, {}))),
        body(builder.getContext()) {
    body.setInsertionPointToStart(made.addEntryBlock());
  }

  func::FuncOp run() {
    SmallVector<Operation *> order, rest;
    for (Operation &op : slicing.block.without_terminator()) {
      auto own = slicing.stages.find(&op);
      if (own == slicing.stages.end() || own->second != stage) {
        continue;
      }
      bool isUpdate = getPhase(&op) >= kApplyPhase;
      (isUpdate ? order : rest).push_back(&op);
    }
    updates.insert(order.begin(), order.end());
    for (Operation *op : rest) {
      copy(*op);
    }
    // What other stages wait for comes first.
    for (Operation *update : order) {
      if (llvm::any_of(update->getResults(), [&](Value result) {
            return slicing.transfers.contains(result);
          })) {
        copyUpdate(update);
      }
    }
    addOutputs();
    for (Operation *update : order) {
      copyUpdate(update);
    }
    finish();
    return made;
  }

private:
  struct Slot {
    NamedAttribute kind;
    /// There once per step, not once per micro-batch.
    bool once;
    /// The argument of the step, if it is one.
    BlockArgument source;
  };

  /// Results of the step, and the updates that make them, come in the order in
  /// which the stage first uses the state that they are the next value of:
  /// stages are equal whose parameters have names in another order.
  void addOutputs() {
    SmallVector<OpOperand *> open;
    for (OpOperand &operand : slicing.block.getTerminator()->getOpOperands()) {
      if (slicing.outputStages[operand.getOperandNumber()] == stage) {
        open.push_back(&operand);
      }
    }
    DenseMap<int64_t, BlockArgument> states = getStates();
    auto getState = [&](OpOperand *output) {
      return mapping.lookupOrNull(
          Value(states.lookup(output->getOperandNumber())));
    };
    while (!open.empty()) {
      // What updates use, the state of an optimizer, is used from then on.
      SmallVector<OpOperand *> used, rest;
      for (OpOperand *output : open) {
        (getState(output) ? used : rest).push_back(output);
      }
      llvm::sort(used, [&](OpOperand *a, OpOperand *b) {
        return cast<BlockArgument>(getState(a)).getArgNumber() <
               cast<BlockArgument>(getState(b)).getArgNumber();
      });
      if (used.empty()) {
        std::swap(used, rest);
      }
      for (OpOperand *output : used) {
        addOutput(*output);
      }
      open = std::move(rest);
    }
  }

  /// By number of an output the argument of which it is the next value.
  DenseMap<int64_t, BlockArgument> getStates() {
    DenseMap<int64_t, BlockArgument> states;
    for (BlockArgument argument : function.getArguments()) {
      if (auto alias = function.getArgAttrOfType<IntegerAttr>(
              argument.getArgNumber(), kAliasAttrName)) {
        states[alias.getInt()] = argument;
      }
    }
    return states;
  }

  void addOutput(OpOperand &operand) {
    unsigned index = operand.getOperandNumber();
    provide(operand.get());
    resultOfOutput[index] = results.size();
    addResult(operand.get(), kOutputAttrName, index, /*once=*/false);
  }

  /// Copies an operator behind the last micro-batch, unless that is done.
  void copyUpdate(Operation *op) {
    if (op && updates.erase(op)) {
      copy(*op);
    }
  }

  IntegerAttr getInteger(int64_t value) {
    return body.getI64IntegerAttr(value);
  }

  /// Brings a value into the stage: as an argument, or made again; an update
  /// that makes it comes first.
  void provide(Value value) {
    Operation *maker = value.getDefiningOp();
    copyUpdate(maker);
    if (mapping.contains(value)) {
      return;
    }
    if (maker && slicing.getStage(value) < 0) {
      forEachUsedValue(maker, [&](Value used) { provide(used); });
      body.clone(*maker, mapping);
      return;
    }
    mapping.map(value, made.getBody().front().addArgument(value.getType(),
                                                          value.getLoc()));
    if (auto argument = dyn_cast<BlockArgument>(value)) {
      arguments.push_back(
          {slicing.getArgumentKind(argument), /*once=*/false, argument});
    } else {
      NamedAttribute kind(body.getStringAttr(kTransferAttrName),
                          getInteger(slicing.transfers.lookup(value)));
      arguments.push_back({kind, slicing.crossesOnce(value), {}});
    }
  }

  /// Copies an operator of the stage, and returns what other stages need of it.
  void copy(Operation &op) {
    forEachUsedValue(&op, [&](Value value) { provide(value); });
    body.clone(op, mapping);
    for (Value result : op.getResults()) {
      auto number = slicing.transfers.find(result);
      if (number != slicing.transfers.end()) {
        addResult(result, kTransferAttrName, number->second,
                  slicing.crossesOnce(result));
      }
    }
  }

  void addResult(Value value, StringRef kind, int64_t number, bool once) {
    returned.push_back(mapping.lookup(value));
    results.push_back(
        {NamedAttribute(body.getStringAttr(kind), getInteger(number)),
         once,
         {}});
  }

  void finish() {
    func::ReturnOp::create(body, function.getLoc(), returned);
    made.setFunctionType(body.getFunctionType(
        made.getBody().front().getArgumentTypes(), TypeRange(returned)));
    for (auto [index, argument] : llvm::enumerate(arguments)) {
      made.setArgAttr(index, argument.kind.getName(), argument.kind.getValue());
      if (argument.once) {
        made.setArgAttr(index, kOnceAttrName, body.getUnitAttr());
      }
      if (argument.source) {
        setAlias(index, argument.source);
      }
    }
    for (auto [index, result] : llvm::enumerate(results)) {
      made.setResultAttr(index, result.kind.getName(), result.kind.getValue());
      if (result.once) {
        made.setResultAttr(index, kOnceAttrName, body.getUnitAttr());
      }
    }
    if (Attribute count = function->getAttr(kMicroBatchesAttrName)) {
      made->setAttr(kMicroBatchesAttrName, count);
    }
  }

  /// An argument whose next value is a result of the stage. Only there its
  /// memory is free.
  void setAlias(unsigned index, BlockArgument source) {
    auto alias = function.getArgAttrOfType<IntegerAttr>(source.getArgNumber(),
                                                        kAliasAttrName);
    if (!alias) {
      return;
    }
    auto result = resultOfOutput.find(alias.getInt());
    if (result != resultOfOutput.end()) {
      made.setArgAttr(index, kAliasAttrName, getInteger(result->second));
      if (Attribute donor =
              function.getArgAttr(source.getArgNumber(), kDonorAttrName)) {
        made.setArgAttr(index, kDonorAttrName, donor);
      }
    }
  }

  const StageSlicing &slicing;
  func::FuncOp function;
  int64_t stage;
  func::FuncOp made;
  OpBuilder body;
  IRMapping mapping;
  SmallVector<Slot> arguments, results;
  SmallVector<Value> returned;
  DenseMap<int64_t, int64_t> resultOfOutput;
  /// Those of the stage that are not copied yet.
  DenseSet<Operation *> updates;
};

func::FuncOp StageSlicing::slice(OpBuilder &builder, int64_t stage,
                                 StringRef name) const {
  return Extraction(*this, builder, stage, name).run();
}

} // namespace mlir::alpa
