//===- CutWindows.cpp - Windows over longer dimensions --------------------===//

#include "cpp/transforms/CutWindows.h"

#include "dialects/alpa/Alpa.h"
#include "dialects/stablehlo/ShardingRules/Convolution.h"
#include "dialects/stablehlo/ShardingRules/Halo.h"
#include "dialects/stablehlo/ShardingRules/SelectAndScatter.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/TypeSwitch.h"

namespace mlir::alpa {

using namespace stablehlo;

namespace {

/// A dimension of a window with the sizes that it had and those it gets.
struct LongerWindow {
  Window before;
  int64_t inputSize, numTaps;

  bool hasLongerInput() const { return inputSize != before.inputSize; }
  bool hasLongerTaps() const { return numTaps != before.numTaps; }

  /// As many outputs as have their blocks over blocks of the input; none where
  /// there is no such form.
  std::optional<int64_t> getOutputSize(const PaddingOptions &options) const {
    int64_t positions = inputSize * before.baseDilation;
    if (hasLongerTaps()) {
      return positions == numTaps * before.windowDilation
                 ? std::optional(before.outputSize)
                 : std::nullopt;
    }
    if (positions % before.stride == 0) {
      int64_t outputs = positions / before.stride;
      if (outputs == before.outputSize ||
          (hasLongerInput()
               ? options.canPad(before.outputSize, outputs)
               : options.isWorthwhile(before.outputSize, outputs))) {
        return outputs;
      }
    }
    return hasLongerInput() ? std::nullopt : std::optional(before.outputSize);
  }

  /// Whether outputs of the program have positions behind the input.
  bool readsBehind() const {
    return (before.outputSize - 1) * before.stride +
               (before.numTaps - 1) * before.windowDilation -
               before.lowPadding >
           (before.inputSize - 1) * before.baseDilation;
  }

  int64_t getHighPadding(int64_t outputSize) const {
    return (outputSize - 1) * before.stride +
           (numTaps - 1) * before.windowDilation - before.lowPadding -
           (inputSize - 1) * before.baseDilation;
  }
};

/// Whether dimensions that no window runs over are as they were.
bool areOthersSame(ArrayRef<int64_t> shape, Value value,
                   ArrayRef<int64_t> dims) {
  return llvm::all_of(llvm::enumerate(shape), [&](auto entry) {
    return entry.value() == getShapeOf(value)[entry.index()] ||
           llvm::is_contained(dims, static_cast<int64_t>(entry.index()));
  });
}

DenseIntElementsAttr withHighPadding(Builder &builder,
                                     std::optional<DenseIntElementsAttr> before,
                                     ArrayRef<int64_t> high) {
  auto count = static_cast<int64_t>(high.size());
  SmallVector<int64_t> padding(2 * count, 0);
  if (before) {
    llvm::copy(before->getValues<int64_t>(), padding.begin());
  }
  for (auto [index, size] : llvm::enumerate(high)) {
    padding[2 * index + 1] = size;
  }
  return DenseIntElementsAttr::get(
      RankedTensorType::get({count, 2}, builder.getI64Type()), padding);
}

/// Whether anything is longer than it was.
bool isAnyLonger(Operation *op, const CutForm &form) {
  return ArrayRef(form.result) != getShapeOf(op->getResult(0)) ||
         llvm::any_of(llvm::zip(op->getOperands(), form.operands),
                      [](const auto &entry) {
                        auto &[value, shape] = entry;
                        return ArrayRef(shape) != getShapeOf(value);
                      });
}

//===----------------------------------------------------------------------===//
// Pooling
//===----------------------------------------------------------------------===//

std::optional<LongerWindow> getWindow(ReduceWindowOp op, int64_t dim,
                                      int64_t inputSize) {
  std::optional<Padding> padding = getPadding(op.getPadding(), dim);
  if (!padding) {
    return std::nullopt;
  }
  Window window{getShapeOf(op.getInputs().front())[dim],
                getSizeAt(op.getWindowDimensions(), dim),
                getShapeOf(op->getResult(0))[dim]};
  window.stride = getSizeAt(op.getWindowStrides(), dim);
  window.lowPadding = padding->first;
  window.baseDilation = getSizeAt(op.getBaseDilations(), dim);
  window.windowDilation = getSizeAt(op.getWindowDilations(), dim);
  return LongerWindow{window, inputSize, window.numTaps};
}

std::optional<CutForm> getForm(ReduceWindowOp op, ArrayRef<Shape> operands,
                               const PaddingOptions &options) {
  unsigned numInputs = op.getInputs().size();
  CutForm form{llvm::to_vector(operands), Shape(getShapeOf(op->getResult(0))),
               SmallVector<Filling>(op->getNumOperands(), Filling::Anything)};
  bool readsBehind = false;
  for (auto [dim, result] : llvm::enumerate(form.result)) {
    int64_t size = 0;
    for (const Shape &shape : operands.take_front(numInputs)) {
      size = std::max(size, shape[dim]);
    }
    for (Shape &shape : MutableArrayRef(form.operands).take_front(numInputs)) {
      shape[dim] = size;
    }
    std::optional<LongerWindow> window = getWindow(op, dim, size);
    std::optional<int64_t> outputs =
        window ? window->getOutputSize(options) : std::nullopt;
    // The halo of a window over everything is everything.
    bool isAll = window && window->before.numTaps == window->before.inputSize &&
                 window->before.numTaps > 1;
    if (!outputs ||
        (isAll && (window->hasLongerInput() || *outputs != result))) {
      return std::nullopt;
    }
    readsBehind |= window->hasLongerInput() && window->readsBehind();
    result = *outputs;
  }
  for (auto [index, init] : llvm::enumerate(op.getInitValues())) {
    std::optional<Filling> filling = getFillingOf(init);
    if (readsBehind && !filling) {
      return std::nullopt;
    }
    form.fillings[index] = readsBehind ? *filling : Filling::Anything;
  }
  return form;
}

void setPadding(ReduceWindowOp before, ReduceWindowOp longer) {
  SmallVector<int64_t> high;
  for (auto [dim, size] :
       llvm::enumerate(getShapeOf(longer.getInputs().front()))) {
    high.push_back(getWindow(before, dim, size)
                       ->getHighPadding(getShapeOf(longer->getResult(0))[dim]));
  }
  Builder builder(before.getContext());
  longer.setPaddingAttr(withHighPadding(builder, before.getPadding(), high));
}

//===----------------------------------------------------------------------===//
// Convolutions
//===----------------------------------------------------------------------===//

std::optional<LongerWindow> getWindow(ConvolutionOp op, int64_t number,
                                      int64_t inputSize, int64_t numTaps) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  std::optional<Padding> padding = getPadding(op.getPadding(), number);
  if (!padding) {
    return std::nullopt;
  }
  Window window{
      getShapeOf(op.getLhs())[dims.getInputSpatialDimensions()[number]],
      getShapeOf(op.getRhs())[dims.getKernelSpatialDimensions()[number]],
      getShapeOf(op)[dims.getOutputSpatialDimensions()[number]]};
  window.stride = getSizeAt(op.getWindowStrides(), number);
  window.lowPadding = padding->first;
  window.baseDilation = getSizeAt(op.getLhsDilation(), number);
  window.windowDilation = getSizeAt(op.getRhsDilation(), number);
  return LongerWindow{window, inputSize, numTaps};
}

/// Taps that run backwards would begin with those that are not of the program.
bool isReversed(ConvolutionOp op, int64_t number) {
  std::optional<ArrayRef<bool>> reversal = op.getWindowReversal();
  return reversal && number < static_cast<int64_t>(reversal->size()) &&
         (*reversal)[number];
}

std::optional<CutForm> getForm(ConvolutionOp op, ArrayRef<Shape> operands,
                               const PaddingOptions &options) {
  ConvDimensionNumbersAttr dims = op.getDimensionNumbers();
  CutForm form{{operands[0], operands[1]},
               Shape(getShapeOf(op)),
               {Filling::Anything, Filling::Anything}};
  if (!areOthersSame(operands[0], op.getLhs(),
                     dims.getInputSpatialDimensions()) ||
      !areOthersSame(operands[1], op.getRhs(),
                     dims.getKernelSpatialDimensions())) {
    return std::nullopt;
  }
  for (auto [index, input, kernel, output] : llvm::enumerate(
           dims.getInputSpatialDimensions(), dims.getKernelSpatialDimensions(),
           dims.getOutputSpatialDimensions())) {
    auto number = static_cast<int64_t>(index);
    std::optional<LongerWindow> window =
        getWindow(op, number, operands[0][input], operands[1][kernel]);
    std::optional<int64_t> outputs =
        window ? window->getOutputSize(options) : std::nullopt;
    if (!outputs || (window->hasLongerTaps() && isReversed(op, number))) {
      return std::nullopt;
    }
    // What is beyond the input is zero, and so are taps that are not there;
    // they meet rows that may be anything otherwise.
    if (window->hasLongerTaps()) {
      form.fillings = {Filling::Zero, Filling::Zero};
    } else if (window->hasLongerInput() && window->readsBehind()) {
      form.fillings[0] = Filling::Zero;
    }
    form.result[output] = *outputs;
  }
  return form;
}

void setPadding(ConvolutionOp before, ConvolutionOp longer) {
  ConvDimensionNumbersAttr dims = before.getDimensionNumbers();
  SmallVector<int64_t> high;
  for (auto [number, input, kernel, output] : llvm::enumerate(
           dims.getInputSpatialDimensions(), dims.getKernelSpatialDimensions(),
           dims.getOutputSpatialDimensions())) {
    LongerWindow window = *getWindow(before, static_cast<int64_t>(number),
                                     getShapeOf(longer.getLhs())[input],
                                     getShapeOf(longer.getRhs())[kernel]);
    high.push_back(window.getHighPadding(getShapeOf(longer)[output]));
  }
  Builder builder(before.getContext());
  longer.setPaddingAttr(withHighPadding(builder, before.getPadding(), high));
}

//===----------------------------------------------------------------------===//
// The gradient of maximum pooling
//===----------------------------------------------------------------------===//

/// Padding behind the rows that makes as many windows as there are sources.
int64_t getHighPadding(SelectAndScatterOp op, int64_t dim, int64_t rows,
                       int64_t sources) {
  return (sources - 1) * getSizeAt(op.getWindowStrides(), dim) +
         getSizeAt(op.getWindowDimensions(), dim) -
         getPadding(op.getPadding(), dim)->first - rows;
}

/// Rows that are not of the program are never selected, and sources that are
/// not add nothing.
std::optional<CutForm> getForm(SelectAndScatterOp op, ArrayRef<Shape> operands,
                               const PaddingOptions &) {
  std::optional<double> least = getLeastSelected(op);
  if (!least || getReductionKind(op.getScatter()) != ReductionKind::Sum) {
    return std::nullopt;
  }
  CutForm form{llvm::to_vector(operands),
               operands[0],
               {*least < 0 ? Filling::Lowest : Filling::Highest, Filling::Zero,
                Filling::Anything}};
  for (auto [index, rows, sources] :
       llvm::enumerate(operands[0], operands[1])) {
    auto dim = static_cast<int64_t>(index);
    bool isLonger = rows != getShapeOf(op.getOperand())[dim] ||
                    sources != getShapeOf(op.getSource())[dim];
    std::optional<Padding> padding = getPadding(op.getPadding(), dim);
    if (!padding || padding->first < 0 || padding->second < 0 ||
        (isLonger && (rows != sources * getSizeAt(op.getWindowStrides(), dim) ||
                      getHighPadding(op, dim, rows, sources) < 0))) {
      return std::nullopt;
    }
  }
  return form;
}

void setPadding(SelectAndScatterOp before, SelectAndScatterOp longer) {
  SmallVector<int64_t> high;
  for (auto [index, rows, sources] : llvm::enumerate(
           getShapeOf(longer.getOperand()), getShapeOf(longer.getSource()))) {
    auto dim = static_cast<int64_t>(index);
    bool isSame = rows == getShapeOf(before.getOperand())[dim] &&
                  sources == getShapeOf(before.getSource())[dim];
    high.push_back(isSame ? getPadding(before.getPadding(), dim)->second
                          : getHighPadding(before, dim, rows, sources));
  }
  Builder builder(before.getContext());
  longer.setPaddingAttr(withHighPadding(builder, before.getPadding(), high));
  longer->setAttr(kExplicitPaddingAttrName, builder.getUnitAttr());
}

} // namespace

std::optional<CutForm> getWindowForm(Operation *op, ArrayRef<Shape> operands,
                                     const PaddingOptions &options) {
  std::optional<CutForm> form =
      llvm::TypeSwitch<Operation *, std::optional<CutForm>>(op)
          .Case<ReduceWindowOp, ConvolutionOp, SelectAndScatterOp>(
              [&](auto window) { return getForm(window, operands, options); })
          .Default(std::nullopt);
  return form && isAnyLonger(op, *form) ? form : std::nullopt;
}

SmallVector<Value> createLongerWindow(OpBuilder &builder, Operation *op,
                                      ValueRange operands,
                                      const CutForm &form) {
  Operation *longer = builder.clone(*op);
  longer->setOperands(operands);
  for (Value result : longer->getResults()) {
    result.setType(cast<RankedTensorType>(result.getType()).clone(form.result));
  }
  llvm::TypeSwitch<Operation *>(op)
      .Case<ReduceWindowOp, ConvolutionOp, SelectAndScatterOp>(
          [&](auto before) {
            setPadding(before, cast<decltype(before)>(longer));
          });
  return llvm::to_vector_of<Value>(longer->getResults());
}

} // namespace mlir::alpa
