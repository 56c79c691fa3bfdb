//===- Elements.cpp - Elements of tensors ---------------------------------===//

#include "dialects/alpa/Elements.h"

#include "mlir/Dialect/Quant/IR/QuantTypes.h"
#include "mlir/IR/TypeUtilities.h"

namespace mlir::alpa {

bool hasSplittableElements(Type type) {
  return isa<IntegerType, FloatType, ComplexType, quant::UniformQuantizedType>(
      getElementTypeOrSelf(type));
}

static bool splits(const ShardingRule &rule, const TensorFactors &tensor) {
  return llvm::any_of(tensor, [&](const DimFactors &dim) {
    return llvm::any_of(dim, [&](unsigned number) {
      const Factor &factor = rule.factors[number];
      return factor.size > 1 && factor.kind != FactorKind::Replicated;
    });
  });
}

std::string findSplitElements(const ShardingRule &rule, Operation *op) {
  std::string found;
  auto find = [&](TypeRange types, ArrayRef<TensorFactors> tensors,
                  StringRef kind) {
    for (auto [index, type, tensor] : llvm::enumerate(types, tensors)) {
      if (found.empty() && !hasSplittableElements(type) &&
          splits(rule, tensor)) {
        llvm::raw_string_ostream(found)
            << kind << " " << index << ", whose elements '"
            << getElementTypeOrSelf(type) << "' devices cannot exchange";
      }
    }
  };
  find(op->getOperandTypes(), rule.operands, "operand");
  find(op->getResultTypes(), rule.results, "result");
  return found;
}

} // namespace mlir::alpa
