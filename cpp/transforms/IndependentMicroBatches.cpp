//===- IndependentMicroBatches.cpp - Batches of their own -----------------===//

#include "cpp/transforms/IndependentMicroBatches.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/transforms/Erasure.h"
#include "cpp/transforms/MicroBatchStates.h"
#include "dialects/alpa/Alpa.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

namespace {

/// The custom call that asks for the number of the micro-batch.
constexpr llvm::StringLiteral kPositionTarget = "alpa.micro_batch";

/// The number as a tensor of one element type, all of its elements.
DenseElementsAttr getSplat(RankedTensorType type, double number) {
  Type element = type.getElementType();
  if (auto complex = dyn_cast<ComplexType>(element)) {
    Type real = complex.getElementType();
    std::complex<llvm::APFloat> value(FloatAttr::get(real, number).getValue(),
                                      FloatAttr::get(real, 0).getValue());
    return DenseElementsAttr::get(type, ArrayRef(value));
  }
  return DenseElementsAttr::get(type,
                                FloatAttr::get(element, number).getValue());
}

/// What sums of products with a weight are made in: nothing below 32 bits, in
/// which counts are not exact.
RankedTensorType getWideType(RankedTensorType type) {
  Type element = type.getElementType();
  bool isNarrow =
      isa<FloatType>(element) && element.getIntOrFloatBitWidth() < 32;
  return isNarrow ? type.clone(Float32Type::get(type.getContext())) : type;
}

class IndependentJoining {
public:
  IndependentJoining(func::FuncOp function, const MicroBatchOptions &options)
      : function(function), options(options), builder(function.getContext()) {}

  LogicalResult run() {
    Block &block = function.getBody().front();
    addPosition(block);
    for (int64_t index : options.batch) {
      ofBatch.insert(block.getArgument(index));
      function.setArgAttr(index, kBatchAttrName,
                          builder.getI64IntegerAttr(index));
    }
    addDependents(block, ofBatch);
    FailureOr<Operation *> barrier = findBarrier(block);
    if (failed(barrier) || failed(findWeight(block, *barrier))) {
      return failure();
    }
    builder.setInsertionPoint(*barrier);
    for (auto [index, operand, result] :
         llvm::enumerate((*barrier)->getOperands(), (*barrier)->getResults())) {
      Value joined = operand;
      if (ofBatch.contains(operand) && !result.use_empty()) {
        joined = join(operand, index);
      }
      if (!joined) {
        return failure();
      }
      result.replaceAllUsesWith(joined);
    }
    (*barrier)->erase();
    eraseUnused(block);
    return success();
  }

private:
  /// What asks for the number of the micro-batch uses an argument.
  void addPosition(Block &block) {
    SmallVector<stablehlo::CustomCallOp> calls;
    for (auto call : block.getOps<stablehlo::CustomCallOp>()) {
      if (call.getCallTargetName() == kPositionTarget) {
        calls.push_back(call);
      }
    }
    if (calls.empty()) {
      return;
    }
    unsigned number = function.getNumArguments();
    NamedAttrList attributes;
    attributes.set(kMicroBatchAttrName, builder.getI64IntegerAttr(0));
    (void)function.insertArgument(
        number, calls.front().getResult(0).getType(),
        attributes.getDictionary(builder.getContext()), function.getLoc());
    Value position = block.getArgument(number);
    for (stablehlo::CustomCallOp call : calls) {
      call.getResult(0).replaceAllUsesWith(position);
      call.erase();
    }
    ofBatch.insert(position);
  }

  FailureOr<Operation *> findBarrier(Block &block) {
    SmallVector<Operation *> barriers;
    for (Operation &op : block) {
      if (isGradientBarrier(&op)) {
        barriers.push_back(&op);
      }
    }
    if (barriers.size() != 1) {
      return emitError(function.getLoc())
             << "independent micro-batches end where gradients are, and there "
                "are "
             << barriers.size()
             << " of stablehlo_alpa.grad or value_and_grad in the function, "
                "not 1";
    }
    return barriers.front();
  }

  /// The weight of one micro-batch, and its sum.
  LogicalResult findWeight(Block &block, Operation *barrier) {
    if (options.reduction != Reduction::kWeighted) {
      return success();
    }
    Value value = block.getTerminator()->getOperand(options.weight);
    auto refuse = [&] {
      return emitError(value.getLoc())
             << "result " << options.weight
             << " is the weight of independent micro-batches: ";
    };
    auto result = dyn_cast<OpResult>(value);
    if (!result || result.getOwner() != barrier) {
      return refuse() << "it must leave the differentiated function of "
                         "stablehlo_alpa.value_and_grad(has_aux=True) and be "
                         "returned as it is";
    }
    auto type = cast<RankedTensorType>(value.getType());
    if (type.getRank() != 0 || isa<ComplexType>(type.getElementType()) ||
        type.getElementType().isInteger(1)) {
      return refuse() << "it must be one real number, and has type " << type;
    }
    weight = barrier->getOperand(result.getResultNumber());
    builder.setInsertionPoint(barrier);
    weightSum = weight;
    if (ofBatch.contains(weight)) {
      weightSum = AccumulateOp::create(builder, weight.getLoc(), weight);
    } else {
      // The same for all, and so is the weight of each.
      weight = nullptr;
    }
    return success();
  }

  Value join(Value value, unsigned index) {
    auto type = cast<RankedTensorType>(value.getType());
    Location loc = value.getLoc();
    if (options.reduction == Reduction::kSum) {
      return AccumulateOp::create(builder, loc, value);
    }
    if (weight && value == weight) {
      return weightSum;
    }
    if (!isa<FloatType, ComplexType>(type.getElementType())) {
      emitError(loc)
          << "value " << index << " that leaves the differentiated function "
          << "has type " << type << ", which has no mean over "
          << options.numMicroBatches
          << " micro-batches: return a floating-point number, or use "
             "reduction=\"sum\"";
      return {};
    }
    if (weight) {
      return joinWeighted(value, type);
    }
    Value sum = AccumulateOp::create(builder, loc, value);
    auto count = static_cast<double>(options.numMicroBatches);
    auto constant =
        stablehlo::ConstantOp::create(builder, loc, getSplat(type, count));
    return stablehlo::DivOp::create(builder, loc, sum, constant);
  }

  /// The sum of products with the weight over the sum of weights.
  Value joinWeighted(Value value, RankedTensorType type) {
    Location loc = value.getLoc();
    RankedTensorType wide = getWideType(type);
    Value product = stablehlo::MulOp::create(builder, loc, convert(value, wide),
                                             spread(weight, wide));
    Value sum = AccumulateOp::create(builder, loc, product);
    Value mean =
        stablehlo::DivOp::create(builder, loc, sum, spread(weightSum, wide));
    return convert(mean, type);
  }

  Value convert(Value value, RankedTensorType type) {
    if (value.getType() == type) {
      return value;
    }
    return stablehlo::ConvertOp::create(builder, value.getLoc(), type, value);
  }

  /// A scalar as all elements of a type.
  Value spread(Value scalar, RankedTensorType type) {
    Value converted =
        convert(scalar, RankedTensorType::get({}, type.getElementType()));
    return stablehlo::BroadcastInDimOp::create(
        builder, scalar.getLoc(), type, converted,
        builder.getDenseI64ArrayAttr({}));
  }

  func::FuncOp function;
  const MicroBatchOptions &options;
  OpBuilder builder;
  llvm::DenseSet<Value> ofBatch;
  Value weight;
  Value weightSum;
};

} // namespace

LogicalResult joinIndependent(func::FuncOp function,
                              const MicroBatchOptions &options) {
  return IndependentJoining(function, options).run();
}

} // namespace mlir::alpa
