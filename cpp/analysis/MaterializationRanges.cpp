//===- MaterializationRanges.cpp - From where to where values lie ---------===//

#include "cpp/analysis/ArgumentOrders.h"
#include "cpp/analysis/ConvolutionPadding.h"
#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/MemoryOrder.h"
#include "cpp/analysis/Readers.h"
#include "cpp/analysis/SplitSums.h"
#include "cpp/analysis/Tiles.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// How much larger the padded form of a tensor may be. Heuristic.
static constexpr double kPadding = 1.1;

/// How much XLA for GPU copies beside a gather of a byte, by its own estimates
/// of both: what the links and the memory of an H100 take, with what launches
/// cost. Heuristic.
static constexpr double kCopiedBesideGather = 6;

/// A copy is made where it is first read. Nothing waits for those of what is
/// returned: from the last gather backwards, XLA for GPU puts as many beside
/// each as it takes time for.
void Materialization::placeReturnedCopies() {
  SmallVector<Value> gathered;
  for (auto &[source, range] : copies) {
    if (points.lookup(source.getParentBlock()->getTerminator()) ==
        range.first) {
      gathered.push_back(source);
    }
  }
  if (options.isLocal && options.backend == Backend::Tpu) {
    return;
  }
  auto getTime = [&](Value value) {
    return points.lookup(value.getDefiningOp());
  };
  llvm::sort(gathered, [&](Value left, Value right) {
    return getTime(left) < getTime(right);
  });
  for (auto [order, value] : llvm::enumerate(gathered)) {
    copyOrders[value] = order;
  }
  ArrayRef<Value> waiting = gathered;
  for (Value beside : llvm::reverse(gathered)) {
    int start = getTime(beside) + 1;
    // Its own copy waits for it, if no later gather takes longer.
    if (!waiting.empty() && waiting.back() == beside) {
      copies[beside].first = start;
      waiting = waiting.drop_back();
    }
    double left = options.backend == Backend::Gpu
                      ? kCopiedBesideGather * getTensorBytes(beside.getType())
                      : 0;
    while (!waiting.empty() &&
           getTensorBytes(waiting.back().getType()) <= left) {
      left -= getTensorBytes(waiting.back().getType());
      copies[waiting.back()].first = start;
      waiting = waiting.drop_back();
    }
  }
}

void Materialization::placeCopies() {
  placeReturnedCopies();
  for (auto &[source, range] : copies) {
    int start = range.first;
    lastRead[source] = std::max(lastRead.lookup(source), start);
    firstRead[source] = std::min(firstRead.lookup(source), start);
    storedValues.push_back({source, start, range.second, 1, StoredForm::Copy});
  }
}

/// What is computed again to be returned is written last, from what it was made
/// of.
void Materialization::placeMadeAgain() {
  for (const Root &root : roots) {
    Operation *op = root.op;
    if (op->getNumResults() != 1 || !madeAgain.contains(op->getResult(0))) {
      continue;
    }
    int last = points.lookup(op->getBlock()->getTerminator());
    for (Value source : root.from) {
      lastRead[source] = std::max(lastRead.lookup(source), last);
    }
    copies.insert({op->getResult(0), {last, last}});
    storedValues.push_back({op->getResult(0), last, last, 1, StoredForm::Copy});
  }
}

/// The copy is there from the beginning to where the argument is last read.
void Materialization::placeReorderedArguments(Block &block) {
  if (!options.isLocal || options.backend != Backend::Tpu) {
    return;
  }
  for (BlockArgument argument : findReorderedArguments(block)) {
    storedValues.push_back({argument, 0, lastRead.lookup(argument),
                            getPadding(argument), StoredForm::Copy});
  }
}

/// A slice is copied where it is first read in an order.
void Materialization::placeSlices() {
  for (auto &[order, copy] : slices) {
    Value value = copy.product->getResult(0);
    for (Value source : sources.lookup(value)) {
      lastRead[source] = std::max(lastRead.lookup(source), copy.start);
    }
    storedValues.push_back({value, copy.start, copy.end, 1, StoredForm::Copy});
  }
}

/// An input that is padded for several convolutions, such as the gradient of a
/// kernel, lies there from the first to the last.
void Materialization::placePadded() {
  if (options.backend != Backend::Gpu) {
    return;
  }
  llvm::MapVector<std::pair<Value, int64_t>, std::pair<int, int>> padded;
  for (const Root &root : roots) {
    Operation *op = root.op;
    if (int64_t numElements = countPaddedElements(op)) {
      int point = points.lookup(op);
      auto &[start, end] =
          padded.insert({{op->getOperand(0), numElements}, {point, point}})
              .first->second;
      start = std::min(start, point);
      end = std::max(end, point);
    }
  }
  for (auto &[input, range] : padded) {
    auto [value, numElements] = input;
    double ratio = static_cast<double>(numElements) /
                   static_cast<double>(countElements(value.getType()));
    storedValues.push_back(
        {value, range.first, range.second, ratio, StoredForm::Copy});
  }
}

/// A transposed kernel lies there from the first convolution that reads it to
/// the last, in the backward phase.
void Materialization::placeKernels() {
  if (!options.isLocal || options.backend != Backend::Gpu) {
    return;
  }
  llvm::MapVector<Value, std::pair<int, int>> kernels;
  for (const Root &root : roots) {
    Operation *op = root.op;
    if (BlockArgument kernel = getTransposedKernel(op)) {
      int point = points.lookup(op);
      auto &[start, end] =
          kernels.insert({kernel, {point, point}}).first->second;
      start = std::min(start, point);
      end = std::max(end, point);
    }
  }
  for (auto &[kernel, range] : kernels) {
    storedValues.push_back(
        {kernel, range.first, range.second, 1, StoredForm::Copy});
  }
}

/// Collectives end when their results are needed.
void Materialization::holdSent() {
  for (const Root &root : roots) {
    Operation *op = root.op;
    if (!isAsynchronous(op) || isSummedInPlace(op)) {
      continue;
    }
    int needed = points.lookup(op);
    for (Value result : op->getResults()) {
      if (auto it = firstRead.find(result); it != firstRead.end()) {
        needed = std::max(needed, it->second - 1);
      }
    }
    for (Value source : root.from) {
      if (root.from.size() == 1 && isView(op->getOperand(0)) &&
          sendsCopy(op, source)) {
        storedValues.push_back(
            {source, points.lookup(op), needed, 1, StoredForm::Copy});
        continue;
      }
      lastRead[source] = std::max(lastRead.lookup(source), needed);
    }
  }
}

/// True if the fusion that makes a result reduces it as well: XLA for GPU
/// writes none of several results over an operand of both
/// (`FusionCanShareBufferHint`).
static bool isReduced(Value result) {
  return llvm::any_of(result.getUsers(), [](Operation *user) {
    return isa<stablehlo::ReduceOp>(user);
  });
}

/// True for what a collective has made in another order than that of rows, in
/// which results are returned.
static bool isGatheredAside(Value source) {
  Operation *maker = source.getDefiningOp();
  return maker && isAsynchronous(maker) && movesDimension(maker);
}

bool Materialization::isGatheredBySum(Operation *op) const {
  auto gather = dyn_cast_or_null<stablehlo::AllGatherOp>(op);
  if (!gather || !options.isLocal || options.backend != Backend::Tpu) {
    return false;
  }
  auto block = cast<RankedTensorType>(op->getOperand(0).getType());
  return static_cast<int64_t>(gather.getAllGatherDim()) + 1 ==
             block.getRank() &&
         block.getShape().back() < kTileColumns;
}

bool Materialization::isReceivedApart(Value source) const {
  Operation *maker = source.getDefiningOp();
  return options.isLocal && options.backend == Backend::Tpu &&
         isa_and_nonnull<stablehlo::AllGatherOp, stablehlo::AllToAllOp,
                         stablehlo::CollectivePermuteOp>(maker) &&
         !isGatheredBySum(maker);
}

bool Materialization::fits(Value value, Value result) {
  double room = getHeldRatio(value) * getTensorBytes(value.getType());
  double bytes = getHeldRatio(result) * getTensorBytes(result.getType());
  return bytes <= room && room <= kPadding * bytes;
}

Value Materialization::findReplaced(OpResult result, const Sources &from) {
  Operation *op = result.getOwner();
  int point = points.lookup(op);
  auto canReplace = [&](Value source) {
    return lastRead.lookup(source) == point && replaceable.contains(source) &&
           !unwritten.contains(source) && fits(source, result);
  };
  Value updated = getScatteredInto(op, options.backend);
  if (!updated) {
    updated = getUpdatedOperand(op, result.getResultNumber());
  }
  if (isSummedInPlace(op)) {
    updated = op->getOperand(result.getResultNumber());
  }
  if (updated) {
    Sources own = sources.lookup(updated);
    return own.size() == 1 && canReplace(own.front()) ? own.front() : Value();
  }
  FusionRole role = roles.get(op);
  if ((role != FusionRole::Fused && role != FusionRole::View) ||
      isReduced(result) || awaited.lookup(epilogues.lookup(op)) == op) {
    return {};
  }
  auto it = llvm::find_if(from, [&](Value source) {
    return canReplace(source) && keepsShape(source) &&
           !(isReturned(result) &&
             (isGatheredAside(source) || isReceivedApart(source)));
  });
  return it == from.end() ? Value() : *it;
}

double Materialization::getStoredRatio(Value value) {
  // Between programs all have the type that they were written in.
  if (options.backend != Backend::Tpu || handedOn.contains(value)) {
    return 1;
  }
  if (getElementTypeOrSelf(value.getType()).isF32()) {
    return rounding.isRounded(value) ? 0.5 : 1;
  }
  return rounding.isWidened(value) ? 2 : 1;
}

double Materialization::getScratch(Operation *op) const {
  auto dot = dyn_cast<stablehlo::DotGeneralOp>(op);
  if (!dot || !options.isLocal || !options.splitsSums) {
    return getScratchRatio(op, options.backend);
  }
  auto [first, ratio] = merged.lookup(op);
  return !first        ? getPartsRatio(dot)
         : first == op ? getPartsRatio(dot, ratio)
                       : 0;
}

double Materialization::getPadding(Value value) const {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  bool isTiled = options.backend == Backend::Tpu && tensor;
  return isTiled ? getTilePadding(tensor) : 1;
}

int Materialization::getLoopStart(OpResult result) const {
  Operation *op = result.getOwner();
  Value initial = getUpdatedOperand(op, result.getResultNumber());
  auto it = firstFilled.find({initial, op->getBlock()});
  return options.backend == Backend::Gpu && it != firstFilled.end()
             ? it->second
             : firstInside.lookup(op);
}

int Materialization::getKernelPoint(Operation *op) const {
  Operation *product = epilogues.lookup(op);
  Operation *kernel = product ? product : op;
  Operation *last = awaited.lookup(kernel);
  return points.lookup(last ? last : kernel);
}

/// XLA for GPU adds what a pooling has selected to zeros. Where these are those
/// of the rectifier in front of the pooling, one fusion writes both.
static Operation *getRectifier(Operation *op) {
  auto select = dyn_cast<stablehlo::SelectAndScatterOp>(op);
  if (!select || !isZero(select.getInitValue())) {
    return nullptr;
  }
  auto pad = select.getOperand().getDefiningOp<stablehlo::PadOp>();
  Value pooled = pad ? pad.getOperand() : select.getOperand();
  Operation *maker = pooled.getDefiningOp();
  return isRectifier(maker) ? maker : nullptr;
}

void Materialization::placeResults() {
  for (const Root &root : roots) {
    Operation *op = root.op;
    int point = points.lookup(op);
    for (OpResult result : op->getResults()) {
      if (Value replaced = findReplaced(result, root.from)) {
        replaceable.erase(replaced);
        if (isa<BlockArgument>(replaced) || overArguments.contains(replaced)) {
          overArguments.insert(result);
        }
        if (carried.contains(replaced)) {
          carried.insert(result);
        }
        starts[result] = point + 1;
        continue;
      }
      // What a loop carries or collects has its place while the loop runs, and
      // the kernel of a product writes what is computed in it.
      starts[result] = isMadeInside(op, result.getResultNumber())
                           ? getLoopStart(result)
                           : getKernelPoint(op);
      Operation *rectifier = getRectifier(op);
      if (rectifier && options.backend == Backend::Gpu) {
        starts[result] = points.lookup(rectifier);
      }
    }
  }
}

/// Donated arguments keep their memory for what is returned of their type and
/// is written over none of them; the rest of what is returned has memory of its
/// own, from the beginning.
SmallVector<ReturnedPlace>
Materialization::findReturnedPlaces(Operation *terminator) {
  SmallVector<ReturnedPlace> places;
  llvm::MapVector<Type, SmallVector<BlockArgument>> left;
  for (BlockArgument argument : terminator->getBlock()->getArguments()) {
    if (replaceable.contains(argument)) {
      left[argument.getType()].push_back(argument);
    }
  }
  for (auto &entry : left) {
    std::reverse(entry.second.begin(), entry.second.end());
  }
  unsigned number = terminator->getBlock()->getNumArguments();
  int last = points.lookup(terminator);
  llvm::SmallDenseSet<Value, 16> seen;
  for (Value returned : terminator->getOperands()) {
    ++number;
    if (!isView(returned)) {
      continue;
    }
    Value source = sources.lookup(returned).front();
    if (onHost.contains(source)) {
      continue;
    }
    if (options.isLocal && !seen.insert(source).second) {
      storedValues.push_back(
          {source, last, last, getPadding(source), StoredForm::Copy});
      places.push_back({source, number, 0, last - 1, 0, getPadding(source)});
      continue;
    }
    auto start = starts.find(source);
    if (start == starts.end() || overArguments.contains(source)) {
      continue;
    }
    auto copy = copies.find(source);
    int written = copy != copies.end() ? copy->second.first : start->second;
    int order = copyOrders.lookup(source);
    if (auto it = left.find(returned.getType());
        it != left.end() && !it->second.empty()) {
      BlockArgument argument = it->second.pop_back_val();
      places.push_back({argument, argument.getArgNumber(),
                        lastRead.lookup(argument) + 1, written - 1, order,
                        getPadding(argument)});
    } else if (options.isLocal) {
      places.push_back(
          {source, number, 0, written - 1, order, getPadding(source)});
    }
  }
  return places;
}

void Materialization::recordRanges(
    func::FuncOp function, function_ref<bool(BlockArgument)> isDonated) {
  for (BlockArgument argument : function.getArguments()) {
    int end = isDonated(argument) ? lastRead.lookup(argument) : numPoints - 1;
    storedValues.push_back({argument, 0, end, getPadding(argument)});
  }
  for (const Root &root : roots) {
    Operation *op = root.op;
    if (double scratch = getScratch(op); scratch > 0) {
      int point = points.lookup(op);
      storedValues.push_back(
          {op->getResult(0), point, point, scratch, StoredForm::Scratch});
    }
    for (Value result : op->getResults()) {
      if (!isStored(result) || carried.contains(result) ||
          unwritten.contains(result)) {
        continue;
      }
      int start = starts.lookup(result);
      int end = std::max(lastRead.lookup(result), points.lookup(op));
      start = std::min(start, end);
      auto all = merged.find(op);
      double ratio = all != merged.end() ? all->second.second : 1;
      if (double stored = getStoredRatio(result); stored != 1) {
        storedRatios[result] = stored;
      }
      ratio *= getHeldRatio(result) * getPadding(result);
      storedValues.push_back({result, start, end, ratio});
    }
  }
  fillReturnedPlaces(
      findReturnedPlaces(function.getBody().front().getTerminator()),
      copyOrders, storedValues);
  llvm::erase_if(storedValues, [&](const StoredValue &stored) {
    return onHost.contains(stored.value);
  });
}

} // namespace mlir::alpa
