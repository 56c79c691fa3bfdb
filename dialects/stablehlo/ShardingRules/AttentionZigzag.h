//===- AttentionZigzag.h - Halves of blocks of a sequence -------*- C++ -*-===//
//
// Under a causal mask the last rows see all keys and the first ones hardly any.
// A device with a block of the sequence takes a half of a block from the front
// and one from the back, of n devices that with number i the halves i and
// 2n - 1 - i: of the keys of every other device it sees as many as every other
// one (Brandon et al., arXiv 2311.09431, on why; zigzag is the usual remedy).
//
//===----------------------------------------------------------------------===//

#ifndef DIALECTS_STABLEHLO_SHARDINGRULES_ATTENTIONZIGZAG_H
#define DIALECTS_STABLEHLO_SHARDINGRULES_ATTENTIONZIGZAG_H

#include "dialects/stablehlo/ShardingRules/AttentionBlocks.h"
#include <array>

namespace mlir::stablehlo {

/// What devices exchange for it along one factor, and where their halves stand.
class AttentionZigzag {
public:
  AttentionZigzag(BlockEmitter &emit, alpa::LocalContext &context,
                  unsigned factor)
      : emit(emit), context(context), factor(factor),
        numShards(context.getNumShards(factor)) {}

  /// For the block of a tensor that a device has the halves that it takes, the
  /// one from the front first; a tensor without the factor stays.
  Value toHalves(Value block, const alpa::TensorFactors &factors);
  /// The block again.
  Value fromHalves(Value halves, const alpa::TensorFactors &factors);

  /// Where in the whole sequence stands what begins at `begin` in two halves.
  ///
  /// \param first of the block of the device with these halves.
  Value getPlace(Value first, Value begin);

private:
  using Places = std::array<Value, 2>;

  /// The dimension of a tensor that the factor goes along, if one does.
  std::optional<int64_t> findDim(const alpa::TensorFactors &factors) const;
  int64_t getBlockSize() const { return context.getLocalSize(factor); }
  /// Where a block has its halves; of these one has an even number, and one an
  /// odd number behind it.
  Places getBlockPlaces();
  /// Where this device has taken those with an even and with an odd number.
  Places getTakenPlaces();
  /// Sends both halves of a value, if it has the factor: each kind to the place
  /// that it is taken to, or `isBack` to that in the block. Halves of one kind
  /// are from all devices, and go to all.
  ///
  /// \param getTarget from a device and the kind.
  Value exchange(Value value, const alpa::TensorFactors &factors, bool isBack,
                 function_ref<int64_t(int64_t, int64_t)> getTarget);

  BlockEmitter &emit;
  alpa::LocalContext &context;
  unsigned factor;
  int64_t numShards;
};

} // namespace mlir::stablehlo

#endif // DIALECTS_STABLEHLO_SHARDINGRULES_ATTENTIONZIGZAG_H
