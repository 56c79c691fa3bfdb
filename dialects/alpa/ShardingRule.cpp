//===- ShardingRule.cpp - An operator as a loop nest ----------------------===//

#include "dialects/alpa/ShardingRule.h"

#include "dialects/alpa/Elements.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/ADT/SmallBitVector.h"
#include "llvm/ADT/bit.h"
#include "llvm/Support/MathExtras.h"
#include <cmath>
#include <functional>

#include "dialects/alpa/ShardingRuleInterface.cpp.inc"

namespace mlir::alpa {

bool Factor::canSplit(int64_t numBlocks) const {
  if (numBlocks == 1) {
    return true;
  }
  if (kind != FactorKind::Sorted) {
    return size % numBlocks == 0;
  }
  int64_t length = size / numBlocks, others = numBlocks - 1;
  return size % (numBlocks * numBlocks) == 0 && length >= 2 * others * others;
}

unsigned ShardingRule::addFactor(int64_t size, FactorKind kind,
                                 ReductionKind reduction, bool isWindowed) {
  factors.push_back({size, kind, reduction, isWindowed});
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

bool ShardingRule::isReplicated() const {
  return llvm::all_of(factors, [](const Factor &factor) {
    return factor.kind == FactorKind::Replicated || factor.size == 1;
  });
}

bool ShardingRule::isRestrictionOf(const ShardingRule &other) const {
  auto restricts = [](const Factor &mine, const Factor &own) {
    return mine == own ||
           (mine.size == own.size && mine.kind == FactorKind::Replicated);
  };
  return factors.size() == other.factors.size() &&
         llvm::all_of_zip(factors, other.factors, restricts) &&
         operands == other.operands && results == other.results &&
         accumulators == other.accumulators && hasLinearSetsOf(other);
}

bool ShardingRule::hasLinearSetsOf(const ShardingRule &other) const {
  return llvm::all_of(llvm::enumerate(linearOperands), [&](auto mine) {
    return llvm::any_of(llvm::enumerate(other.linearOperands), [&](auto own) {
      return mine.value() == own.value() &&
             (isAlgebraic(mine.index()) || !other.isAlgebraic(own.index()));
    });
  });
}

bool ShardingRule::isAlgebraic(unsigned set) const {
  return llvm::is_contained(algebraicSets, set);
}

//===----------------------------------------------------------------------===//
// Sizes
//===----------------------------------------------------------------------===//

bool ShardingRule::resolveSizes(Operation *op) {
  bool isChanged = true;
  auto resolve = [&](const TensorFactors &tensor, Type type) {
    for (auto [dim, size] : llvm::zip(tensor, getStaticShape(type))) {
      int64_t known = 1;
      Factor *unknown = nullptr;
      unsigned numUnknown = 0;
      for (unsigned factor : dim) {
        if (factors[factor].size == kUnknownSize) {
          unknown = &factors[factor];
          ++numUnknown;
        } else if (llvm::MulOverflow(known, factors[factor].size, known)) {
          return;
        }
      }
      if (numUnknown == 1 && known > 0 && size % known == 0) {
        unknown->size = size / known;
        isChanged = true;
      }
    }
  };
  while (isChanged) {
    isChanged = false;
    for (auto [tensor, type] : llvm::zip(operands, op->getOperandTypes())) {
      resolve(tensor, type);
    }
    for (auto [tensor, type] : llvm::zip(results, op->getResultTypes())) {
      resolve(tensor, type);
    }
  }
  return llvm::all_of(factors, [](const Factor &factor) {
    return factor.size != kUnknownSize;
  });
}

//===----------------------------------------------------------------------===//
// Verification
//===----------------------------------------------------------------------===//

/// The factors of a tensor as a set; `isRepeated` tells whether one is there
/// twice, or is none of those that there are.
static llvm::SmallBitVector getFactorsOf(const TensorFactors &tensor,
                                         size_t numFactors, bool &isRepeated) {
  llvm::SmallBitVector set(numFactors);
  for (const DimFactors &dim : tensor) {
    for (unsigned factor : dim) {
      if (factor >= numFactors || set.test(factor)) {
        isRepeated = true;
      } else {
        set.set(factor);
      }
    }
  }
  return set;
}

/// C4: `numbers` ascend and are below `count`.
static bool isSet(ArrayRef<unsigned> numbers, size_t count) {
  for (size_t index = 0; index < numbers.size(); ++index) {
    if (numbers[index] >= count ||
        (index > 0 && numbers[index] <= numbers[index - 1])) {
      return false;
    }
  }
  return true;
}

static std::string findFactorFault(const Factor &factor, bool inAnyOperand,
                                   bool inAnyResult, bool inAllResults) {
  // C2
  if (factor.size != kUnknownSize &&
      factor.size < (factor.kind == FactorKind::Replicated ? 0 : 1)) {
    return "has size " + std::to_string(factor.size);
  }
  if (factor.kind == FactorKind::Parallel && !inAllResults) {
    return "is parallel, and not every result has it";
  }
  // C3
  if (factor.kind == FactorKind::Reduction && inAnyResult) {
    return "is reduced, and a result has it";
  }
  if (factor.kind == FactorKind::Reduction && !inAnyOperand) {
    return "is reduced, and no operand has it";
  }
  if (factor.hasExchange() && !inAnyOperand) {
    return factor.isOrdered() ? "is ordered, and no operand has it"
                              : "is windowed, and no operand has it";
  }
  return "";
}

std::string ShardingRule::findFault() const {
  size_t numFactors = factors.size();
  bool isRepeated = false;
  llvm::SmallBitVector inAnyOperand(numFactors), inAnyResult(numFactors),
      inAllResults(numFactors, true);
  for (const TensorFactors &tensor : operands) {
    inAnyOperand |= getFactorsOf(tensor, numFactors, isRepeated);
  }
  for (const TensorFactors &tensor : results) {
    llvm::SmallBitVector own = getFactorsOf(tensor, numFactors, isRepeated);
    inAnyResult |= own;
    // One without elements is the same on all devices whatever is split.
    bool isEmpty = llvm::any_of(own.set_bits(), [&](unsigned factor) {
      return factors[factor].size == 0;
    });
    if (!isEmpty) {
      inAllResults &= own;
    }
  }
  // C1
  if (isRepeated) {
    return "has a tensor with a factor twice";
  }
  for (unsigned index = 0; index < numFactors; ++index) {
    std::string fault =
        findFactorFault(factors[index], inAnyOperand[index], inAnyResult[index],
                        inAllResults[index]);
    if (!fault.empty()) {
      return "factor " + getFactorName(index) + " " + fault;
    }
  }
  // C4
  bool areSets = isSet(accumulators, operands.size()) &&
                 isSet(untouchedOperands, operands.size()) &&
                 isSet(untouchedResults, results.size()) &&
                 isSet(algebraicSets, linearOperands.size());
  for (ArrayRef<unsigned> set : linearOperands) {
    areSets &= isSet(set, operands.size());
  }
  if (!areSets) {
    return "names operands or results that are not there, or not in order";
  }
  // C5
  if (!(flops >= 0) || !std::isfinite(flops)) {
    return "has a number of operations that is negative or not finite";
  }
  return "";
}

/// Shapes of tensors and sizes of their factors.
static LogicalResult verifyTensors(Operation *op, TypeRange types,
                                   ArrayRef<TensorFactors> tensors,
                                   ArrayRef<Factor> factors, StringRef kind) {
  if (tensors.size() != types.size()) {
    return op->emitOpError() << "sharding rule names " << tensors.size() << " "
                             << kind << "s, the operator has " << types.size();
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
        // Saturates: sizes may be anything.
        if (llvm::MulOverflow(product, factors[factor].size, product)) {
          product = std::numeric_limits<int64_t>::max();
        }
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
}

/// The first ordered or windowed factor of a rule that is not so in the
/// operator's own rule: nothing says what devices exchange along it.
static std::optional<unsigned> findForeignExchange(const ShardingRule &rule,
                                                   Operation *op) {
  if (llvm::none_of(rule.factors, std::mem_fn(&Factor::hasExchange))) {
    return std::nullopt;
  }
  auto interface = dyn_cast<ShardingRuleOpInterface>(op);
  ShardingRule own = interface ? interface.getShardingRule() : ShardingRule();
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    bool isOwn = index < own.factors.size() && own.factors[index] == factor;
    if (factor.hasExchange() && !isOwn) {
      return index;
    }
  }
  return std::nullopt;
}

LogicalResult ShardingRule::verify(Operation *op) const {
  if (std::string fault = findFault(); !fault.empty()) {
    return op->emitOpError() << "sharding rule " << fault;
  }
  if (std::optional<unsigned> factor = findForeignExchange(*this, op)) {
    return op->emitOpError()
           << "sharding rule "
           << (factors[*factor].isOrdered() ? "orders" : "has a window along")
           << " factor " << getFactorName(*factor)
           << ", along which the operator itself exchanges nothing";
  }
  if (failed(verifyTensors(op, op->getOperandTypes(), operands, factors,
                           "operand")) ||
      failed(verifyTensors(op, op->getResultTypes(), results, factors,
                           "result"))) {
    return failure();
  }
  if (std::string split = findSplitElements(*this, op); !split.empty()) {
    return op->emitOpError() << "sharding rule splits " << split;
  }
  bool hasSum = !linearOperands.empty() ||
                llvm::any_of(factors, [](const Factor &factor) {
                  return factor.size > 1 && factor.isSum();
                });
  for (Type type : op->getResultTypes()) {
    if (hasSum && !isSummable(type)) {
      return op->emitOpError()
             << "sharding rule makes partial sums, " << type << " has none";
    }
  }
  return success();
}

bool isSummable(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (auto complexType = dyn_cast<ComplexType>(element)) {
    element = complexType.getElementType();
  }
  if (isa<FloatType>(element)) {
    return element.getIntOrFloatBitWidth() >= 16;
  }
  auto integer = dyn_cast<IntegerType>(element);
  return integer && integer.getWidth() >= 8;
}

DenseElementsAttr getNeutralOfSum(RankedTensorType type) {
  Type element = type.getElementType();
  auto getZero = [](FloatType number) {
    return APFloat::getZero(number.getFloatSemantics(), /*Negative=*/true);
  };
  if (auto complexType = dyn_cast<ComplexType>(element)) {
    APFloat zero = getZero(cast<FloatType>(complexType.getElementType()));
    return DenseElementsAttr::get(type, std::complex<APFloat>(zero, zero));
  }
  if (auto number = dyn_cast<FloatType>(element)) {
    return DenseElementsAttr::get(type, getZero(number));
  }
  return DenseElementsAttr::get(
      type, APInt::getZero(element.getIntOrFloatBitWidth()));
}

bool ShardingRule::operator==(const ShardingRule &other) const {
  return factors == other.factors && operands == other.operands &&
         results == other.results && accumulators == other.accumulators &&
         linearOperands == other.linearOperands &&
         algebraicSets == other.algebraicSets && flops == other.flops &&
         untouchedOperands == other.untouchedOperands &&
         untouchedResults == other.untouchedResults;
}

llvm::hash_code hash_value(const ShardingRule &rule) {
  llvm::hash_code code =
      llvm::hash_combine(llvm::bit_cast<uint64_t>(rule.flops),
                         llvm::hash_combine_range(rule.accumulators.begin(),
                                                  rule.accumulators.end()));
  for (const Factor &factor : rule.factors) {
    code = llvm::hash_combine(code, factor.size, factor.kind, factor.reduction,
                              factor.isWindowed);
  }
  for (const auto &tensors : {ArrayRef<TensorFactors>(rule.operands),
                              ArrayRef<TensorFactors>(rule.results)}) {
    for (const TensorFactors &tensor : tensors) {
      for (const DimFactors &dim : tensor) {
        code = llvm::hash_combine(
            code, llvm::hash_combine_range(dim.begin(), dim.end()));
      }
    }
  }
  return code;
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
