//===- RuleBuilder.cpp - Writing sharding rules ---------------------------===//

#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"

#include "dialects/alpa/Sharding.h"
#include "dialects/stablehlo/ShardingRules/ShardingRules.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;
using alpa::OperatorRole;
using alpa::ReductionKind;
using alpa::ShardingRule;
using alpa::TensorFactors;

/// Tokens and other values that are no tensors have no dimensions; a dynamic or
/// empty dimension has no loop that could be split. Of elements other than
/// numbers nothing is known: scales of quantized ones may belong to a
/// dimension.
static bool isSplittable(Type type) {
  auto shaped = dyn_cast<ShapedType>(type);
  if (!shaped) {
    return true;
  }
  return isa<RankedTensorType>(type) && shaped.hasStaticShape() &&
         !llvm::is_contained(shaped.getShape(), 0) &&
         isa<IntegerType, IndexType, FloatType, ComplexType>(
             shaped.getElementType());
}

static int64_t getRankOf(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  return ranked ? ranked.getRank() : 0;
}

static bool hasDim(Type type, int64_t dim) {
  return dim >= 0 && dim < getRankOf(type);
}

RuleBuilder::RuleBuilder(Operation *op) : op(op) {
  for (Type type : op->getOperandTypes()) {
    isValid &= isSplittable(type);
    rule.operands.emplace_back(getRankOf(type));
  }
  for (Type type : op->getResultTypes()) {
    isValid &= isSplittable(type);
    rule.results.emplace_back(getRankOf(type));
  }
}

int64_t RuleBuilder::getOperandRank(unsigned operand) const {
  return operand < op->getNumOperands()
             ? getRankOf(op->getOperand(operand).getType())
             : 0;
}

int64_t RuleBuilder::getResultRank(unsigned result) const {
  return result < op->getNumResults()
             ? getRankOf(op->getResult(result).getType())
             : 0;
}

int64_t RuleBuilder::getOperandSize(unsigned operand, int64_t dim) {
  if (operand >= op->getNumOperands() ||
      !hasDim(op->getOperand(operand).getType(), dim)) {
    invalidate();
    return 1;
  }
  return cast<RankedTensorType>(op->getOperand(operand).getType())
      .getDimSize(dim);
}

int64_t RuleBuilder::getResultSize(unsigned result, int64_t dim) {
  if (result >= op->getNumResults() ||
      !hasDim(op->getResult(result).getType(), dim)) {
    invalidate();
    return 1;
  }
  return cast<RankedTensorType>(op->getResult(result).getType())
      .getDimSize(dim);
}

DimFactors RuleBuilder::addFactor(int64_t size, FactorKind kind,
                                  ReductionKind reduction, bool isWindowed) {
  if (size == 1) {
    return {};
  }
  if (size < 1) {
    invalidate();
    return {};
  }
  DimFactors factors;
  factors.push_back(rule.addFactor(size, kind, reduction, isWindowed));
  return factors;
}

void RuleBuilder::appendOperand(unsigned operand, int64_t dim,
                                ArrayRef<unsigned> factors) {
  if (operand >= op->getNumOperands() ||
      !hasDim(op->getOperand(operand).getType(), dim)) {
    invalidate();
    return;
  }
  llvm::append_range(rule.operands[operand][dim], factors);
}

void RuleBuilder::appendResult(unsigned result, int64_t dim,
                               ArrayRef<unsigned> factors) {
  if (result >= op->getNumResults() ||
      !hasDim(op->getResult(result).getType(), dim)) {
    invalidate();
    return;
  }
  llvm::append_range(rule.results[result][dim], factors);
}

void RuleBuilder::share(unsigned operand, int64_t operandDim, unsigned result,
                        int64_t resultDim) {
  DimFactors factors = addParallel(getOperandSize(operand, operandDim));
  appendOperand(operand, operandDim, factors);
  appendResult(result, resultDim, factors);
}

void RuleBuilder::replicateRest(TensorFactors &tensor, Type type) {
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    if (factors.empty()) {
      factors = addReplicated(cast<RankedTensorType>(type).getDimSize(dim));
    }
  }
}

bool RuleBuilder::fits(const TensorFactors &tensor, Type type) const {
  for (auto [dim, factors] : llvm::enumerate(tensor)) {
    int64_t size = 1;
    for (unsigned factor : factors) {
      size *= rule.factors[factor].size;
    }
    if (size != cast<RankedTensorType>(type).getDimSize(dim)) {
      return false;
    }
  }
  return true;
}

ShardingRule RuleBuilder::finish() {
  if (isValid) {
    for (auto [tensor, type] :
         llvm::zip_equal(rule.operands, op->getOperandTypes())) {
      replicateRest(tensor, type);
    }
    for (auto [tensor, type] :
         llvm::zip_equal(rule.results, op->getResultTypes())) {
      replicateRest(tensor, type);
    }
    auto check = [&](auto pair) {
      return fits(std::get<0>(pair), std::get<1>(pair));
    };
    isValid =
        llvm::all_of(llvm::zip(rule.operands, op->getOperandTypes()), check) &&
        llvm::all_of(llvm::zip(rule.results, op->getResultTypes()), check);
  }
  if (isValid) {
    return std::move(rule);
  }
  ShardingRule replicated = ShardingRule::replicated(op);
  replicated.flops = rule.flops;
  replicated.untouchedOperands = rule.untouchedOperands;
  replicated.untouchedResults = rule.untouchedResults;
  return replicated;
}

bool stablehlo::hasReplicatedFactor(const ShardingRule &rule) {
  return llvm::any_of(rule.factors, [](const alpa::Factor &factor) {
    return factor.kind == FactorKind::Replicated && factor.size > 1;
  });
}

OperatorRole stablehlo::getRoleOf(const ShardingRule &rule) {
  return hasReplicatedFactor(rule) ? OperatorRole::Leader
                                   : OperatorRole::Follower;
}

bool stablehlo::keepsShares(Type from, Type to) {
  Type source = getElementTypeOrSelf(from);
  Type target = getElementTypeOrSelf(to);
  if (source == target) {
    return isSummable(source);
  }
  if (auto complexType = dyn_cast<ComplexType>(target)) {
    target = complexType.getElementType();
    if (auto complexSource = dyn_cast<ComplexType>(source)) {
      source = complexSource.getElementType();
    }
  }
  auto narrow = dyn_cast<FloatType>(source), wide = dyn_cast<FloatType>(target);
  return narrow && wide && isSummable(narrow) &&
         llvm::APFloat::isRepresentableBy(narrow.getFloatSemantics(),
                                          wide.getFloatSemantics());
}

double stablehlo::getNumElements(Type type) {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked || !ranked.hasStaticShape()) {
    return 0;
  }
  double count = 1;
  for (int64_t size : ranked.getShape()) {
    count *= static_cast<double>(size);
  }
  return count;
}

double stablehlo::getNumElements(Value value) {
  return getNumElements(value.getType());
}

double stablehlo::getBlockBytes(Type type, const alpa::TensorFactors &tensor,
                                ArrayRef<int64_t> factorShards) {
  double bytes = alpa::getTensorBytes(type);
  for (const alpa::DimFactors &factors : tensor) {
    for (unsigned factor : factors) {
      bytes /= static_cast<double>(factorShards[factor]);
    }
  }
  return bytes;
}

bool stablehlo::combinesElements(ValueRange inits) {
  return llvm::all_of(inits.getTypes(), [](Type type) {
    return cast<RankedTensorType>(type).getRank() == 0;
  });
}

std::optional<ReductionKind> stablehlo::getReductionKind(Region &body) {
  if (!body.hasOneBlock()) {
    return std::nullopt;
  }
  Block &block = body.front();
  if (block.getNumArguments() != 2 || block.getOperations().size() != 2) {
    return std::nullopt;
  }
  Operation &combine = block.front();
  Operation &terminator = block.back();
  if (combine.getNumOperands() != 2 || combine.getNumResults() != 1 ||
      terminator.getNumOperands() != 1 ||
      terminator.getOperand(0) != combine.getResult(0)) {
    return std::nullopt;
  }
  Value first = combine.getOperand(0), second = combine.getOperand(1);
  Value left = block.getArgument(0), right = block.getArgument(1);
  if (!(first == left && second == right) &&
      !(first == right && second == left)) {
    return std::nullopt;
  }
  // The order of complex numbers is nothing that devices can reduce by.
  if (isa<MaxOp, MinOp>(combine) &&
      isa<ComplexType>(getElementTypeOrSelf(combine.getResult(0).getType()))) {
    return std::nullopt;
  }
  // On booleans + is "or" and * is "and", as in StableHLO's semantics.
  bool isBoolean =
      getElementTypeOrSelf(combine.getResult(0).getType()).isInteger(1);
  return llvm::TypeSwitch<Operation *, std::optional<ReductionKind>>(&combine)
      .Case<AddOp>([&](auto) {
        return isBoolean ? ReductionKind::Or : ReductionKind::Sum;
      })
      .Case<MulOp>([&](auto) {
        return isBoolean ? ReductionKind::And : ReductionKind::Product;
      })
      .Case<MaxOp>([&](auto) {
        return isBoolean ? ReductionKind::Or : ReductionKind::Max;
      })
      .Case<MinOp>([&](auto) {
        return isBoolean ? ReductionKind::And : ReductionKind::Min;
      })
      .Case<AndOp>([&](auto) { return ReductionKind::And; })
      .Case<OrOp>([&](auto) { return ReductionKind::Or; })
      .Default([](auto) { return std::nullopt; });
}
