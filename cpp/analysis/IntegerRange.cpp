//===- IntegerRange.cpp - Between which numbers integers lie --------------===//

#include "cpp/analysis/IntegerRange.h"

#include "dialects/stablehlo/ShardingRules/KnownValues.h"
#include "mlir/IR/Matchers.h"
#include "stablehlo/dialect/ChloOps.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

namespace mlir::alpa {

/// Longest chain of operators that is looked through.
static constexpr int kMaxDepth = 64;

/// Constants of more elements are not looked at one by one.
static constexpr int64_t kMaxElements = 1 << 16;

using MaybeRange = std::optional<IntegerRange>;

static RankedTensorType getTensor(Value value) {
  return dyn_cast<RankedTensorType>(value.getType());
}

MaybeRange getRangeOfType(Type element) {
  auto type = dyn_cast<IntegerType>(element);
  if (!type) {
    return std::nullopt;
  }
  unsigned width = type.getWidth();
  if (width == 1) {
    return IntegerRange{0, 1};
  }
  if (width > (type.isUnsigned() ? 32 : 64)) {
    return std::nullopt;
  }
  if (type.isUnsigned()) {
    return IntegerRange{0, static_cast<int64_t>(llvm::maxUIntN(width))};
  }
  return IntegerRange{llvm::minIntN(width), llvm::maxIntN(width)};
}

static bool contains(IntegerRange outer, IntegerRange inner) {
  return outer.least <= inner.least && inner.most <= outer.most;
}

static IntegerRange unite(IntegerRange left, IntegerRange right) {
  return {std::min(left.least, right.least), std::max(left.most, right.most)};
}

MaybeRange IntegerRanges::get(Value value) {
  value = stablehlo::getBeforeLoops(value);
  RankedTensorType type = getTensor(value);
  MaybeRange all = type ? getRangeOfType(type.getElementType()) : std::nullopt;
  if (!all || depth > kMaxDepth) {
    return all;
  }
  auto found = known.find(value);
  if (found == known.end()) {
    ++depth;
    IntegerRange made = compute(value, *all);
    --depth;
    found = known.try_emplace(value, made).first;
  }
  return found->second;
}

IntegerRange IntegerRanges::compute(Value value, IntegerRange all) {
  auto result = dyn_cast<OpResult>(value);
  if (!result) {
    return all;
  }
  MaybeRange made = computeMovement(result);
  if (!made) {
    made = computeReduction(result);
  }
  if (!made) {
    made = computeElementwise(result.getOwner());
  }
  return made && contains(all, *made) ? *made : all;
}

//===----------------------------------------------------------------------===//
// One element each
//===----------------------------------------------------------------------===//

static MaybeRange makeSum(IntegerRange left, IntegerRange right) {
  IntegerRange sum;
  bool wraps = llvm::AddOverflow(left.least, right.least, sum.least) ||
               llvm::AddOverflow(left.most, right.most, sum.most);
  return wraps ? std::nullopt : MaybeRange(sum);
}

static MaybeRange makeDifference(IntegerRange left, IntegerRange right) {
  IntegerRange difference;
  bool wraps = llvm::SubOverflow(left.least, right.most, difference.least) ||
               llvm::SubOverflow(left.most, right.least, difference.most);
  return wraps ? std::nullopt : MaybeRange(difference);
}

static MaybeRange makeProduct(IntegerRange left, IntegerRange right) {
  std::array<int64_t, 4> corners;
  bool wraps = llvm::MulOverflow(left.least, right.least, corners[0]) ||
               llvm::MulOverflow(left.least, right.most, corners[1]) ||
               llvm::MulOverflow(left.most, right.least, corners[2]) ||
               llvm::MulOverflow(left.most, right.most, corners[3]);
  auto [least, most] = std::minmax_element(corners.begin(), corners.end());
  return wraps ? std::nullopt : MaybeRange(IntegerRange{*least, *most});
}

static MaybeRange makeQuotient(IntegerRange left, IntegerRange right) {
  bool isByPositive = right.least > 0 && right.least == right.most;
  return isByPositive ? MaybeRange(IntegerRange{left.least / right.least,
                                                left.most / right.least})
                      : std::nullopt;
}

/// The sign is that of the dividend.
static MaybeRange makeRemainder(IntegerRange left, IntegerRange right) {
  if (left.least < 0 || right.least <= 0) {
    return std::nullopt;
  }
  return IntegerRange{0, std::min(left.most, right.most - 1)};
}

/// A comparison: 1 where it holds for whatever the operands are.
static IntegerRange makeComparison(stablehlo::ComparisonDirection direction,
                                   IntegerRange left, IntegerRange right) {
  using Direction = stablehlo::ComparisonDirection;
  IntegerRange yes{1, 1}, no{0, 0}, either{0, 1};
  switch (direction) {
  case Direction::EQ:
    return left.most < right.least || right.most < left.least ? no
           : left == right && left.least == left.most         ? yes
                                                              : either;
  case Direction::NE:
    return left.most < right.least || right.most < left.least ? yes
           : left == right && left.least == left.most         ? no
                                                              : either;
  case Direction::LT:
    return left.most < right.least    ? yes
           : left.least >= right.most ? no
                                      : either;
  case Direction::LE:
    return left.most <= right.least  ? yes
           : left.least > right.most ? no
                                     : either;
  case Direction::GT:
    return makeComparison(Direction::LT, right, left);
  case Direction::GE:
    return makeComparison(Direction::LE, right, left);
  }
  llvm_unreachable("all directions are compared");
}

/// What is the same on both sides.
static IntegerRange makeReflexive(stablehlo::ComparisonDirection direction) {
  using Direction = stablehlo::ComparisonDirection;
  bool holds = direction == Direction::EQ || direction == Direction::LE ||
               direction == Direction::GE;
  return holds ? IntegerRange{1, 1} : IntegerRange{0, 0};
}

/// An operator on booleans.
static MaybeRange makeLogic(Operation *op, ArrayRef<IntegerRange> x) {
  return llvm::TypeSwitch<Operation *, MaybeRange>(op)
      .Case([&](stablehlo::AndOp) {
        return IntegerRange{x[0].least & x[1].least, x[0].most & x[1].most};
      })
      .Case([&](stablehlo::OrOp) {
        return IntegerRange{x[0].least | x[1].least, x[0].most | x[1].most};
      })
      .Case([&](stablehlo::NotOp) {
        return IntegerRange{1 - x[0].most, 1 - x[0].least};
      })
      .Default([](Operation *) { return std::nullopt; });
}

static MaybeRange makeArithmetic(Operation *op, ArrayRef<IntegerRange> x) {
  return llvm::TypeSwitch<Operation *, MaybeRange>(op)
      .Case([&](stablehlo::AddOp) { return makeSum(x[0], x[1]); })
      .Case([&](stablehlo::SubtractOp) { return makeDifference(x[0], x[1]); })
      .Case([&](stablehlo::MulOp) { return makeProduct(x[0], x[1]); })
      .Case([&](stablehlo::DivOp) { return makeQuotient(x[0], x[1]); })
      .Case([&](stablehlo::RemOp) { return makeRemainder(x[0], x[1]); })
      .Case([&](stablehlo::MaxOp) {
        return IntegerRange{std::max(x[0].least, x[1].least),
                            std::max(x[0].most, x[1].most)};
      })
      .Case([&](stablehlo::MinOp) {
        return IntegerRange{std::min(x[0].least, x[1].least),
                            std::min(x[0].most, x[1].most)};
      })
      .Case([&](stablehlo::ClampOp) {
        return IntegerRange{
            std::min(std::max(x[1].least, x[0].least), x[2].least),
            std::min(std::max(x[1].most, x[0].most), x[2].most)};
      })
      .Default([](Operation *) { return std::nullopt; });
}

MaybeRange IntegerRanges::computeElementwise(Operation *op) {
  SmallVector<IntegerRange, 3> x;
  for (Value operand : op->getOperands()) {
    MaybeRange range = get(operand);
    if (!range) {
      // Of numbers of other types, nothing is known: NaN is not equal to
      // itself.
      return std::nullopt;
    }
    x.push_back(*range);
  }
  if (auto compared = dyn_cast<stablehlo::CompareOp>(op)) {
    return compared.getLhs() == compared.getRhs()
               ? makeReflexive(compared.getComparisonDirection())
               : makeComparison(compared.getComparisonDirection(), x[0], x[1]);
  }
  if (isa<stablehlo::SelectOp>(op)) {
    bool isKnown = x[0].least == x[0].most;
    return isKnown ? x[0].least ? x[1] : x[2] : unite(x[1], x[2]);
  }
  RankedTensorType type = op->getNumResults() == 1 ? getTensor(op->getResult(0))
                                                   : RankedTensorType();
  bool isBoolean = type && type.getElementType().isInteger(1);
  if (isa<stablehlo::ConvertOp>(op)) {
    // Of numbers that a type does not hold, the caller knows nothing; of
    // booleans, all but 0 are true.
    return isBoolean && !contains({0, 1}, x[0]) ? std::nullopt
                                                : MaybeRange(x[0]);
  }
  return isBoolean ? makeLogic(op, x) : makeArithmetic(op, x);
}

//===----------------------------------------------------------------------===//
// Elements in other places
//===----------------------------------------------------------------------===//

static MaybeRange getRangeOfConstant(DenseIntElementsAttr constant) {
  if (constant.empty() ||
      (!constant.isSplat() && constant.getNumElements() > kMaxElements)) {
    return std::nullopt;
  }
  Type element = constant.getElementType();
  bool isSigned = !element.isUnsignedInteger() && !element.isInteger(1);
  auto read = [&](const llvm::APInt &number) {
    return isSigned ? number.getSExtValue()
                    : static_cast<int64_t>(number.getLimitedValue(
                          std::numeric_limits<int64_t>::max()));
  };
  if (constant.isSplat()) {
    int64_t number = read(constant.getSplatValue<llvm::APInt>());
    return IntegerRange{number, number};
  }
  IntegerRange range{std::numeric_limits<int64_t>::max(),
                     std::numeric_limits<int64_t>::min()};
  for (const llvm::APInt &number : constant.getValues<llvm::APInt>()) {
    range = unite(range, {read(number), read(number)});
  }
  return range;
}

/// Whether a scatter writes its updates over what there was.
static bool overwrites(stablehlo::ScatterOp op) {
  Block &body = op.getUpdateComputation().front();
  unsigned count = op.getInputs().size();
  return llvm::all_of(
      llvm::enumerate(body.getTerminator()->getOperands()), [&](auto made) {
        return made.value() == body.getArgument(count + made.index());
      });
}

/// Results that have elements of operands, and no others.
MaybeRange IntegerRanges::computeMovement(OpResult result) {
  Operation *op = result.getOwner();
  DenseIntElementsAttr constant;
  if (matchPattern(op, m_Constant(&constant))) {
    return getRangeOfConstant(constant);
  }
  if (auto iota = dyn_cast<stablehlo::IotaOp>(op)) {
    int64_t size = getTensor(result).getDimSize(iota.getIotaDimension());
    return IntegerRange{0, std::max<int64_t>(size - 1, 0)};
  }
  if (auto top = dyn_cast<chlo::TopKOp>(op)) {
    return result.getResultNumber() == 0
               ? get(top.getOperand())
               : MaybeRange(IntegerRange{
                     0, std::max<int64_t>(
                            getTensor(top.getOperand()).getShape().back() - 1,
                            0)});
  }
  if (isa<stablehlo::BroadcastInDimOp, stablehlo::ReshapeOp,
          stablehlo::TransposeOp, stablehlo::SliceOp, stablehlo::ReverseOp,
          stablehlo::GatherOp, stablehlo::DynamicSliceOp>(op)) {
    return get(op->getOperand(0));
  }
  if (isa<stablehlo::SortOp, stablehlo::OptimizationBarrierOp>(op)) {
    return get(op->getOperand(result.getResultNumber()));
  }
  if (auto scatter = dyn_cast<stablehlo::ScatterOp>(op)) {
    unsigned number = result.getResultNumber();
    MaybeRange before = get(scatter.getInputs()[number]),
               update = get(scatter.getUpdates()[number]);
    return overwrites(scatter) && before && update
               ? MaybeRange(unite(*before, *update))
               : std::nullopt;
  }
  if (isa<stablehlo::PadOp, stablehlo::ConcatenateOp>(op)) {
    MaybeRange range = get(op->getOperand(0));
    for (Value operand : op->getOperands()) {
      MaybeRange other = get(operand);
      range = range && other ? MaybeRange(unite(*range, *other)) : std::nullopt;
    }
    return range;
  }
  return std::nullopt;
}

//===----------------------------------------------------------------------===//
// Reductions
//===----------------------------------------------------------------------===//

/// Whether what a reduction of several tensors makes of one of them is some of
/// its elements: positions of the largest.
static bool picks(Value made, BlockArgument left, BlockArgument right) {
  if (made == left || made == right) {
    return true;
  }
  Operation *op = made.getDefiningOp();
  if (auto select = dyn_cast_or_null<stablehlo::SelectOp>(op)) {
    return picks(select.getOnTrue(), left, right) &&
           picks(select.getOnFalse(), left, right);
  }
  bool isBoolean = getTensor(made).getElementType().isInteger(1);
  return (isa_and_present<stablehlo::MinOp, stablehlo::MaxOp>(op) ||
          (isBoolean &&
           isa_and_present<stablehlo::AndOp, stablehlo::OrOp>(op))) &&
         picks(op->getOperand(0), left, right) &&
         picks(op->getOperand(1), left, right);
}

MaybeRange IntegerRanges::computeReduction(OpResult result) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(result.getOwner());
  if (!reduce) {
    return std::nullopt;
  }
  unsigned number = result.getResultNumber();
  unsigned count = reduce.getInputs().size();
  Block &body = reduce.getBody().front();
  MaybeRange input = get(reduce.getInputs()[number]),
             start = get(reduce.getInitValues()[number]);
  bool isPicked =
      input && start &&
      picks(body.getTerminator()->getOperand(number), body.getArgument(number),
            body.getArgument(count + number));
  return isPicked ? MaybeRange(unite(*input, *start)) : std::nullopt;
}

} // namespace mlir::alpa
