//===- GatherRaggedExchanges.cpp - Exchanges of rows by all-gathers -------===//

#include "passes/Passes.h"

#include "cpp/analysis/ManualVolumes.h"
#include "dialects/stablehlo/ShardingRules/AttentionBlocks.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_GATHERRAGGEDEXCHANGES
#include "passes/Passes.h.inc"

namespace {

/// Rows of the device that gets them: where they lie among those of all devices
/// side by side, where they go to, and how many there are, a `tensor<n x i32>`
/// each, of the pieces that devices send it.
struct Pieces {
  Value sources, targets, sizes;
};

/// Writes one exchange of rows.
///
///   ragged_all_to_all(operand, output, input_offsets, send_sizes,
///                     output_offsets, recv_sizes)
///
/// Piece p = peer * pieces + i is `send_sizes[p]` rows of the operand from
/// `input_offsets[p]` on, which the peer puts at `output_offsets[p]`.
class Exchange {
public:
  Exchange(stablehlo::CustomCallOp op, DenseIntElementsAttr groups)
      : op(op), builder(op), emit(builder, op.getLoc()), groups(groups),
        numDevices(groups.getType().getShape().back()) {}

  void rewrite() {
    Value output = op.getOperand(1);
    Value rows = getRows(getPieces());
    // What nobody sends is what the place had.
    Value all = concatenate(gather(op.getOperand(0)), output);
    op->getResult(0).replaceAllUsesWith(take(all, rows));
    op->erase();
  }

private:
  static RankedTensorType getType(Value value) {
    return cast<RankedTensorType>(value.getType());
  }

  RankedTensorType indices(ArrayRef<int64_t> shape) {
    return RankedTensorType::get(shape, builder.getI32Type());
  }

  Value constant(ArrayRef<int32_t> numbers) {
    auto type = indices({static_cast<int64_t>(numbers.size())});
    return stablehlo::ConstantOp::create(builder, op.getLoc(), type,
                                         DenseElementsAttr::get(type, numbers));
  }

  Value splat(int32_t number, RankedTensorType type) {
    return emit.fill(emit.index(number), type);
  }

  Value reshape(Value value, ArrayRef<int64_t> shape) {
    return stablehlo::ReshapeOp::create(builder, op.getLoc(),
                                        getType(value).clone(shape), value);
  }

  /// A vector along dimension `dim`.
  Value lay(Value vector, RankedTensorType type, int64_t dim) {
    return stablehlo::BroadcastInDimOp::create(
        builder, op.getLoc(), type, vector,
        builder.getDenseI64ArrayAttr({dim}));
  }

  Value concatenate(Value lhs, Value rhs) {
    SmallVector<int64_t> shape(getType(lhs).getShape());
    shape[0] += getType(rhs).getDimSize(0);
    return stablehlo::ConcatenateOp::create(
        builder, op.getLoc(), getType(lhs).clone(shape), ValueRange{lhs, rhs},
        builder.getI64IntegerAttr(0));
  }

  /// What all devices of the group have, side by side.
  Value gather(Value value) {
    SmallVector<int64_t> shape(getType(value).getShape());
    shape[0] *= numDevices;
    auto config = op->getAttrOfType<DictionaryAttr>("backend_config");
    auto channel = config.getAs<IntegerAttr>("channel_id");
    // Type 1 is device to device.
    auto handle = stablehlo::ChannelHandleAttr::get(
        builder.getContext(), channel ? channel.getInt() : 1, 1);
    return stablehlo::AllGatherOp::create(
               builder, op.getLoc(), TypeRange(getType(value).clone(shape)),
               ValueRange(value), builder.getI64IntegerAttr(0), groups, handle,
               builder.getUnitAttr())
        .getResult(0);
  }

  /// The position of this device in its group, a scalar.
  Value getPosition() {
    SmallVector<int32_t> positions;
    for (auto [index, device] : llvm::enumerate(groups.getValues<int64_t>())) {
      positions.resize(std::max<size_t>(positions.size(), device + 1));
      positions[device] = static_cast<int32_t>(index) % numDevices;
    }
    Value device = stablehlo::PartitionIdOp::create(
        builder, op.getLoc(),
        RankedTensorType::get({},
                              builder.getIntegerType(32, /*isSigned=*/false)));
    Value index = emit.convert(device, builder.getI32Type());
    return reshape(emit.slice(constant(positions), 0, index, 1), {});
  }

  /// What devices send this one, of one of their operands.
  Value getReceived(unsigned operand, Value position) {
    Value own = emit.convert(op.getOperand(operand), builder.getI32Type());
    int64_t count = getType(own).getDimSize(0);
    Value all = reshape(gather(own), {numDevices, count});
    int64_t pieces = count / numDevices;
    Value first = emit.binary<stablehlo::MulOp>(
        position, emit.index(static_cast<int32_t>(pieces)));
    return reshape(emit.slice(all, 1, first, pieces), {count});
  }

  Pieces getPieces() {
    Value position = getPosition();
    Value sources = getReceived(2, position);
    auto rows = static_cast<int32_t>(getType(op.getOperand(0)).getDimSize(0));
    int64_t count = getType(sources).getDimSize(0);
    SmallVector<int32_t> before;
    for (int64_t piece = 0; piece < count; ++piece) {
      before.push_back(static_cast<int32_t>(piece / (count / numDevices)) *
                       rows);
    }
    sources = emit.binary<stablehlo::AddOp>(sources, constant(before));
    return {sources, getReceived(4, position), getReceived(3, position)};
  }

  /// Per row of the result its place in the rows of all devices and then those
  /// of the output, a `tensor<rows x i32>`.
  Value getRows(const Pieces &pieces) {
    int64_t numRows = getType(op.getOperand(1)).getDimSize(0);
    int64_t count = getType(pieces.sizes).getDimSize(0);
    RankedTensorType type = indices({numRows, count});
    Value row = stablehlo::IotaOp::create(builder, op.getLoc(), type,
                                          builder.getI64IntegerAttr(0));
    Value within =
        emit.binary<stablehlo::SubtractOp>(row, lay(pieces.targets, type, 1));
    Value isSent = emit.binary<stablehlo::AndOp>(
        emit.compare(within, splat(0, type),
                     stablehlo::ComparisonDirection::GE),
        emit.compare(within, lay(pieces.sizes, type, 1),
                     stablehlo::ComparisonDirection::LT));
    Value source =
        emit.binary<stablehlo::AddOp>(within, lay(pieces.sources, type, 1));
    Value none = splat(-1, type);
    Value found = reduceToGreatest(emit.select(isSent, source, none));
    auto others = static_cast<int32_t>(getType(op.getOperand(0)).getDimSize(0) *
                                       numDevices);
    Value own = stablehlo::IotaOp::create(
        builder, op.getLoc(), indices({numRows}), builder.getI64IntegerAttr(0));
    own = emit.binary<stablehlo::AddOp>(own, splat(others, indices({numRows})));
    Value isKept = emit.compare(found, splat(0, indices({numRows})),
                                stablehlo::ComparisonDirection::LT);
    return emit.select(isKept, own, found);
  }

  Value reduceToGreatest(Value value) {
    RankedTensorType type = getType(value), scalar = indices({});
    auto made = stablehlo::ReduceOp::create(
        builder, op.getLoc(), TypeRange(indices({type.getDimSize(0)})),
        ValueRange(value), ValueRange(emit.index(-1)),
        builder.getDenseI64ArrayAttr({1}));
    OpBuilder::InsertionGuard guard(builder);
    Block *body = builder.createBlock(&made.getBody(), {}, {scalar, scalar},
                                      {op.getLoc(), op.getLoc()});
    stablehlo::ReturnOp::create(
        builder, op.getLoc(),
        emit.binary<stablehlo::MaxOp>(body->getArgument(0),
                                      body->getArgument(1)));
    return made->getResult(0);
  }

  /// Rows of `value`.
  Value take(Value value, Value rows) {
    RankedTensorType type = getType(value);
    int64_t numRows = getType(rows).getDimSize(0);
    SmallVector<int64_t> sizes(type.getShape()), shape(type.getShape());
    sizes[0] = 1;
    shape[0] = numRows;
    auto inner = llvm::to_vector(llvm::seq<int64_t>(1, type.getRank()));
    auto dims = stablehlo::GatherDimensionNumbersAttr::get(
        builder.getContext(), inner, /*collapsedSliceDims=*/{0}, {}, {},
        /*startIndexMap=*/{0}, /*indexVectorDim=*/1);
    return stablehlo::GatherOp::create(builder, op.getLoc(), type.clone(shape),
                                       value, reshape(rows, {numRows, 1}), dims,
                                       builder.getDenseI64ArrayAttr(sizes));
  }

  stablehlo::CustomCallOp op;
  OpBuilder builder;
  stablehlo::BlockEmitter emit;
  DenseIntElementsAttr groups;
  int64_t numDevices;
};

/// Whether the call has the operands of an exchange, of static shapes, whose
/// offsets are in equal parts for the devices of a group, and groups that are
/// equally large.
bool isExchange(stablehlo::CustomCallOp op, DenseIntElementsAttr groups) {
  if (!groups || groups.empty() || op->getNumOperands() != 6 ||
      op->getNumResults() != 1 ||
      llvm::any_of(groups.getValues<int64_t>(),
                   [](int64_t device) { return device < 0; })) {
    return false;
  }
  int64_t numDevices = groups.getType().getShape().back();
  for (auto [index, operand] : llvm::enumerate(op->getOperands())) {
    auto type = dyn_cast<RankedTensorType>(operand.getType());
    if (!type || !type.hasStaticShape() || type.getRank() == 0 ||
        (index > 1 && (type.getRank() != 1 || type.getDimSize(0) == 0 ||
                       type.getDimSize(0) % numDevices != 0))) {
      return false;
    }
  }
  auto getRows = [&](unsigned operand) {
    return cast<RankedTensorType>(op.getOperand(operand).getType())
        .getDimSize(0);
  };
  // Rows are counted in 32 bits.
  return llvm::isInt<32>(numDevices * getRows(0) + getRows(1));
}

struct GatherRaggedExchanges
    : impl::GatherRaggedExchangesBase<GatherRaggedExchanges> {
  void runOnOperation() override {
    getOperation().walk([](stablehlo::CustomCallOp op) {
      DenseIntElementsAttr groups = getRaggedGroups(op);
      if (op.getCallTargetName() == kRaggedAllToAllTarget &&
          isExchange(op, groups)) {
        Exchange(op, groups).rewrite();
      }
    });
  }
};

} // namespace
} // namespace mlir::alpa
