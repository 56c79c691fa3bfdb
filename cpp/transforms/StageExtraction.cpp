//===- StageExtraction.cpp - The function of one stage --------------------===//

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/StageSlicing.h"
#include "dialects/alpa/Alpa.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::alpa {

/// What an argument of the step is; by default the input of its number.
NamedAttribute StageSlicing::getArgumentKind(BlockArgument argument) {
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

func::FuncOp StageSlicing::slice(OpBuilder &builder, int64_t stage,
                                 StringRef name) {
  MLIRContext *context = function.getContext();
  auto getInteger = [&](int64_t value) {
    return IntegerAttr::get(IntegerType::get(context, 64), value);
  };
  auto made = func::FuncOp::create(builder, function.getLoc(), name,
                                   FunctionType::get(context, {}, {}));
  OpBuilder body(context);
  body.setInsertionPointToStart(made.addEntryBlock());
  Block &target = made.getBody().front();
  IRMapping mapping;
  auto once = UnitAttr::get(context);
  SmallVector<NamedAttribute> argumentKinds;
  SmallVector<BlockArgument> sources;
  SmallVector<unsigned> onceArguments, onceResults;
  std::function<void(Value)> provide = [&](Value value) {
    if (mapping.contains(value)) {
      return;
    }
    Operation *maker = value.getDefiningOp();
    if (!maker || getStage(value) >= 0) {
      mapping.map(value, target.addArgument(value.getType(), value.getLoc()));
      if (auto argument = dyn_cast<BlockArgument>(value)) {
        argumentKinds.push_back(getArgumentKind(argument));
        sources.push_back(argument);
      } else {
        sources.push_back({});
        if (crossesOnce(value)) {
          onceArguments.push_back(argumentKinds.size());
        }
        argumentKinds.emplace_back(StringAttr::get(context, kTransferAttrName),
                                   getInteger(transfers.lookup(value)));
      }
      return;
    }
    forEachUsedValue(maker, provide);
    body.clone(*maker, mapping);
  };
  SmallVector<Value> results;
  SmallVector<NamedAttribute> resultKinds;
  for (Operation &op : block.without_terminator()) {
    auto own = stages.find(&op);
    if (own == stages.end() || own->second != stage) {
      continue;
    }
    forEachUsedValue(&op, provide);
    body.clone(op, mapping);
    for (Value result : op.getResults()) {
      if (auto number = transfers.find(result); number != transfers.end()) {
        if (crossesOnce(result)) {
          onceResults.push_back(results.size());
        }
        results.push_back(mapping.lookup(result));
        resultKinds.emplace_back(StringAttr::get(context, kTransferAttrName),
                                 getInteger(number->second));
      }
    }
  }
  DenseMap<int64_t, int64_t> resultOfOutput;
  for (auto [index, value] :
       llvm::enumerate(block.getTerminator()->getOperands())) {
    if (outputStages[index] != stage) {
      continue;
    }
    provide(value);
    resultOfOutput[index] = results.size();
    results.push_back(mapping.lookup(value));
    resultKinds.emplace_back(StringAttr::get(context, kOutputAttrName),
                             getInteger(index));
  }
  func::ReturnOp::create(body, function.getLoc(), results);
  SmallVector<Type> resultTypes;
  for (Value result : results) {
    resultTypes.push_back(result.getType());
  }
  made.setFunctionType(
      FunctionType::get(context, target.getArgumentTypes(), resultTypes));
  for (auto [index, kind] : llvm::enumerate(argumentKinds)) {
    made.setArgAttr(index, kind.getName(), kind.getValue());
    if (!sources[index]) {
      continue;
    }
    if (auto alias = function.getArgAttrOfType<IntegerAttr>(
            sources[index].getArgNumber(), kAliasAttrName)) {
      auto result = resultOfOutput.find(alias.getInt());
      if (result != resultOfOutput.end()) {
        made.setArgAttr(index, kAliasAttrName, getInteger(result->second));
      }
    }
  }
  for (auto [index, kind] : llvm::enumerate(resultKinds)) {
    made.setResultAttr(index, kind.getName(), kind.getValue());
  }
  for (unsigned index : onceArguments) {
    made.setArgAttr(index, kOnceAttrName, once);
  }
  for (unsigned index : onceResults) {
    made.setResultAttr(index, kOnceAttrName, once);
  }
  if (Attribute count = function->getAttr(kMicroBatchesAttrName)) {
    made->setAttr(kMicroBatchesAttrName, count);
  }
  return made;
}

} // namespace mlir::alpa
