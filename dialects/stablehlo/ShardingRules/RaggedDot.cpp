//===- RaggedDot.cpp - Rule of products in groups of rows -----------------===//
//
// chlo.ragged_dot: a product whose rows (or contracted or batch indices) come
// in groups of different sizes.
//
//===----------------------------------------------------------------------===//

#include "dialects/stablehlo/ShardingRules/Families.h"
#include "dialects/stablehlo/ShardingRules/Products.h"
#include "stablehlo/dialect/ChloOps.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace mlir;
using namespace mlir::stablehlo;
using alpa::DimFactors;
using alpa::ShardingRule;

namespace {

/// The loops of one ragged product.
///
///   lhs [b.., m.., k..], rhs [g, b.., k.., n..] -> [b.., m.., n..]
///
/// The ragged dimension is one of b, m and k; if it is one of k, the right side
/// has no groups and the result has them in front. The sizes of the groups are
/// [g], or [x.., g] with the dimensions x of the left side that come before the
/// ragged one: those of the batch, and of its own kind.
class RaggedDot {
public:
  explicit RaggedDot(chlo::RaggedDotOp op)
      : op(op), dims(op.getRaggedDotDimensionNumbers()), builder(op) {}

  ShardingRule getRule() {
    if (dims.getLhsBatchingDimensions().size() !=
            dims.getRhsBatchingDimensions().size() ||
        dims.getLhsContractingDimensions().size() !=
            dims.getRhsContractingDimensions().size() ||
        dims.getLhsRaggedDimensions().size() != 1) {
      builder.invalidate();
      return builder.finish();
    }
    lhs.resize(builder.getOperandRank(0));
    isContracted = llvm::any_of(dims.getLhsContractingDimensions(),
                                [&](int64_t dim) { return isRagged(dim); });
    nextResult = isContracted ? 1 : 0;
    addBatch();
    addFree();
    addContraction();
    addGroupSizes();
    addBilinear(builder, op);
    return builder.finish();
  }

private:
  bool isRagged(int64_t dim) const {
    return dim == dims.getLhsRaggedDimensions().front();
  }

  bool isFree(int64_t dim) const {
    return !llvm::is_contained(dims.getLhsBatchingDimensions(), dim) &&
           !llvm::is_contained(dims.getLhsContractingDimensions(), dim);
  }

  void appendLhs(int64_t dim, const DimFactors &factors) {
    builder.appendOperand(0, dim, factors);
    if (dim >= 0 && dim < static_cast<int64_t>(lhs.size())) {
      lhs[dim] = factors;
    }
  }

  void addBatch() {
    for (auto [lhsDim, rhsDim] :
         llvm::zip_equal(dims.getLhsBatchingDimensions(),
                         dims.getRhsBatchingDimensions())) {
      int64_t size = builder.getOperandSize(0, lhsDim);
      DimFactors batch = isRagged(lhsDim) ? builder.addReplicated(size)
                                          : builder.addParallel(size);
      appendLhs(lhsDim, batch);
      builder.appendOperand(1, rhsDim, batch);
      builder.appendResult(0, nextResult++, batch);
    }
  }

  void addFree() {
    for (int64_t dim = 0; dim < builder.getOperandRank(0); ++dim) {
      if (!isFree(dim)) {
        continue;
      }
      int64_t size = builder.getOperandSize(0, dim);
      DimFactors rows = isRagged(dim) ? builder.addReplicated(size)
                                      : builder.addParallel(size);
      appendLhs(dim, rows);
      builder.appendResult(0, nextResult++, rows);
    }
    for (int64_t dim = 0; dim < builder.getOperandRank(1); ++dim) {
      if (!llvm::is_contained(dims.getRhsBatchingDimensions(), dim) &&
          !llvm::is_contained(dims.getRhsContractingDimensions(), dim) &&
          !llvm::is_contained(dims.getRhsGroupDimensions(), dim)) {
        builder.share(1, dim, 0, nextResult++);
      }
    }
  }

  void addContraction() {
    double contractedSize = 1;
    for (auto [lhsDim, rhsDim] :
         llvm::zip_equal(dims.getLhsContractingDimensions(),
                         dims.getRhsContractingDimensions())) {
      int64_t size = builder.getOperandSize(0, lhsDim);
      DimFactors contracted = isRagged(lhsDim)
                                  ? builder.addReplicated(size)
                                  : addContracted(builder, op, size);
      appendLhs(lhsDim, contracted);
      builder.appendOperand(1, rhsDim, contracted);
      contractedSize *= static_cast<double>(size);
    }
    // A ragged contraction visits every contracted index once, in its group.
    double outputs = getNumElements(op->getResult(0));
    if (isContracted && builder.getResultRank(0) > 0) {
      outputs /= static_cast<double>(
          std::max<int64_t>(1, builder.getResultSize(0, 0)));
    }
    builder.getRule().flops = 2 * outputs * contractedSize;
  }

  /// Dimensions of the left side that the sizes of groups may differ along.
  SmallVector<int64_t> getPrefix() const {
    ArrayRef<int64_t> batch = dims.getLhsBatchingDimensions();
    int64_t ragged = dims.getLhsRaggedDimensions().front();
    auto before = [&](ArrayRef<int64_t> kind) {
      return kind.take_until([&](int64_t dim) { return dim == ragged; });
    };
    SmallVector<int64_t> prefix(before(batch));
    if (isContracted) {
      llvm::append_range(prefix, before(dims.getLhsContractingDimensions()));
    } else if (isFree(ragged)) {
      for (int64_t dim = 0; dim < ragged; ++dim) {
        if (isFree(dim)) {
          prefix.push_back(dim);
        }
      }
    }
    return prefix;
  }

  void addGroupSizes() {
    SmallVector<int64_t> prefix = getPrefix();
    int64_t rank = builder.getOperandRank(2);
    if (rank == 1) {
      return;
    }
    if (rank != static_cast<int64_t>(prefix.size()) + 1) {
      builder.invalidate();
      return;
    }
    for (auto [dim, source] : llvm::enumerate(prefix)) {
      builder.appendOperand(2, dim, lhs[source]);
    }
  }

  chlo::RaggedDotOp op;
  chlo::RaggedDotDimensionNumbersAttr dims;
  RuleBuilder builder;
  /// Factors of the dimensions of the left side.
  SmallVector<DimFactors> lhs;
  int64_t nextResult = 0;
  /// The ragged dimension is a contracted one.
  bool isContracted = false;
};

struct RaggedDotRule : RuleModel<RaggedDotRule, chlo::RaggedDotOp> {
  ShardingRule getShardingRule(Operation *op) const {
    return RaggedDot(cast<chlo::RaggedDotOp>(op)).getRule();
  }
};

} // namespace

void stablehlo::attachChloContractionRules(MLIRContext &context) {
  chlo::RaggedDotOp::attachInterface<RaggedDotRule>(context);
}
