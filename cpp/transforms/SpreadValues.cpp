//===- SpreadValues.cpp - What spreads numbers over tensors ---------------===//

#include "cpp/transforms/SpreadValues.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/FusionRole.h"
#include "cpp/analysis/OperatorRoles.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// Longest chain of operators. Heuristic.
static constexpr unsigned kLongestSpread = 8;

/// True for an elementwise operator that makes a tensor at little cost.
static bool canSpread(Operation *op) {
  if (op->getNumResults() != 1 || op->getNumRegions() > 0 || !isClonable(op) ||
      isTiny(op->getResult(0).getType()) || isExpensive(op)) {
    return false;
  }
  FusionRole role = getFusionRole(op, Backend::Gpu);
  return role != FusionRole::Kernel && role != FusionRole::Root;
}

llvm::DenseSet<Value> findSpreadValues(Block &block) {
  // Steps from numbers or constants, and whether there are numbers.
  DenseMap<Value, std::pair<unsigned, bool>> found;
  llvm::DenseSet<Value> spread;
  for (Operation &op : block) {
    if (isa<stablehlo::OptimizationBarrierOp>(op)) {
      for (auto [operand, result] :
           llvm::zip_equal(op.getOperands(), op.getResults())) {
        if (spread.contains(operand)) {
          found[result] = found.lookup(operand);
          spread.insert(result);
        }
      }
      continue;
    }
    if (!canSpread(&op)) {
      continue;
    }
    unsigned depth = 0;
    bool isSpread = true, hasNumber = false;
    for (Value operand : op.getOperands()) {
      auto own = found.find(operand);
      bool isNumber = isTiny(operand.getType());
      isSpread &= isNumber || own != found.end();
      if (own != found.end()) {
        depth = std::max(depth, own->second.first);
        hasNumber |= own->second.second;
      } else if (isNumber && !matchPattern(operand, m_Constant())) {
        hasNumber = true;
      }
    }
    if (isSpread && depth < kLongestSpread) {
      found[op.getResult(0)] = {depth + 1, hasNumber};
      if (hasNumber) {
        spread.insert(op.getResult(0));
      }
    }
  }
  return spread;
}

} // namespace mlir::alpa
