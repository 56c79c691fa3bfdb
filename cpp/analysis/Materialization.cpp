//===- Materialization.cpp - What a program keeps in memory ---------------===//

#include "cpp/analysis/Materialization.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/MemoryOrder.h"
#include "cpp/analysis/Schedule.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "dialects/alpa/Sharding.h"
#include "mlir/IR/TypeUtilities.h"
#include "stablehlo/dialect/StablehloOps.h"

namespace mlir::alpa {

/// A fusion with more operands than this is cut. XLA's bound for GPU is 96
/// (`MaxOperandsAndOutputsPerFusion`); this one keeps the analysis linear.
static constexpr unsigned kMaxSources = 32;

/// What of a tensor's elements makes another one as large as it is: a part of a
/// concatenation. Heuristic.
static constexpr double kLarge = 0.5;

/// What a product computes an operand from inside of itself
/// (`kMaxParameterPerDotOperand` of XLA for GPU).
static constexpr unsigned kMaxPrologueSources = 4;

/// How far it is looked for where the readers of a value come together. Keeps
/// the analysis linear.
static constexpr unsigned kMaxChain = 8;

/// How much larger the padded form of a tensor may be. Heuristic.
static constexpr double kPadding = 1.1;

static int64_t countElements(Type type) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor && tensor.hasStaticShape() ? tensor.getNumElements() : 0;
}

/// What is made from nothing is made where it is read, by loops as well.
static bool isReturned(Value value) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    return user->hasTrait<OpTrait::IsTerminator>() &&
           user->getParentRegion() == value.getParentRegion();
  });
}

/// How many of `sources` have about as many elements as a value.
static unsigned countLarge(ArrayRef<Value> sources, Value value) {
  auto numElements = static_cast<double>(countElements(value.getType()));
  return llvm::count_if(sources, [&](Value source) {
    return static_cast<double>(countElements(source.getType())) >=
           kLarge * numElements;
  });
}

/// True if a result can be written over a value: it is as large, or its padded
/// form is.
static bool fits(Value value, Value result) {
  double room = getTensorBytes(value.getType());
  double bytes = getTensorBytes(result.getType());
  return bytes <= room && room <= kPadding * bytes;
}

/// True if the readers of a value read any of its elements more than once:
/// slices that together are the value do not.
static bool isReadAgain(Value value) {
  int64_t numRead = 0;
  for (Operation *user : value.getUsers()) {
    bool isSlice = isa<stablehlo::SliceOp, stablehlo::DynamicSliceOp>(user);
    numRead +=
        countElements(isSlice ? user->getResult(0).getType() : value.getType());
  }
  return numRead > countElements(value.getType());
}

/// The operators that a chain of single readers goes through.
static SmallVector<Operation *> getChain(Operation *op, FusionRoles &roles) {
  SmallVector<Operation *> chain{op};
  while (chain.size() < kMaxChain &&
         roles.get(chain.back()) == FusionRole::Fused &&
         chain.back()->hasOneUse()) {
    chain.push_back(*chain.back()->user_begin());
  }
  return chain;
}

/// True if what reads a value comes together in one operator, whose fusion
/// computes the value once.
static bool rejoins(Value value, FusionRoles &roles) {
  SmallVector<Operation *> shared = getChain(*value.user_begin(), roles);
  for (Operation *user : value.getUsers()) {
    SmallVector<Operation *> chain = getChain(user, roles);
    llvm::erase_if(
        shared, [&](Operation *op) { return !llvm::is_contained(chain, op); });
  }
  return llvm::any_of(shared, [&](Operation *op) {
    return roles.get(op) == FusionRole::Fused;
  });
}

/// True for the results of long functions that XLA for GPU does not compute
/// again for each of their readers: of numbers narrower than what it computes
/// in, and of what is computed with a gathered parameter.
static bool isWorthKeeping(Value value, ArrayRef<Value> sources) {
  if (!isExpensive(value.getDefiningOp())) {
    return false;
  }
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(value.getType()));
  return (element && element.getWidth() < 32) ||
         llvm::any_of(sources, [&](Value source) {
           Operation *maker = source.getDefiningOp();
           return maker && isAsynchronous(maker) &&
                  countLarge(source, value) == 0;
         });
}

/// True if more is read of a value than the result has: what is better read in
/// its narrow form where it is read several times (`IsInputWorthFusing` of
/// XLA's GEMM fusion for GPU).
static bool narrows(Value value, Value result) {
  return getTensorBytes(value.getType()) > getTensorBytes(result.getType());
}

Materialization::Materialization(func::FuncOp function,
                                 function_ref<bool(BlockArgument)> isDonated,
                                 MaterializationOptions options)
    : options(options) {
  Block &block = function.getBody().front();
  auto microBatches =
      function->getAttrOfType<IntegerAttr>(kMicroBatchesAttrName);
  hasSums = microBatches && microBatches.getInt() > 1;
  number(block);
  for (BlockArgument argument : block.getArguments()) {
    store(argument, 0);
    if (isDonated(argument)) {
      replaceable.insert(argument);
    }
  }
  visit(block);
  placeCopies();
  holdSent();
  placeResults();
  recordRanges(function, isDonated);
}

void Materialization::number(Block &block) {
  // XLA for TPU sums each gradient beside the kernels behind it.
  bool putsOff = options.overlaps && options.backend == Backend::Gpu;
  for (Operation *op : getSchedule(block, roles, putsOff)) {
    if (isa<DataFlowOpInterface, ManualOp>(op)) {
      firstInside[op] = numPoints;
      for (Region &region : op->getRegions()) {
        for (Block &inner : region) {
          number(inner);
        }
      }
    }
    points[op] = numPoints++;
  }
}

//===----------------------------------------------------------------------===//
// What is stored
//===----------------------------------------------------------------------===//

void Materialization::visit(Block &block) {
  for (Operation &op : block) {
    visit(&op);
  }
}

void Materialization::visit(Operation *op) {
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    return visitView(op);
  }
  if (hasSums && isa<AccumulateOp>(op)) {
    return visitSum(op);
  }
  switch (roles.get(op)) {
  case FusionRole::Generated:
  case FusionRole::Fused:
    return visitFused(op);
  case FusionRole::View:
    return visitView(op);
  case FusionRole::Kernel:
  case FusionRole::Root:
    visitRegions(op);
    return visitRoot(op);
  }
}

void Materialization::visitRegions(Operation *op) {
  if (!firstInside.contains(op)) {
    return;
  }
  for (Region &region : op->getRegions()) {
    for (Block &inner : region) {
      for (BlockArgument argument : inner.getArguments()) {
        // Its memory is that of the operator's operand or result.
        store(argument, 0);
        carried.insert(argument);
        replaceable.insert(argument);
      }
      visit(inner);
    }
  }
}

void Materialization::visitView(Operation *op) {
  if (isa<stablehlo::OptimizationBarrierOp>(op)) {
    for (OpOperand &operand : op->getOpOperands()) {
      read(operand, {0, 0});
    }
  }
  for (auto [operand, result] :
       llvm::zip_equal(op->getOperands().take_front(op->getNumResults()),
                       op->getResults())) {
    sources[result] = sources.lookup(operand);
    narrow(op, result);
    // What nothing holds yet is computed in the shape in which it is read.
    bool isPrologue =
        !noPrologues.contains(operand) && sources[result].size() == 1;
    if (noPrologues.contains(operand)) {
      noPrologues.insert(result);
    }
    if (isMoved(op)) {
      moved.insert(result);
    }
    if (!isView(result) && isReadByKernel(result, isPrologue)) {
      return visitRoot(op);
    }
  }
}

void Materialization::visitFused(Operation *op) {
  Sources from = collectSources(op);
  bool isEnded = !from.empty() && endsPrologue(op);
  for (Value operand : op->getOperands()) {
    isEnded |= noPrologues.contains(operand);
  }
  bool isStoredHere = llvm::any_of(op->getResults(), [&](Value result) {
    bool isPrologue = !isEnded && isFunctionOfOne(from, result);
    return from.empty() ? isReturned(result)
                        : isReadByKernel(result, isPrologue) ||
                              isWorthStoring(result, from);
  });
  if (isStoredHere || from.size() > kMaxSources) {
    return visitRoot(op);
  }
  for (Value result : op->getResults()) {
    sources[result] = from;
    narrow(op, result);
    if (isEnded) {
      noPrologues.insert(result);
    }
    if (isMoved(op)) {
      moved.insert(result);
    }
  }
}

bool Materialization::isFunctionOfOne(const Sources &from, Value result) {
  if (from.size() == 1) {
    return !narrows(from.front(), result) || countProducts(result) == 1;
  }
  return from.size() <= kMaxPrologueSources && countLarge(from, result) == 1 &&
         llvm::none_of(
             from, [&](Value source) { return normalizers.contains(source); });
}

bool Materialization::isMoved(Operation *op) const {
  if (auto transpose = dyn_cast<stablehlo::TransposeOp>(op)) {
    ArrayRef<int64_t> permutation = transpose.getPermutation();
    if (!permutation.empty() &&
        permutation.back() != static_cast<int64_t>(permutation.size()) - 1) {
      return true;
    }
  }
  return llvm::any_of(op->getOperands(),
                      [&](Value operand) { return moved.contains(operand); });
}

bool Materialization::normalizes(Operation *op) const {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  return reduce && !isMoved(op) &&
         llvm::any_of(reduce.getInputs(), [&](Value input) {
           return llvm::is_contained(
               reduce.getDimensions(),
               cast<RankedTensorType>(input.getType()).getRank() - 1);
         });
}

void Materialization::visitRoot(Operation *op) {
  FusionRole role = roles.get(op);
  bool isKernel = role == FusionRole::Kernel;
  Sources from = collectSources(op);
  int depth = 0;
  for (Value source : from) {
    depth = std::max(depth, stored.lookup(source));
  }
  int64_t numElements =
      op->getNumResults() > 0 ? countElements(op->getResult(0).getType()) : 0;
  if (role == FusionRole::Root && op->getNumOperands() > 0) {
    // Reductions join with what has the shape of their operand.
    numElements = countElements(op->getOperand(0).getType());
  }
  // No two kernels are one fusion.
  FusionKey fusion{isKernel ? -1 - points.lookup(op) : depth, numElements};
  if (fusions.insert({fusion.depth, fusion.numElements}).second) {
    launching.insert(op);
  }
  for (OpOperand &operand : op->getOpOperands()) {
    read(operand, fusion);
  }
  for (Value source : from) {
    noteRead(op, source);
  }
  bool isElementwise = role == FusionRole::Fused || role == FusionRole::View;
  for (OpResult result : op->getResults()) {
    if (Value same = getUnchangedOperand(op, result.getResultNumber())) {
      sources[result] = sources.lookup(same);
      continue;
    }
    store(result, depth + (isElementwise ? 0 : 1));
    replaceable.insert(result);
    if (normalizes(op)) {
      normalizers.insert(result);
    }
    if (isElementwise) {
      joined.insert({result, fusion.depth, fusion.numElements});
    }
  }
  roots.emplace_back(op, std::move(from));
}

bool Materialization::readsCopyOf(Operation *op, Value source) {
  Operation *maker = source.getDefiningOp();
  if (!maker || !isAsynchronous(maker) || !movesDimension(maker)) {
    return false;
  }
  return llvm::all_of(op->getOpOperands(), [&](OpOperand &operand) {
    auto it = sources.find(operand.get());
    bool isRead = it != sources.end() && llvm::is_contained(it->second, source);
    return !isRead || (isView(operand.get()) && readsCopy(operand, source));
  });
}

void Materialization::noteRead(Operation *op, Value source) {
  int point = points.lookup(op);
  int &first = firstRead.try_emplace(source, point).first->second;
  first = std::min(first, point);
  if (!readsCopyOf(op, source)) {
    lastRead[source] = std::max(lastRead.lookup(source), point);
    return;
  }
  // A loop's is there while the loop runs.
  auto inside = firstInside.find(op);
  int made = inside != firstInside.end() ? inside->second : point;
  auto &[start, end] = copies.insert({source, {made, point}}).first->second;
  start = std::min(start, made);
  end = std::max(end, point);
}

/// What a micro-batch adds to a sum ends here, and the sum, read and written,
/// is there all the time: who counts a step's sums counts its memory.
void Materialization::visitSum(Operation *op) {
  visitRoot(op);
  Value sum = op->getResult(0);
  readBytes[&op->getOpOperand(0)] += getTensorBytes(sum.getType());
  replaceable.erase(sum);
  carried.insert(sum);
}

bool Materialization::isView(Value value) const {
  auto it = sources.find(value);
  return it != sources.end() && it->second.size() == 1 &&
         getTensorBytes(it->second.front().getType()) ==
             getTensorBytes(value.getType());
}

bool Materialization::readsStored(Operation *op) {
  return roles.get(op) == FusionRole::Kernel ||
         op->hasTrait<OpTrait::IsTerminator>() ||
         isa<stablehlo::OptimizationBarrierOp>(op);
}

unsigned Materialization::countProducts(Value value) {
  unsigned count = 0;
  llvm::SmallDenseSet<Operation *, 4> seen;
  for (Operation *user : value.getUsers()) {
    if (!seen.insert(user).second) {
      continue;
    }
    if (takesPrologue(user)) {
      ++count;
    } else if (roles.get(user) == FusionRole::View) {
      count += countProducts(user->getResult(0));
    }
  }
  return count;
}

bool Materialization::isReadByKernel(Value value, bool isPrologue) {
  return llvm::any_of(value.getUsers(), [&](Operation *user) {
    if ((readsStored(user) && !(isPrologue && takesPrologue(user))) ||
        getScatteredInto(user) == value ||
        user->getParentRegion() != value.getParentRegion()) {
      return true;
    }
    return roles.get(user) == FusionRole::View &&
           isReadByKernel(user->getResult(0), isPrologue);
  });
}

bool Materialization::isWorthStoring(Value value, const Sources &from) {
  if (getTensorBytes(value.getType()) == 0 || value.hasOneUse() ||
      value.use_empty()) {
    return false;
  }
  return (options.savesTime && isWorthKeeping(value, from)) ||
         (countLarge(from, value) > 1 && isReadAgain(value) &&
          !rejoins(value, roles));
}

Materialization::Sources Materialization::collectSources(Operation *op) const {
  Sources found;
  llvm::SmallDenseSet<Value, 8> seen;
  forEachUsedValue(op, [&](Value used) {
    auto it = sources.find(used);
    if (it == sources.end()) {
      return;
    }
    for (Value source : it->second) {
      if (seen.insert(source).second) {
        found.push_back(source);
      }
    }
  });
  return found;
}

double Materialization::getTouchedBytes(Value value, Value source) const {
  auto it = touched.find({value, source});
  return it != touched.end() ? it->second : getTensorBytes(source.getType());
}

void Materialization::narrow(Operation *op, Value result) {
  bool isSlice =
      isa<stablehlo::DynamicSliceOp, stablehlo::SliceOp, stablehlo::GatherOp>(
          op);
  // Without slices before it all of every source is read.
  if (!isSlice && touched.empty()) {
    return;
  }
  for (Value source : sources.lookup(result)) {
    double bytes = 0;
    forEachUsedValue(op, [&](Value used) {
      auto it = sources.find(used);
      if (it == sources.end() || !llvm::is_contained(it->second, source)) {
        return;
      }
      double read = getTouchedBytes(used, source);
      if (isSlice && used == op->getOperand(0)) {
        read = std::min(read, getTensorBytes(result.getType()));
      }
      bytes = std::max(bytes, read);
    });
    if (bytes < getTensorBytes(source.getType())) {
      touched[{result, source}] = bytes;
    }
  }
}

void Materialization::store(Value value, int depth) {
  stored[value] = depth;
  sources[value] = {value};
}

//===----------------------------------------------------------------------===//
// What is read
//===----------------------------------------------------------------------===//

void Materialization::read(OpOperand &operand, FusionKey fusion) {
  double bytes = 0;
  for (Value source : sources.lookup(operand.get())) {
    if (joined.insert({source, fusion.depth, fusion.numElements}).second) {
      bytes += getTouchedBytes(operand.get(), source);
    }
  }
  if (bytes > 0) {
    readBytes[&operand] = bytes;
  }
}

double Materialization::getWrittenBytes(OpResult result) const {
  return isStored(result) ? getTensorBytes(result.getType()) : 0;
}

//===----------------------------------------------------------------------===//
// From where to where
//===----------------------------------------------------------------------===//

/// A copy is made where it is first read, what is returned as soon as it is
/// there.
void Materialization::placeCopies() {
  for (auto &[source, range] : copies) {
    int &start = range.first;
    if (points.lookup(source.getParentBlock()->getTerminator()) == start) {
      start = std::min(start, points.lookup(source.getDefiningOp()) + 1);
    }
    lastRead[source] = std::max(lastRead.lookup(source), start);
    firstRead[source] = std::min(firstRead.lookup(source), start);
    storedValues.push_back({source, start, range.second, 1, StoredForm::Copy});
  }
}

/// Collectives end when their results are needed.
void Materialization::holdSent() {
  for (auto &[op, from] : roots) {
    if (!isAsynchronous(op)) {
      continue;
    }
    int needed = points.lookup(op);
    for (Value result : op->getResults()) {
      if (auto it = firstRead.find(result); it != firstRead.end()) {
        needed = std::max(needed, it->second - 1);
      }
    }
    for (Value source : from) {
      if (from.size() == 1 && isView(op->getOperand(0)) &&
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

Value Materialization::findReplaced(OpResult result, const Sources &from) {
  Operation *op = result.getOwner();
  int point = points.lookup(op);
  auto canReplace = [&](Value source) {
    return lastRead.lookup(source) == point && replaceable.contains(source) &&
           fits(source, result);
  };
  Value updated = getScatteredInto(op);
  if (!updated) {
    updated = getUpdatedOperand(op, result.getResultNumber());
  }
  if (updated) {
    Sources own = sources.lookup(updated);
    return own.size() == 1 && canReplace(own.front()) ? own.front() : Value();
  }
  FusionRole role = roles.get(op);
  if ((role != FusionRole::Fused && role != FusionRole::View) ||
      isReduced(result)) {
    return {};
  }
  auto it = llvm::find_if(from, [&](Value source) {
    return canReplace(source) && keepsShape(source);
  });
  return it == from.end() ? Value() : *it;
}

/// True for a product of f32 that XLA for TPU reads in 16 bits.
static bool roundsOperands(Operation *op) {
  ArrayAttr precision;
  if (auto dot = dyn_cast<stablehlo::DotGeneralOp>(op)) {
    precision = dot.getPrecisionConfigAttr();
  } else if (auto convolution = dyn_cast<stablehlo::ConvolutionOp>(op)) {
    precision = convolution.getPrecisionConfigAttr();
  } else {
    return false;
  }
  return !precision || llvm::all_of(precision, [](Attribute one) {
    return cast<stablehlo::PrecisionAttr>(one).getValue() ==
           stablehlo::Precision::DEFAULT;
  });
}

/// True for what hands on elements as they are.
static bool movesElements(Operation *op) {
  return isa<stablehlo::ReshapeOp, stablehlo::TransposeOp, stablehlo::SliceOp,
             stablehlo::BroadcastInDimOp, stablehlo::AllGatherOp,
             stablehlo::AllToAllOp, stablehlo::CollectivePermuteOp>(op);
}

bool Materialization::isRounded(Value value) {
  bool byProduct = false;
  for (Operation *user : value.getUsers()) {
    if (roundsOperands(user) ||
        (movesElements(user) && isRounded(user->getResult(0)))) {
      byProduct = true;
      continue;
    }
    // The fusion that makes the value sums it up as well.
    Operation *maker = value.getDefiningOp();
    if (!maker || !isa<stablehlo::ReduceOp>(user) ||
        roles.get(maker) != FusionRole::Fused) {
      return false;
    }
  }
  return byProduct;
}

double Materialization::getStoredRatio(Value value) {
  bool isSingle = getElementTypeOrSelf(value.getType()).isF32();
  return options.backend == Backend::Tpu && isSingle && isRounded(value) ? 0.5
                                                                         : 1;
}

void Materialization::placeResults() {
  for (auto &[op, from] : roots) {
    int point = points.lookup(op);
    for (OpResult result : op->getResults()) {
      if (Value replaced = findReplaced(result, from)) {
        replaceable.erase(replaced);
        if (carried.contains(replaced)) {
          carried.insert(result);
        }
        starts[result] = point + 1;
        continue;
      }
      // What a loop carries or collects has its place while the loop runs.
      starts[result] = isMadeInside(op, result.getResultNumber())
                           ? firstInside.lookup(op)
                           : point;
    }
  }
}

void Materialization::recordRanges(
    func::FuncOp function, function_ref<bool(BlockArgument)> isDonated) {
  for (BlockArgument argument : function.getArguments()) {
    int end = isDonated(argument) ? lastRead.lookup(argument) : numPoints - 1;
    storedValues.push_back({argument, 0, end});
  }
  for (auto &[op, from] : roots) {
    if (double scratch = getScratchRatio(op); scratch > 0) {
      int point = points.lookup(op);
      storedValues.push_back(
          {op->getResult(0), point, point, scratch, StoredForm::Scratch});
    }
    for (Value result : op->getResults()) {
      if (!isStored(result) || carried.contains(result)) {
        continue;
      }
      int start = starts.lookup(result);
      int end = std::max(lastRead.lookup(result), points.lookup(op));
      start = std::min(start, end);
      storedValues.push_back({result, start, end, getStoredRatio(result)});
    }
  }
}

} // namespace mlir::alpa
