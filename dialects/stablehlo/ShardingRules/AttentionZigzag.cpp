//===- AttentionZigzag.cpp - Halves of blocks of a sequence ---------------===//

#include "dialects/stablehlo/ShardingRules/AttentionZigzag.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/Sequence.h"

using namespace mlir;
using namespace mlir::stablehlo;

std::optional<int64_t>
AttentionZigzag::findDim(const alpa::TensorFactors &factors) const {
  const alpa::DimFactors *dim = llvm::find(factors, alpa::DimFactors{factor});
  return dim == factors.end() ? std::nullopt
                              : std::optional<int64_t>(dim - factors.begin());
}

Value AttentionZigzag::toHalves(Value block,
                                const alpa::TensorFactors &factors) {
  auto getTaker = [&](int64_t device, int64_t kind) {
    int64_t half = 2 * device + kind;
    return half < numShards ? half : 2 * numShards - 1 - half;
  };
  return exchange(block, factors, /*isBack=*/false, getTaker);
}

Value AttentionZigzag::fromHalves(Value halves,
                                  const alpa::TensorFactors &factors) {
  auto getOwner = [&](int64_t device, int64_t kind) {
    int64_t half = device % 2 == kind ? device : 2 * numShards - 1 - device;
    return half / 2;
  };
  return exchange(halves, factors, /*isBack=*/true, getOwner);
}

Value AttentionZigzag::getPlace(Value first, Value begin) {
  int64_t half = getBlockSize() / 2;
  Value front = emit.binary<DivOp>(first, emit.index(2));
  Value back =
      emit.binary<SubtractOp>(emit.index((2 * numShards - 2) * half), front);
  Value isFront =
      emit.compare(begin, emit.index(half), ComparisonDirection::LT);
  return emit.binary<AddOp>(emit.select(isFront, front, back), begin);
}

AttentionZigzag::Places AttentionZigzag::getBlockPlaces() {
  return {emit.index(0), emit.index(getBlockSize() / 2)};
}

AttentionZigzag::Places AttentionZigzag::getTakenPlaces() {
  int64_t half = getBlockSize() / 2;
  Value number = emit.binary<DivOp>(
      context.getOffset(factor, emit.getBuilder().getI32Type()),
      emit.index(getBlockSize()));
  Value even = emit.binary<MulOp>(emit.binary<AndOp>(number, emit.index(1)),
                                  emit.index(half));
  return {even, emit.binary<SubtractOp>(emit.index(half), even)};
}

Value AttentionZigzag::exchange(
    Value value, const alpa::TensorFactors &factors, bool isBack,
    function_ref<int64_t(int64_t, int64_t)> getTarget) {
  std::optional<int64_t> dim = findDim(factors);
  if (!dim) {
    return value;
  }
  Places from = getBlockPlaces(), to = getTakenPlaces();
  if (isBack) {
    std::swap(from, to);
  }
  Value made = value;
  for (int64_t kind : {0, 1}) {
    SmallVector<int64_t> targets =
        llvm::map_to_vector(llvm::seq(numShards), [&](int64_t device) {
          return getTarget(device, kind);
        });
    Value half = emit.slice(value, *dim, from[kind], getBlockSize() / 2);
    // Of two devices, each keeps what has an even number.
    if (!llvm::is_sorted(targets)) {
      half = context.permute(half, targets, factor);
    }
    made = emit.update(made, half, *dim, to[kind]);
  }
  return made;
}
