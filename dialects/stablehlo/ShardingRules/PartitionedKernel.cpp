//===- PartitionedKernel.cpp - Kernels that are made anew for blocks ------===//
//
// A front end writes a call of a kernel whose author says how it is split as
//   stablehlo.custom_call @alpa_kernel(%0) {api_version = 4 : i32,
//     backend_config = {index = 0 : i64, name = "norm",
//                       rule = #alpa.rule<([a, b]) -> ([a, b]) {a=8, b=4}>}}
// and puts the author's kernel for blocks in its place in the program of a
// device, where the call says by which mesh axes its tensors are split:
//     backend_config = {..., operands = [[array<i64: 0>, array<i64>]],
//                       results = [[array<i64: 0>, array<i64>]]}
//
//===----------------------------------------------------------------------===//

#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/Sharding.h"
#include "dialects/stablehlo/ShardingRules/Kernels.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::Exchange;
using alpa::Factor;
using alpa::RuleAttr;
using alpa::ShardingRule;
using alpa::TensorFactors;

static constexpr StringRef kRule = "rule";
static constexpr StringRef kOperands = "operands";
static constexpr StringRef kResults = "results";

static RuleAttr getRuleAttr(CustomCallOp call) {
  auto config = dyn_cast_or_null<DictionaryAttr>(call.getBackendConfigAttr());
  return config ? config.getAs<RuleAttr>(kRule) : RuleAttr();
}

bool stablehlo::isPartitionedKernel(Operation *op) {
  auto call = dyn_cast<CustomCallOp>(op);
  return call && call.getCallTargetName() == "alpa_kernel" && getRuleAttr(call);
}

/// Whether the factors of every dimension make up its size.
static bool fits(ArrayRef<TensorFactors> tensors, TypeRange types,
                 const ShardingRule &rule) {
  return llvm::all_of_zip(
      tensors, types, [&](const TensorFactors &tensor, Type type) {
        auto ranked = dyn_cast<RankedTensorType>(type);
        return ranked &&
               llvm::all_of_zip(tensor, ranked.getShape(),
                                [&](const DimFactors &factors, int64_t size) {
                                  int64_t product = 1;
                                  for (unsigned factor : factors) {
                                    product *= rule.factors[factor].size;
                                  }
                                  return factors.empty() || product == size;
                                });
      });
}

ShardingRule stablehlo::getPartitionedKernelRule(CustomCallOp call) {
  ShardingRule rule = getRuleAttr(call).getRule();
  bool isOfCall = rule.resolveSizes(call) &&
                  fits(rule.operands, call->getOperandTypes(), rule) &&
                  fits(rule.results, call->getResultTypes(), rule);
  if (!isOfCall) {
    return ShardingRule::replicated(call);
  }
  bool areSummable = llvm::all_of(call->getResultTypes(), alpa::isSummable);
  for (Factor &factor : rule.factors) {
    if (factor.isSum() && !areSummable) {
      factor.kind = alpa::FactorKind::Replicated;
    }
  }
  return rule;
}

/// The axes that split each dimension of tensors.
static ArrayAttr getAxes(Builder &builder, ArrayRef<TensorFactors> tensors,
                         alpa::LocalContext &context) {
  SmallVector<Attribute> entries;
  for (const TensorFactors &tensor : tensors) {
    SmallVector<Attribute> dims;
    for (const DimFactors &factors : tensor) {
      SmallVector<int64_t> axes;
      for (unsigned factor : factors) {
        llvm::append_range(axes, context.getAxes(factor));
      }
      dims.push_back(builder.getDenseI64ArrayAttr(axes));
    }
    entries.push_back(builder.getArrayAttr(dims));
  }
  return builder.getArrayAttr(entries);
}

FailureOr<SmallVector<Value>>
stablehlo::localizePartitionedKernel(CustomCallOp call,
                                     alpa::LocalContext &context) {
  SmallVector<Value> results = alpa::cloneLocal(call, context);
  if (results.empty()) {
    return results;
  }
  ShardingRule rule = context.getRule();
  for (auto [index, factor] : llvm::enumerate(rule.factors)) {
    factor.size = context.getLocalSize(index);
    rule.flops /= static_cast<double>(context.getNumShards(index));
  }
  Builder builder(call.getContext());
  NamedAttrList config(cast<DictionaryAttr>(call.getBackendConfigAttr()));
  config.set(kOperands, getAxes(builder, rule.operands, context));
  config.set(kResults, getAxes(builder, rule.results, context));
  config.set(kRule, RuleAttr::get(call.getContext(), rule));
  auto local = cast<CustomCallOp>(results.front().getDefiningOp());
  local.setBackendConfigAttr(config.getDictionary(call.getContext()));
  return results;
}

SmallVector<Exchange> stablehlo::getPartitionedKernelExchanges(
    CustomCallOp call, const ShardingRule &rule, unsigned factor,
    ArrayRef<int64_t> factorShards) {
  SmallVector<Exchange> found;
  for (auto [result, tensor] : llvm::zip(call->getResults(), rule.results)) {
    double bytes = alpa::getTensorBytes(result.getType());
    bool isReduced = true;
    for (const DimFactors &factors : tensor) {
      for (unsigned other : factors) {
        isReduced &= other != factor;
        bytes /= static_cast<double>(factorShards[other]);
      }
    }
    if (isReduced) {
      // An all-reduce moves twice what gathering its parts does.
      found.push_back({2 * bytes / static_cast<double>(factorShards[factor])});
    }
  }
  return found;
}
