//===- PaddedRewriting.cpp - Longer operators in their place --------------===//

#include "cpp/transforms/PaddedRewriting.h"

#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

void PaddedRewriting::add(Operation *op, ShardingRule rule,
                          const llvm::SmallBitVector &factors,
                          ArrayRef<int64_t> sizes) {
  auto longer = std::make_unique<Longer>();
  longer->op = op;
  longer->rule = std::move(rule);
  longer->loops.emplace(longer->rule, factors, sizes);
  operators.push_back(std::move(longer));
}

void PaddedRewriting::add(Operation *op, CutForm form) {
  auto longer = std::make_unique<Longer>();
  longer->op = op;
  longer->cut = std::move(form);
  operators.push_back(std::move(longer));
}

void PaddedRewriting::run() {
  for (const auto &longer : operators) {
    for (OpOperand &operand : longer->op->getOpOperands()) {
      Filling filling =
          longer->loops
              ? getRequiredFilling(longer->op, operand.getOperandNumber(),
                                   *longer->loops)
              : Filling::Anything;
      if (filling != Filling::Anything) {
        required.try_emplace(operand.get(), filling);
      }
    }
  }
  for (const auto &longer : operators) {
    if (longer->loops) {
      rewriteLoops(longer->op, *longer->loops);
    } else {
      rewriteCut(longer->op, longer->cut);
    }
  }
  for (const auto &longer : operators) {
    longer->op->dropAllReferences();
  }
  values.replace();
  for (const auto &longer : operators) {
    longer->op->erase();
  }
}

void PaddedRewriting::rewriteLoops(Operation *op, const LongerLoops &loops) {
  SmallVector<Value> operands;
  for (auto [index, operand, tensor] :
       llvm::enumerate(op->getOperands(), loops.rule.operands)) {
    operands.push_back(values.get(operand,
                                  loops.getShape(operand.getType(), tensor),
                                  getRequiredFilling(op, index, loops)));
  }
  OpBuilder builder(op);
  Operation *longer = padOperator(builder, op, operands, loops);
  for (auto [before, after, tensor] :
       llvm::zip(op->getResults(), longer->getResults(), loops.rule.results)) {
    values.set(before, after, keepsFilling(op, loops));
    // Filled where it is made, so that all users read the same tensor.
    if (auto it = required.find(before);
        it != required.end() && loops.getDims(tensor).any()) {
      values.get(before, loops.getShape(before.getType(), tensor), it->second);
    }
  }
}

void PaddedRewriting::rewriteCut(Operation *op, const CutForm &cut) {
  OpBuilder builder(op);
  SmallVector<Value> operands;
  for (auto [operand, shape, filling] :
       llvm::zip(op->getOperands(), cut.operands, cut.fillings)) {
    operands.push_back(values.get(operand, shape, filling));
  }
  for (auto [before, after] :
       llvm::zip(op->getResults(), createCut(builder, op, operands, cut))) {
    values.set(before, after, Filling::Anything);
  }
}

/// What stands behind the elements of a result whose elements are just moved.
Filling PaddedRewriting::keepsFilling(Operation *op,
                                      const LongerLoops &loops) const {
  bool moves = isa<stablehlo::TransposeOp, stablehlo::ReshapeOp,
                   stablehlo::BroadcastInDimOp>(op);
  bool keepsZeros = moves || isa<stablehlo::ConvertOp>(op);
  if (!keepsZeros) {
    return Filling::Anything;
  }
  Value operand = op->getOperand(0);
  Filling filling = values.getFilling(
      operand, loops.getShape(operand.getType(), loops.rule.operands[0]));
  return moves || filling == Filling::Zero ? filling : Filling::Anything;
}

} // namespace mlir::alpa
