//===- HostValues.cpp - What lies in the memory of the host ---------------===//

#include "cpp/analysis/HostValues.h"

#include "cpp/analysis/DataFlow.h"
#include "cpp/analysis/HostMoves.h"
#include "dialects/alpa/Alpa.h"
#include "dialects/alpa/DataFlow.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/EquivalenceClasses.h"

namespace mlir::alpa {

/// What jax calls the memory of an argument.
static constexpr llvm::StringLiteral kMemoryAttrName = "mhlo.memory_kind";

/// True for what takes a part of its first operand, or puts one there, in the
/// memory that this lies in.
static bool keepsMemory(Operation *op) {
  return isa<stablehlo::DynamicSliceOp, stablehlo::DynamicUpdateSliceOp,
             stablehlo::SliceOp, stablehlo::ReshapeOp, stablehlo::TransposeOp,
             stablehlo::OptimizationBarrierOp>(op);
}

namespace {

/// Values that lie in one memory, in sets.
class Memories {
public:
  explicit Memories(func::FuncOp function) {
    function.walk([&](Operation *op) { visit(op); });
  }

  void markHost(Value value) { onHost.insert(getLeader(value)); }
  bool isOnHost(Value value) const { return onHost.contains(getLeader(value)); }
  Value getLeader(Value value) const {
    auto leader = sets.findLeader(key(value));
    return leader == sets.member_end() ? value
                                       : Value::getFromOpaquePointer(*leader);
  }

private:
  static const void *key(Value value) { return value.getAsOpaquePointer(); }
  void join(Value left, Value right) { sets.unionSets(key(left), key(right)); }

  void visit(Operation *op) {
    if (isa<stablehlo::OptimizationBarrierOp>(op)) {
      for (auto [operand, result] :
           llvm::zip_equal(op->getOperands(), op->getResults())) {
        join(operand, result);
      }
    } else if (keepsMemory(op)) {
      join(op->getOperand(0), op->getResult(0));
      if (auto update = dyn_cast<stablehlo::DynamicUpdateSliceOp>(op)) {
        join(update.getOperand(), update.getUpdate());
      }
    } else if (auto region = dyn_cast<DataFlowOpInterface>(op)) {
      for (const DataFlowEdge &edge : DataFlowEdges(region)) {
        for (OpOperand *source : edge.sources) {
          join(source->get(), edge.targets.front());
        }
        for (Value target : edge.targets) {
          join(target, edge.targets.front());
        }
      }
    }
  }

  llvm::EquivalenceClasses<const void *> sets;
  llvm::DenseSet<Value> onHost;
};

} // namespace

/// True if nothing but a move to the device reads a value where it lies.
static bool isMovedBeforeRead(Value value) {
  return llvm::all_of(value.getUsers(), [](Operation *user) {
    return movesToDevice(user) || keepsMemory(user) ||
           isa<DataFlowOpInterface>(user) ||
           user->hasTrait<OpTrait::IsTerminator>();
  });
}

llvm::DenseSet<Value>
findHostValues(func::FuncOp function,
               function_ref<bool(BlockArgument)> isOnHost) {
  bool isAny = false;
  function.walk([&](Operation *op) { isAny |= isHostMove(op); });
  if (!isAny) {
    return {};
  }
  Memories memories(function);
  SmallVector<Value> values(function.getArguments());
  function.walk([&](Operation *op) {
    llvm::append_range(values, op->getResults());
    for (Region &region : op->getRegions()) {
      for (Block &block : region) {
        if (op != function) {
          llvm::append_range(values, block.getArguments());
        }
      }
    }
  });
  // Of each set that has an argument, whether all of it is moved before it is
  // read, and some of it is.
  llvm::DenseSet<Value> read, moved;
  for (Value value : values) {
    Value leader = memories.getLeader(value);
    if (!isMovedBeforeRead(value)) {
      read.insert(leader);
    }
    if (llvm::any_of(value.getUsers(), movesToDevice)) {
      moved.insert(leader);
    }
    Operation *maker = value.getDefiningOp();
    if (maker && movesToHost(maker)) {
      memories.markHost(value);
    }
  }
  for (BlockArgument argument : function.getArguments()) {
    Value leader = memories.getLeader(argument);
    if (isOnHost ? isOnHost(argument)
                 : moved.contains(leader) && !read.contains(leader)) {
      memories.markHost(argument);
    }
  }
  llvm::DenseSet<Value> found;
  for (Value value : values) {
    if (memories.isOnHost(value)) {
      found.insert(value);
    }
  }
  return found;
}

void dropIdleMoves(func::FuncOp function) {
  llvm::DenseSet<Value> onHost =
      findHostValues(function, [&](BlockArgument argument) {
        auto kind = function.getArgAttrOfType<StringAttr>(
            argument.getArgNumber(), kMemoryAttrName);
        return kind && kind.getValue().ends_with("host");
      });
  function.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (isa<ManualOp>(op)) {
      // What it takes may lie anywhere.
      return WalkResult::skip();
    }
    if (movesToDevice(op) && !onHost.contains(op->getOperand(0))) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
      return WalkResult::skip();
    }
    return WalkResult::advance();
  });
}

} // namespace mlir::alpa
