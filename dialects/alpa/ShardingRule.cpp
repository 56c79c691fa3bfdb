//===- ShardingRule.cpp - An operator as a loop nest ----------------------===//

#include "dialects/alpa/ShardingRule.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/MathExtras.h"

#include "dialects/alpa/ShardingRuleInterface.cpp.inc"

namespace mlir::alpa {

unsigned ShardingRule::addFactor(int64_t size, FactorKind kind,
                                 ReductionKind reduction) {
  factors.push_back({size, kind, reduction});
  return factors.size() - 1;
}

/// Shape of a static ranked tensor; empty for everything else, which is never
/// split.
static ArrayRef<int64_t> getStaticShape(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() ? tensor.getShape()
                                           : ArrayRef<int64_t>();
}

ShardingRule ShardingRule::replicated(Operation *op) {
  ShardingRule rule;
  auto addTensor = [&](Type type) {
    TensorFactors dims;
    for (int64_t size : getStaticShape(type)) {
      dims.push_back({rule.addFactor(size, FactorKind::Replicated)});
    }
    return dims;
  };
  for (Value operand : op->getOperands()) {
    rule.operands.push_back(addTensor(operand.getType()));
  }
  for (Value result : op->getResults()) {
    rule.results.push_back(addTensor(result.getType()));
  }
  return rule;
}

ShardingRule ShardingRule::pointwise(Operation *op) {
  if (op->getNumResults() == 0) {
    return replicated(op);
  }
  ArrayRef<int64_t> shape = getStaticShape(op->getResult(0).getType());
  ShardingRule rule;
  TensorFactors dims;
  for (int64_t size : shape) {
    dims.push_back({rule.addFactor(size, FactorKind::Parallel)});
  }
  for (Value operand : op->getOperands()) {
    ArrayRef<int64_t> operandShape = getStaticShape(operand.getType());
    if (operandShape == shape) {
      rule.operands.push_back(dims);
    } else if (operandShape.empty()) {
      rule.operands.emplace_back();
    } else {
      return replicated(op);
    }
  }
  for (Value result : op->getResults()) {
    if (getStaticShape(result.getType()) != shape) {
      return replicated(op);
    }
    rule.results.push_back(dims);
  }
  return rule;
}

LogicalResult ShardingRule::verify(Operation *op) const {
  auto verifyTensors = [&](auto types, auto &tensors,
                           StringRef kind) -> LogicalResult {
    if (tensors.size() != llvm::range_size(types)) {
      return op->emitOpError()
             << "sharding rule names " << tensors.size() << " " << kind
             << "s, the operator has " << llvm::range_size(types);
    }
    for (auto [index, type, dims] : llvm::enumerate(types, tensors)) {
      ArrayRef<int64_t> shape = getStaticShape(type);
      if (dims.size() != shape.size()) {
        return op->emitOpError()
               << "sharding rule gives " << kind << " " << index << " "
               << dims.size() << " dimensions, it has " << shape.size();
      }
      for (auto [dim, size, dimFactors] : llvm::enumerate(shape, dims)) {
        int64_t product = 1;
        for (unsigned factor : dimFactors) {
          if (factor >= factors.size()) {
            return op->emitOpError() << "sharding rule names factor " << factor
                                     << " of " << factors.size();
          }
          product *= factors[factor].size;
        }
        if (!dimFactors.empty() && product != size) {
          return op->emitOpError()
                 << "sharding rule makes dimension " << dim << " of " << kind
                 << " " << index << " of size " << product << ", it has size "
                 << size;
        }
      }
    }
    return success();
  };
  return failure(
      failed(verifyTensors(op->getOperandTypes(), operands, "operand")) ||
      failed(verifyTensors(op->getResultTypes(), results, "result")));
}

Type LocalContext::getIndexType(unsigned factor) const {
  return builder.getIntegerType(
      llvm::isInt<32>(rule.factors[factor].size) ? 32 : 64);
}

SmallVector<Value> cloneLocal(Operation *op, LocalContext &context) {
  OpBuilder &builder = context.getBuilder();
  IRMapping mapping;
  mapping.map(op->getOperands(), context.getOperands());
  Operation *local = builder.clone(*op, mapping);
  // One value may be used twice with two shardings.
  local->setOperands(context.getOperands());
  for (auto [result, type] :
       llvm::zip(local->getResults(), context.getResultTypes())) {
    result.setType(type);
  }
  return llvm::to_vector_of<Value>(local->getResults());
}

} // namespace mlir::alpa
