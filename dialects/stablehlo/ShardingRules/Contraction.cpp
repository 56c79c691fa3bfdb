//===- Contraction.cpp - Rule of dot_general ------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Products.h"
#include "dialects/stablehlo/ShardingRules/RuleBuilder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::FactorKind;
using alpa::ShardingRule;

namespace {

double getSize(RuleBuilder &builder, ArrayRef<unsigned> factors) {
  double size = 1;
  for (unsigned factor : factors) {
    size *= static_cast<double>(builder.getRule().factors[factor].size);
  }
  return size;
}

struct DotGeneralRule : RuleModel<DotGeneralRule, DotGeneralOp> {
  ShardingRule getShardingRule(Operation *op) const {
    DotDimensionNumbersAttr dims =
        cast<DotGeneralOp>(op).getDotDimensionNumbers();
    ArrayRef<int64_t> lhsBatch = dims.getLhsBatchingDimensions();
    ArrayRef<int64_t> rhsBatch = dims.getRhsBatchingDimensions();
    ArrayRef<int64_t> lhsContracted = dims.getLhsContractingDimensions();
    ArrayRef<int64_t> rhsContracted = dims.getRhsContractingDimensions();
    RuleBuilder builder(op);
    if (lhsBatch.size() != rhsBatch.size() ||
        lhsContracted.size() != rhsContracted.size()) {
      builder.invalidate();
      return builder.finish();
    }

    int64_t resultDim = 0;
    for (auto [lhsDim, rhsDim] : llvm::zip_equal(lhsBatch, rhsBatch)) {
      DimFactors batch = builder.addParallel(builder.getOperandSize(0, lhsDim));
      builder.appendOperand(0, lhsDim, batch);
      builder.appendOperand(1, rhsDim, batch);
      builder.appendResult(0, resultDim++, batch);
    }
    auto addFree = [&](unsigned operand, ArrayRef<int64_t> batch,
                       ArrayRef<int64_t> contracted) {
      for (int64_t dim = 0; dim < builder.getOperandRank(operand); ++dim) {
        if (!llvm::is_contained(batch, dim) &&
            !llvm::is_contained(contracted, dim)) {
          builder.share(operand, dim, 0, resultDim++);
        }
      }
    };
    addFree(0, lhsBatch, lhsContracted);
    addFree(1, rhsBatch, rhsContracted);
    double contractedSize = 1;
    for (auto [lhsDim, rhsDim] :
         llvm::zip_equal(lhsContracted, rhsContracted)) {
      DimFactors contracted =
          addContracted(builder, op, builder.getOperandSize(0, lhsDim));
      builder.appendOperand(0, lhsDim, contracted);
      builder.appendOperand(1, rhsDim, contracted);
      contractedSize *= getSize(builder, contracted);
    }
    builder.getRule().flops =
        2 * getNumElements(op->getResult(0)) * contractedSize;
    addBilinear(builder, op);
    return builder.finish();
  }
};

} // namespace

void stablehlo::attachContractionRules(MLIRContext &context) {
  DotGeneralOp::attachInterface<DotGeneralRule>(context);
}
