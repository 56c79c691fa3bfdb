//===- PhaseFunction.cpp - The program of a phase, as it grows ------------===//

#include "cpp/transforms/PhaseFunction.h"

namespace mlir::alpa {

PhaseFunction::PhaseFunction(OpBuilder &builder, ModuleOp source, Location loc,
                             StringRef name)
    : module(ModuleOp::create(builder, loc, name)), body(source.getContext()) {
  module->setAttr(kMeshAttrName, source->getAttr(kMeshAttrName));
  body.setInsertionPointToStart(module.getBody());
  function = func::FuncOp::create(
      body, loc, "main", FunctionType::get(source.getContext(), {}, {}));
  body.setInsertionPointToStart(function.addEntryBlock());
}

Value PhaseFunction::addArgument(Value like, Kind kind, ShardingAttr sharding) {
  arguments.push_back({kind, sharding});
  return function.getBody().front().addArgument(like.getType(), like.getLoc());
}

void PhaseFunction::mapToArgument(Value value, Kind kind,
                                  ShardingAttr sharding) {
  mapping.map(value, addArgument(value, kind, sharding));
}

void PhaseFunction::addResult(Value value, Kind kind, ShardingAttr sharding) {
  returned.push_back(value);
  results.push_back({kind, sharding});
}

void PhaseFunction::replaceResult(Value before, Value value) {
  llvm::replace(returned, before, value);
}

void PhaseFunction::finish() {
  auto exit = func::ReturnOp::create(body, function.getLoc(), returned);
  SmallVector<Attribute> shardings;
  for (const Entry &result : results) {
    shardings.push_back(result.sharding);
  }
  exit->setAttr(kOperandsAttrName, body.getArrayAttr(shardings));
  exit->setAttr(kResultsAttrName, body.getArrayAttr({}));
  function.setFunctionType(body.getFunctionType(
      function.getBody().front().getArgumentTypes(), exit.getOperandTypes()));
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    function.setArgAttr(index, argument.kind.name,
                        body.getI64IntegerAttr(argument.kind.number));
    function.setArgAttr(index, kShardingAttrName, argument.sharding);
  }
  for (auto [index, result] : llvm::enumerate(results)) {
    function.setResultAttr(index, result.kind.name,
                           body.getI64IntegerAttr(result.kind.number));
    function.setResultAttr(index, kShardingAttrName, result.sharding);
  }
}

} // namespace mlir::alpa
