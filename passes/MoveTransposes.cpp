//===- MoveTransposes.cpp - Of products, what is small is transposed ------===//

#include "dialects/alpa/Sharding.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_MOVETRANSPOSES
#include "passes/Passes.h.inc"

namespace {

using stablehlo::DotAlgorithmAttr;
using stablehlo::DotDimensionNumbersAttr;
using stablehlo::DotGeneralOp;
using stablehlo::TransposeOp;

/// Some dimensions of a tensor, in an order.
using Dims = SmallVector<int64_t>;

/// The dimensions themselves, whatever their order, are the first ones.
bool areFirst(ArrayRef<int64_t> dims) {
  return dims.empty() ||
         *llvm::max_element(dims) == static_cast<int64_t>(dims.size()) - 1;
}

Dims concatenate(ArrayRef<int64_t> first, ArrayRef<int64_t> second) {
  Dims both(first);
  llvm::append_range(both, second);
  return both;
}

/// An operand of a product: its dimensions in the order in which the product
/// takes them.
struct Factor {
  Value value;
  Dims batching, contracting, free;

  RankedTensorType getType() const {
    return cast<RankedTensorType>(value.getType());
  }

  /// Whether it is a batch of matrices as it lies: XLA transposes others before
  /// it multiplies.
  bool isMatrices() const {
    return areFirst(batching) && (areFirst(concatenate(batching, free)) ||
                                  areFirst(concatenate(batching, contracting)));
  }
};

struct Product {
  Factor lhs, rhs;
  bool isSwapped = false;
};

Factor getFactor(Value value, ArrayRef<int64_t> batching,
                 ArrayRef<int64_t> contracting) {
  Factor factor{value, Dims(batching), Dims(contracting), {}};
  for (int64_t dim : llvm::seq(factor.getType().getRank())) {
    if (!llvm::is_contained(batching, dim) &&
        !llvm::is_contained(contracting, dim)) {
      factor.free.push_back(dim);
    }
  }
  return factor;
}

Product getProduct(DotGeneralOp dot) {
  DotDimensionNumbersAttr dims = dot.getDotDimensionNumbers();
  return {getFactor(dot.getLhs(), dims.getLhsBatchingDimensions(),
                    dims.getLhsContractingDimensions()),
          getFactor(dot.getRhs(), dims.getRhsBatchingDimensions(),
                    dims.getRhsContractingDimensions())};
}

/// Whether nothing that an operator carries is about the order of dimensions.
bool isPlain(Operation *op) {
  return op->getDiscardableAttrs().empty() &&
         llvm::all_of(op->getOperandTypes(), [](Type type) {
           auto tensor = dyn_cast<RankedTensorType>(type);
           return tensor && tensor.hasStaticShape() &&
                  (tensor.getElementType().isIntOrFloat() ||
                   isa<ComplexType>(tensor.getElementType()));
         });
}

DotAlgorithmAttr swapOperands(DotAlgorithmAttr algorithm) {
  return DotAlgorithmAttr::get(
      algorithm.getContext(), algorithm.getRhsPrecisionType(),
      algorithm.getLhsPrecisionType(), algorithm.getAccumulationType(),
      algorithm.getRhsComponentCount(), algorithm.getLhsComponentCount(),
      algorithm.getNumPrimitiveOperations(),
      algorithm.getAllowImpreciseAccumulation());
}

/// A product in place of `dot`, its dimensions those of the batch, then the
/// free ones of both operands, each in order of its operand.
DotGeneralOp make(PatternRewriter &rewriter, DotGeneralOp dot,
                  const Product &product) {
  const auto &[lhs, rhs, isSwapped] = product;
  Dims sizes;
  auto addSizes = [&](const Factor &factor, ArrayRef<int64_t> dims) {
    for (int64_t dim : dims) {
      sizes.push_back(factor.getType().getDimSize(dim));
    }
  };
  addSizes(lhs, lhs.batching);
  addSizes(lhs, lhs.free);
  addSizes(rhs, rhs.free);
  auto numbers =
      DotDimensionNumbersAttr::get(dot.getContext(), lhs.batching, rhs.batching,
                                   lhs.contracting, rhs.contracting);
  ArrayAttr precision = dot.getPrecisionConfigAttr();
  DotAlgorithmAttr algorithm = dot.getAlgorithmAttr();
  if (isSwapped && precision) {
    SmallVector<Attribute> both(llvm::reverse(precision.getValue()));
    precision = rewriter.getArrayAttr(both);
  }
  if (isSwapped && algorithm) {
    algorithm = swapOperands(algorithm);
  }
  return DotGeneralOp::create(
      rewriter, dot.getLoc(),
      cast<RankedTensorType>(dot.getType()).clone(sizes), lhs.value, rhs.value,
      numbers, precision, algorithm);
}

TransposeOp transpose(PatternRewriter &rewriter, Location loc, Value value,
                      ArrayRef<int64_t> order) {
  auto type = cast<RankedTensorType>(value.getType());
  Dims sizes = llvm::map_to_vector(
      order, [&](int64_t dim) { return type.getDimSize(dim); });
  return TransposeOp::create(rewriter, loc, type.clone(sizes), value,
                             rewriter.getDenseI64ArrayAttr(order));
}

//===----------------------------------------------------------------------===//
// A transposed product
//===----------------------------------------------------------------------===//

/// Whether `part` lies in [begin, begin + part.size()); then from 0 on.
bool takeRange(MutableArrayRef<int64_t> part, int64_t begin) {
  for (int64_t &dim : part) {
    dim -= begin;
  }
  return llvm::all_of(part, [&](int64_t dim) {
    return dim >= 0 && dim < static_cast<int64_t>(part.size());
  });
}

Dims select(ArrayRef<int64_t> dims, ArrayRef<int64_t> numbers) {
  return llvm::map_to_vector(numbers,
                             [&](int64_t number) { return dims[number]; });
}

/// The product that `permutation` makes of one: operands may be swapped, and
/// name their free dimensions in the order in which they come. None where those
/// of the batch, of one operand and of the other lie between each other.
std::optional<Product> permute(Product product, ArrayRef<int64_t> permutation) {
  auto numBatch = static_cast<int64_t>(product.lhs.batching.size());
  auto numLhs = static_cast<int64_t>(product.lhs.free.size());
  Dims batch(permutation.take_front(numBatch));
  ArrayRef<int64_t> rest = permutation.drop_front(numBatch);
  if (!takeRange(batch, 0)) {
    return std::nullopt;
  }
  product.isSwapped = !rest.empty() && rest.front() >= numBatch + numLhs;
  auto numFirst = static_cast<int64_t>(
      product.isSwapped ? product.rhs.free.size() : product.lhs.free.size());
  Dims first(rest.take_front(numFirst)), second(rest.drop_front(numFirst));
  if (!takeRange(first, numBatch + (product.isSwapped ? numLhs : 0)) ||
      !takeRange(second, numBatch + (product.isSwapped ? 0 : numLhs))) {
    return std::nullopt;
  }
  if (product.isSwapped) {
    std::swap(product.lhs, product.rhs);
  }
  for (auto [factor, order] :
       {std::pair(&product.lhs, &first), std::pair(&product.rhs, &second)}) {
    factor->batching = select(factor->batching, batch);
    factor->free = select(factor->free, *order);
  }
  return product;
}

/// Transposes an operand so that its free dimensions lie as it names them.
void putInOrder(PatternRewriter &rewriter, Location loc, Factor &factor) {
  bool isSumFirst =
      !factor.contracting.empty() &&
      *llvm::min_element(factor.contracting) < *llvm::min_element(factor.free);
  Dims order = factor.batching;
  llvm::append_range(order, isSumFirst ? factor.contracting : factor.free);
  llvm::append_range(order, isSumFirst ? factor.free : factor.contracting);
  factor.value = transpose(rewriter, loc, factor.value, order);
  for (Dims *dims : {&factor.batching, &factor.contracting, &factor.free}) {
    for (int64_t &dim : *dims) {
      dim = std::distance(order.begin(), llvm::find(order, dim));
    }
  }
}

/// Makes a product in the order in which it is read, where transposing its
/// operands for that is less than transposing the product.
struct TransposeOperands : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    auto dot = op.getOperand().getDefiningOp<DotGeneralOp>();
    if (!dot || !dot->hasOneUse() || dot->getBlock() != op->getBlock() ||
        !isPlain(dot) || !isPlain(op)) {
      return failure();
    }
    std::optional<Product> product =
        permute(getProduct(dot), op.getPermutation());
    if (!product) {
      return failure();
    }
    SmallVector<Factor *, 2> transposed;
    double bytes = 0;
    for (Factor *factor : {&product->lhs, &product->rhs}) {
      if (!llvm::is_sorted(factor->free)) {
        transposed.push_back(factor);
        bytes += getTensorBytes(factor->getType());
      }
    }
    if (bytes >= getTensorBytes(op.getType())) {
      return failure();
    }
    rewriter.setInsertionPoint(dot);
    for (Factor *factor : transposed) {
      putInOrder(rewriter, op.getLoc(), *factor);
    }
    rewriter.replaceOp(op, make(rewriter, dot, *product));
    rewriter.eraseOp(dot);
    return success();
  }
};

//===----------------------------------------------------------------------===//
// A transposed operand
//===----------------------------------------------------------------------===//

/// An operand that is what `transpose` takes; its free dimensions stay in the
/// order in which the product has them.
Factor getUntransposed(Factor factor, TransposeOp transpose) {
  factor.value = transpose.getOperand();
  for (Dims *dims : {&factor.batching, &factor.contracting, &factor.free}) {
    *dims = select(transpose.getPermutation(), *dims);
  }
  return factor;
}

/// The free dimensions of both operands, in their order, by their number in the
/// product as it was: how that is transposed back.
Dims sortFree(Product &product) {
  auto numBatch = static_cast<int64_t>(product.lhs.batching.size());
  Dims order = llvm::to_vector(llvm::seq<int64_t>(0, numBatch));
  for (Factor *factor : {&product.lhs, &product.rhs}) {
    Dims before = factor->free;
    llvm::sort(factor->free);
    auto begin = static_cast<int64_t>(order.size());
    for (int64_t dim : before) {
      order.push_back(begin + std::distance(factor->free.begin(),
                                            llvm::find(factor->free, dim)));
    }
  }
  return order;
}

/// Adds up in the order in which the larger operand lies in memory.
void sortContracting(Product &product) {
  bool isLhs = getTensorBytes(product.lhs.getType()) >=
               getTensorBytes(product.rhs.getType());
  Dims &larger = isLhs ? product.lhs.contracting : product.rhs.contracting;
  Dims &smaller = isLhs ? product.rhs.contracting : product.lhs.contracting;
  SmallVector<std::pair<int64_t, int64_t>> sorted;
  for (auto [one, other] : llvm::zip_equal(larger, smaller)) {
    sorted.emplace_back(one, other);
  }
  llvm::sort(sorted);
  larger = llvm::to_vector(llvm::make_first_range(sorted));
  smaller = llvm::to_vector(llvm::make_second_range(sorted));
}

/// Has products read what is not yet transposed, where that is more than what
/// has to be transposed of them for that.
struct ReadUntransposed : OpRewritePattern<TransposeOp> {
  using OpRewritePattern::OpRewritePattern;

  /// The product that reads what `op` takes; none if it is better off so.
  static std::optional<Product> getProduct(OpOperand &use, TransposeOp op) {
    auto dot = dyn_cast<DotGeneralOp>(use.getOwner());
    if (!dot || !isPlain(dot)) {
      return std::nullopt;
    }
    Product product = alpa::getProduct(dot);
    Factor &factor = use.getOperandNumber() == 0 ? product.lhs : product.rhs;
    factor = getUntransposed(std::move(factor), op);
    bool isInOrder = llvm::is_sorted(factor.free);
    // A loop may transpose what it reads once, and would what it makes each
    // time.
    bool isLess = dot->getBlock() == op->getBlock() &&
                  getTensorBytes(dot.getType()) < getTensorBytes(op.getType());
    return factor.isMatrices() && (isInOrder || isLess)
               ? std::optional(std::move(product))
               : std::nullopt;
  }

  LogicalResult matchAndRewrite(TransposeOp op,
                                PatternRewriter &rewriter) const override {
    if (op->use_empty() || !isPlain(op) ||
        !llvm::all_of(op->getUses(), [&](OpOperand &use) {
          return getProduct(use, op).has_value();
        })) {
      return failure();
    }
    while (!op->use_empty()) {
      OpOperand &use = *op->use_begin();
      auto dot = cast<DotGeneralOp>(use.getOwner());
      Product product = *getProduct(use, op);
      Dims order = sortFree(product);
      sortContracting(product);
      rewriter.setInsertionPoint(dot);
      Value made = make(rewriter, dot, product);
      if (!llvm::is_sorted(order)) {
        made = transpose(rewriter, op.getLoc(), made, order);
      }
      rewriter.replaceOp(dot, made);
    }
    rewriter.eraseOp(op);
    return success();
  }
};

struct MoveTransposes : impl::MoveTransposesBase<MoveTransposes> {
  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<TransposeOperands, ReadUntransposed>(&getContext());
    GreedyRewriteConfig config;
    config.setStrictness(GreedyRewriteStrictness::ExistingAndNewOps)
        .enableConstantCSE(false);
    SmallVector<Operation *> transposes;
    getOperation().walk([&](TransposeOp op) { transposes.push_back(op); });
    // A transposition goes or becomes a smaller one each time.
    if (failed(
            applyOpPatternsGreedily(transposes, std::move(patterns), config))) {
      signalPassFailure();
    }
  }
};

} // namespace
} // namespace mlir::alpa
