//===- PaddedOperators.cpp - Operators with longer loops ------------------===//

#include "cpp/transforms/PaddedOperators.h"

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/IRMapping.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include <complex>
#include <numeric>

namespace mlir::alpa {

using namespace stablehlo;

/// How much smaller blocks become at least. Heuristic.
static constexpr double kLeastGain = 1.2;

bool PaddingOptions::canPad(int64_t size, int64_t padded) const {
  return padded >= size && padded % multiple == 0 &&
         static_cast<double>(padded) <=
             static_cast<double>(size) * (1 + mostAdded);
}

bool PaddingOptions::isWorthwhile(int64_t size, int64_t padded) const {
  if (size < 2 || size % multiple == 0 || !canPad(size, padded)) {
    return false;
  }
  double block =
      static_cast<double>(size) / static_cast<double>(std::gcd(size, multiple));
  double paddedBlock =
      static_cast<double>(padded) / static_cast<double>(multiple);
  return block >= kLeastGain * paddedBlock;
}

Filling getNeutral(ReductionKind kind) {
  switch (kind) {
  case ReductionKind::Sum:
  case ReductionKind::Or:
    return Filling::Zero;
  case ReductionKind::Product:
    return Filling::One;
  case ReductionKind::Max:
    return Filling::Lowest;
  case ReductionKind::Min:
    return Filling::Highest;
  case ReductionKind::And:
    return Filling::Ones;
  }
  llvm_unreachable("unknown reduction");
}

static APFloat getFilledFloat(const llvm::fltSemantics &semantics,
                              Filling filling) {
  bool isNegative = filling == Filling::Lowest;
  switch (filling) {
  case Filling::One:
    return APFloat::getOne(semantics);
  case Filling::Lowest:
  case Filling::Highest:
    return APFloat::semanticsHasInf(semantics)
               ? APFloat::getInf(semantics, isNegative)
               : APFloat::getLargest(semantics, isNegative);
  default:
    return APFloat::getZero(semantics);
  }
}

static APInt getFilledInteger(IntegerType type, Filling filling) {
  unsigned width = type.getWidth();
  bool isUnsigned = type.isUnsigned();
  switch (filling) {
  case Filling::One:
    return APInt(width, 1);
  case Filling::Lowest:
    return isUnsigned ? APInt::getMinValue(width)
                      : APInt::getSignedMinValue(width);
  case Filling::Highest:
    return isUnsigned ? APInt::getMaxValue(width)
                      : APInt::getSignedMaxValue(width);
  case Filling::Ones:
    return APInt::getAllOnes(width);
  default:
    return APInt::getZero(width);
  }
}

Value createFilled(OpBuilder &builder, Location loc, RankedTensorType type,
                   Filling filling) {
  Type element = type.getElementType();
  DenseElementsAttr value;
  if (auto complexType = dyn_cast<ComplexType>(element)) {
    const llvm::fltSemantics &semantics =
        cast<FloatType>(complexType.getElementType()).getFloatSemantics();
    value = DenseElementsAttr::get(
        type, std::complex<APFloat>(getFilledFloat(semantics, filling),
                                    APFloat::getZero(semantics)));
  } else if (auto floatType = dyn_cast<FloatType>(element)) {
    value = DenseElementsAttr::get(
        type, getFilledFloat(floatType.getFloatSemantics(), filling));
  } else {
    value = DenseElementsAttr::get(
        type, getFilledInteger(cast<IntegerType>(element), filling));
  }
  return ConstantOp::create(builder, loc, type, value).getResult();
}

Value createPositionMask(OpBuilder &builder, Location loc,
                         ArrayRef<int64_t> shape, int64_t dim,
                         ComparisonDirection direction, int64_t limit) {
  auto positions = RankedTensorType::get({shape[dim]}, builder.getI64Type());
  Type flag = builder.getI1Type();
  Value iota =
      IotaOp::create(builder, loc, positions, builder.getI64IntegerAttr(0))
          .getResult();
  Value bound = ConstantOp::create(builder, loc, positions,
                                   DenseElementsAttr::get(positions, limit))
                    .getResult();
  Value compared = CompareOp::create(builder, loc, positions.clone(flag), iota,
                                     bound, direction, ComparisonTypeAttr())
                       .getResult();
  return BroadcastInDimOp::create(builder, loc,
                                  RankedTensorType::get(shape, flag), compared,
                                  builder.getDenseI64ArrayAttr({dim}))
      .getResult();
}

ArrayRef<int64_t> getShapeOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  return type ? type.getShape() : ArrayRef<int64_t>();
}

LongerLoops::LongerLoops(const ShardingRule &rule,
                         const llvm::SmallBitVector &factors, int64_t padded)
    : rule(rule), factors(factors), sizes(rule.factors.size(), padded) {}

llvm::SmallBitVector LongerLoops::getDims(const TensorFactors &tensor) const {
  llvm::SmallBitVector dims(tensor.size());
  for (auto [dim, list] : llvm::enumerate(tensor)) {
    if (llvm::any_of(list, [&](unsigned factor) { return factors[factor]; })) {
      dims.set(dim);
    }
  }
  return dims;
}

SmallVector<int64_t> LongerLoops::getShape(Type type,
                                           const TensorFactors &tensor) const {
  auto ranked = dyn_cast<RankedTensorType>(type);
  if (!ranked) {
    return {};
  }
  SmallVector<int64_t> shape(ranked.getShape());
  for (auto [size, list] : llvm::zip(shape, tensor)) {
    for (unsigned factor : list) {
      size = factors[factor] ? sizes[factor] : size;
    }
  }
  return shape;
}

Type LongerLoops::getType(Type type, const TensorFactors &tensor) const {
  return getDims(tensor).none()
             ? type
             : cast<RankedTensorType>(type).clone(getShape(type, tensor));
}

//===----------------------------------------------------------------------===//
// What can be padded
//===----------------------------------------------------------------------===//

bool canBeFilled(Type type) {
  Type element = getElementTypeOrSelf(type);
  if (auto complexType = dyn_cast<ComplexType>(element)) {
    element = complexType.getElementType();
  }
  if (auto floatType = dyn_cast<FloatType>(element)) {
    return APFloat::semanticsHasZero(floatType.getFloatSemantics());
  }
  return isa<RankedTensorType>(type) && isa<IntegerType>(element);
}

bool isPointwise(Operation *op, const ShardingRule &rule) {
  if (op->getNumResults() != 1 || op->getNumRegions() != 0 ||
      getOperatorRole(op) != OperatorRole::Follower ||
      isa<SliceOp, PadOp, ConcatenateOp, ReverseOp, ReshapeOp, TransposeOp>(
          op)) {
    return false;
  }
  auto isOneLoop = [&](const DimFactors &factors) {
    return factors.size() <= 1 && llvm::all_of(factors, [&](unsigned factor) {
             return rule.factors[factor].kind == FactorKind::Parallel;
           });
  };
  return llvm::all_of(rule.results[0], isOneLoop) &&
         llvm::all_of(rule.operands, [&](const TensorFactors &operand) {
           return operand.empty() || operand == rule.results[0];
         });
}

/// Whether each of the loops is all of every dimension that it is in.
static bool standAlone(const LongerLoops &loops) {
  auto isAlone = [&](const TensorFactors &tensor) {
    return llvm::all_of(tensor, [&](const DimFactors &list) {
      return list.size() == 1 || llvm::none_of(list, [&](unsigned factor) {
               return loops.factors[factor];
             });
    });
  };
  return llvm::all_of(loops.rule.operands, isAlone) &&
         llvm::all_of(loops.rule.results, isAlone);
}

static bool isReduced(const LongerLoops &loops) {
  return llvm::any_of(loops.factors.set_bits(), [&](unsigned factor) {
    return loops.rule.factors[factor].kind == FactorKind::Reduction;
  });
}

std::optional<Filling> getFillingOf(Value value) {
  auto constant = value.getDefiningOp<ConstantOp>();
  auto elements =
      constant ? dyn_cast<DenseElementsAttr>(constant.getValue()) : nullptr;
  if (!elements || !elements.isSplat() ||
      isa<ComplexType>(elements.getElementType())) {
    return std::nullopt;
  }
  for (Filling filling : {Filling::Zero, Filling::One, Filling::Lowest,
                          Filling::Highest, Filling::Ones}) {
    bool isSame = false;
    if (auto type = dyn_cast<FloatType>(elements.getElementType())) {
      isSame = elements.getSplatValue<APFloat>().bitwiseIsEqual(
          getFilledFloat(type.getFloatSemantics(), filling));
    } else if (auto type = dyn_cast<IntegerType>(elements.getElementType())) {
      isSame =
          elements.getSplatValue<APInt>() == getFilledInteger(type, filling);
    }
    if (isSame) {
      return filling;
    }
  }
  return std::nullopt;
}

static bool isOrdered(const LongerLoops &loops) {
  return llvm::any_of(loops.factors.set_bits(), [&](unsigned factor) {
    return loops.rule.factors[factor].isOrdered();
  });
}

static bool isWindowed(const LongerLoops &loops) {
  return llvm::any_of(loops.factors.set_bits(), [&](unsigned factor) {
    return loops.rule.factors[factor].isWindowed;
  });
}

/// Elements that are the initial values change nothing: those and the body are
/// a monoid.
static bool canPadReduce(ReduceOp reduce, const LongerLoops &loops) {
  return !isOrdered(loops) ||
         llvm::all_of(reduce.getInitValues(), [](Value init) {
           return getFillingOf(init).has_value();
         });
}

/// Windows that reach beyond the elements take initial values there.
static bool canPadWindow(ReduceWindowOp window, const LongerLoops &loops) {
  return !isOrdered(loops) &&
         (!isWindowed(loops) ||
          llvm::all_of(window.getInitValues(), [](Value init) {
            return getFillingOf(init).has_value();
          }));
}

/// Scattering adds zeros at places that nothing says anything of; other
/// computations have no neutral update.
static bool canPadScatter(ScatterOp scatter, const LongerLoops &loops) {
  return !isReduced(loops) ||
         (scatter.getInputs().size() == 1 && !loops.rule.accumulators.empty());
}

/// Rows behind the last are of no group. Groups have sizes, one each, the same
/// for all batches: those stay as many, be they of the right side or, where
/// rows are summed up, of the result.
static bool canPadRagged(chlo::RaggedDotOp product, const LongerLoops &loops) {
  if (cast<ShapedType>(product.getOperand(2).getType()).getRank() != 1) {
    return false;
  }
  ArrayRef<int64_t> groups =
      product.getRaggedDotDimensionNumbers().getRhsGroupDimensions();
  llvm::SmallBitVector dims = loops.getDims(
      groups.empty() ? loops.rule.results[0] : loops.rule.operands[1]);
  unsigned counted = groups.empty() ? 0 : groups.front();
  return counted < dims.size() && !dims.test(counted);
}

/// Whether a dimension is longer in both, the whole and a slice of it. Indices
/// are moved inside of the dimension that there was: where one decides what is
/// taken, that has to stay as long.
static bool hasDimsOf(const LongerLoops &loops, const TensorFactors &part) {
  return loops.getDims(loops.rule.operands[0]) == loops.getDims(part);
}

bool canPadOperator(Operation *op, const LongerLoops &loops) {
  // A rule that the operator carries has the sizes in it.
  if (op->hasAttr(kRuleAttrName) || !standAlone(loops) ||
      !llvm::all_of(op->getOperandTypes(), canBeFilled) ||
      !llvm::all_of(op->getResultTypes(), canBeFilled)) {
    return false;
  }
  return llvm::TypeSwitch<Operation *, bool>(op)
      .Case<BroadcastInDimOp, ReshapeOp, TransposeOp, DotGeneralOp, GatherOp>(
          [](auto) { return true; })
      // What is behind the last element would come to lie elsewhere.
      .Case<ConcatenateOp, ReverseOp>([&](auto) { return !isWindowed(loops); })
      .Case<SortOp>([&](auto) { return !isOrdered(loops); })
      .Case<PadOp, SliceOp, DynamicSliceOp>(
          [&](auto) { return hasDimsOf(loops, loops.rule.results[0]); })
      .Case<DynamicUpdateSliceOp>(
          [&](auto) { return hasDimsOf(loops, loops.rule.operands[1]); })
      .Case<ReduceOp>(
          [&](ReduceOp reduce) { return canPadReduce(reduce, loops); })
      .Case<ReduceWindowOp>(
          [&](ReduceWindowOp window) { return canPadWindow(window, loops); })
      .Case<SelectAndScatterOp>([&](auto) { return !isWindowed(loops); })
      .Case<ConvolutionOp>([](ConvolutionOp convolution) {
        return convolution.getFeatureGroupCount() == 1 &&
               convolution.getBatchGroupCount() == 1;
      })
      .Case<ScatterOp>(
          [&](ScatterOp scatter) { return canPadScatter(scatter, loops); })
      .Case<chlo::RaggedDotOp>([&](chlo::RaggedDotOp product) {
        return canPadRagged(product, loops);
      })
      .Default([&](Operation *other) {
        StringRef dialect = other->getName().getDialectNamespace();
        return (dialect == "stablehlo" || dialect == "chlo") &&
               isPointwise(other, loops.rule);
      });
}

Filling getRequiredFilling(Operation *op, unsigned operand,
                           const LongerLoops &loops) {
  // Rows of a table are looked up, not added.
  if (isa<GatherOp>(op)) {
    return Filling::Anything;
  }
  // Where nothing is added, it does not matter to which place.
  if (auto scatter = dyn_cast<ScatterOp>(op);
      scatter && operand == scatter.getInputs().size()) {
    return Filling::Anything;
  }
  if (auto reduce = dyn_cast<ReduceOp>(op);
      reduce && isOrdered(loops) && operand < reduce.getInputs().size()) {
    return getFillingOf(reduce.getInitValues()[operand])
        .value_or(Filling::Anything);
  }
  if (auto window = dyn_cast<ReduceWindowOp>(op);
      window && isWindowed(loops) && operand < window.getInputs().size()) {
    return getFillingOf(window.getInitValues()[operand])
        .value_or(Filling::Anything);
  }
  // What is beyond the input of a convolution is zero.
  if (isa<ConvolutionOp>(op) && operand == 0 && isWindowed(loops)) {
    return Filling::Zero;
  }
  for (const DimFactors &list : loops.rule.operands[operand]) {
    for (unsigned factor : list) {
      const Factor &loop = loops.rule.factors[factor];
      if (loops.factors[factor] && loop.kind == FactorKind::Reduction) {
        return getNeutral(loop.reduction);
      }
    }
  }
  return Filling::Anything;
}

//===----------------------------------------------------------------------===//
// The longer form
//===----------------------------------------------------------------------===//

/// Sizes of slices, where those of whole dimensions have grown.
static SmallVector<int64_t> getPaddedSizes(ArrayRef<int64_t> sizes,
                                           Value operand, Value padded) {
  auto before = cast<RankedTensorType>(operand.getType()).getShape();
  auto after = cast<RankedTensorType>(padded.getType()).getShape();
  SmallVector<int64_t> result(sizes);
  for (size_t dim = 0; dim < result.size(); ++dim) {
    if (before[dim] != after[dim] && result[dim] == before[dim]) {
      result[dim] = after[dim];
    }
  }
  return result;
}

/// Indices outside of the table lead to its last row, which is no longer where
/// the operator would look for it.
static Value clampIndices(OpBuilder &builder, GatherOp gather, Value indices,
                          Value table) {
  GatherDimensionNumbersAttr dims = gather.getDimensionNumbers();
  auto before =
      cast<RankedTensorType>(gather.getOperand().getType()).getShape();
  auto after = cast<RankedTensorType>(table.getType()).getShape();
  auto type = cast<RankedTensorType>(indices.getType());
  auto integer = cast<IntegerType>(type.getElementType());
  APInt least = getFilledInteger(integer, Filling::Lowest);
  APInt most = getFilledInteger(integer, Filling::Highest);
  SmallVector<APInt> lower, upper;
  bool clamps = false;
  for (int64_t dim : dims.getStartIndexMap()) {
    bool isRow = before[dim] != after[dim] && gather.getSliceSizes()[dim] == 1;
    int64_t last = before[dim] - 1;
    clamps |= isRow;
    lower.push_back(isRow ? APInt::getZero(integer.getWidth()) : least);
    upper.push_back(isRow && most.ugt(static_cast<uint64_t>(last))
                        ? APInt(integer.getWidth(), last)
                        : most);
  }
  if (!clamps) {
    return indices;
  }
  Location loc = gather.getLoc();
  auto limit = [&](ArrayRef<APInt> values) -> Value {
    auto vector =
        RankedTensorType::get({static_cast<int64_t>(values.size())}, integer);
    if (dims.getIndexVectorDim() == type.getRank()) {
      auto scalar = RankedTensorType::get({}, integer);
      return ConstantOp::create(builder, loc, scalar,
                                DenseElementsAttr::get(scalar, values))
          .getResult();
    }
    Value constant = ConstantOp::create(builder, loc, vector,
                                        DenseElementsAttr::get(vector, values))
                         .getResult();
    return BroadcastInDimOp::create(
               builder, loc, type, constant,
               builder.getDenseI64ArrayAttr({dims.getIndexVectorDim()}))
        .getResult();
  };
  return ClampOp::create(builder, loc, type, limit(lower), indices,
                         limit(upper))
      .getResult();
}

/// Attributes that say something of sizes or of all elements.
static void adaptAttributes(Operation *op, Operation *padded) {
  llvm::TypeSwitch<Operation *>(padded)
      .Case<SliceOp>([&](SliceOp slice) {
        slice.setLimitIndices(
            getPaddedSizes(cast<SliceOp>(op).getLimitIndices(),
                           op->getOperand(0), padded->getOperand(0)));
      })
      .Case<DynamicSliceOp>([&](DynamicSliceOp slice) {
        slice.setSliceSizes(
            getPaddedSizes(cast<DynamicSliceOp>(op).getSliceSizes(),
                           op->getOperand(0), padded->getOperand(0)));
      })
      .Case<GatherOp>([&](GatherOp gather) {
        gather.setSliceSizes(getPaddedSizes(cast<GatherOp>(op).getSliceSizes(),
                                            op->getOperand(0),
                                            padded->getOperand(0)));
        if (op->getOperand(1).getType() != padded->getOperand(1).getType()) {
          gather.setIndicesAreSorted(false);
        }
      })
      .Case<ScatterOp>([&](ScatterOp scatter) {
        unsigned indices = scatter.getInputs().size();
        if (op->getOperand(indices).getType() !=
            padded->getOperand(indices).getType()) {
          scatter.setUniqueIndices(false);
          scatter.setIndicesAreSorted(false);
        }
      });
}

Operation *padOperator(OpBuilder &builder, Operation *op, ValueRange operands,
                       const LongerLoops &loops) {
  SmallVector<Value> inputs(operands);
  if (auto gather = dyn_cast<GatherOp>(op)) {
    inputs[1] = clampIndices(builder, gather, inputs[1], inputs[0]);
  }
  IRMapping mapping;
  Operation *padded = builder.clone(*op, mapping);
  padded->setOperands(inputs);
  for (auto [result, tensor] :
       llvm::zip(padded->getResults(), loops.rule.results)) {
    result.setType(loops.getType(result.getType(), tensor));
  }
  adaptAttributes(op, padded);
  return padded;
}

} // namespace mlir::alpa
