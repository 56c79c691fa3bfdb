//===- LoopOrder.cpp - What loops read in another order -------------------===//

#include "cpp/analysis/LoopOrder.h"

#include "cpp/analysis/FusionRole.h"
#include "cpp/analysis/MemoryOrder.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/STLExtras.h"

namespace mlir::alpa {

static ArrayRef<int64_t> getShape(Value value) {
  return cast<RankedTensorType>(value.getType()).getShape();
}

namespace {

/// The values of a loop's regions that lie in the order of what is gathered or
/// exchanged.
class MovedValues {
public:
  explicit MovedValues(DataFlowOpInterface loop) : edges(loop) {
    for (Region &region : loop->getRegions()) {
      for (Operation &op : region.getOps()) {
        if (isa<stablehlo::AllGatherOp>(op) && movesDimension(&op)) {
          add(op.getResult(0));
        } else if (isa<stablehlo::AllToAllOp>(op) && sendsMoved(&op)) {
          add(op.getOperand(0));
        }
      }
    }
    while (!work.empty()) {
      visit(work.pop_back_val());
    }
  }

  bool contains(Value value) const { return found.contains(value); }

private:
  void add(Value value) {
    if (found.insert(value).second) {
      work.push_back(value);
    }
  }

  void addAlike(Operation *op, Value value) {
    if (isa<stablehlo::ConcatenateOp>(op)) {
      add(op->getResult(0));
      for (Value operand : op->getOperands()) {
        add(operand);
      }
      return;
    }
    if (keepsOrder(op) && getShape(op->getResult(0)) == getShape(value)) {
      add(op->getResult(0));
      for (Value operand : op->getOperands()) {
        if (getShape(operand) == getShape(value)) {
          add(operand);
        }
      }
    }
  }

  void visit(Value value) {
    if (Operation *maker = value.getDefiningOp()) {
      addAlike(maker, value);
    } else if (std::optional<unsigned> edge = edges.find(value)) {
      for (OpOperand *source : edges[*edge].sources) {
        if (source->getOwner()->hasTrait<OpTrait::IsTerminator>()) {
          add(source->get());
        }
      }
    }
    for (OpOperand &use : value.getUses()) {
      if (!use.getOwner()->hasTrait<OpTrait::IsTerminator>()) {
        addAlike(use.getOwner(), value);
      } else if (std::optional<unsigned> edge = edges.find(use)) {
        for (Value target : edges[*edge].targets) {
          if (isa<BlockArgument>(target)) {
            add(target);
          }
        }
      }
    }
  }

  DataFlowEdges edges;
  llvm::DenseSet<Value> found;
  SmallVector<Value> work;
};

} // namespace

/// True if slices of an argument of a loop's body are read in the order of what
/// is gathered, and nothing else of it.
static bool readsMoved(Value argument, const MovedValues &moved) {
  bool reads = false;
  for (Operation *user : argument.getUsers()) {
    if (user->hasTrait<OpTrait::IsTerminator>()) {
      continue;
    }
    if (!isa<stablehlo::DynamicSliceOp>(user)) {
      return false;
    }
    for (Operation *reader : user->getUsers()) {
      if (!isa<stablehlo::ReshapeOp>(reader) ||
          getReshaped(reader->getResult(0)) != user->getResult(0)) {
        return false;
      }
      Value slice = reader->getResult(0);
      if (!moved.contains(slice) ||
          !llvm::all_of(slice.getUsers(), keepsOrder)) {
        return false;
      }
      reads = true;
    }
  }
  return reads;
}

/// True if a loop writes the slices of a result in the order of what it
/// gathers.
static bool writesMoved(OpResult result, const MovedValues &moved) {
  DataFlowEdges edges(cast<DataFlowOpInterface>(result.getOwner()));
  std::optional<unsigned> edge = edges.find(result);
  return edge && llvm::any_of(edges[*edge].sources, [&](OpOperand *source) {
           auto update =
               source->get().getDefiningOp<stablehlo::DynamicUpdateSliceOp>();
           return update && moved.contains(getReshaped(update.getUpdate()));
         });
}

llvm::DenseSet<Value> findReorderedStacks(DataFlowOpInterface loop) {
  llvm::DenseSet<Value> stacks;
  MovedValues moved(loop);
  DataFlowEdges edges(loop);
  llvm::DenseMap<Operation *, MovedValues> makers;
  for (const DataFlowEdge &edge : edges) {
    OpOperand *operand = nullptr;
    for (OpOperand *source : edge.sources) {
      operand = source->getOwner() == loop ? source : operand;
    }
    auto maker = operand ? operand->get().getDefiningOp<DataFlowOpInterface>()
                         : DataFlowOpInterface();
    bool isReordered =
        maker && llvm::any_of(edge.targets, [&](Value target) {
          return isa<BlockArgument>(target) && readsMoved(target, moved);
        });
    if (!isReordered) {
      continue;
    }
    auto &written = makers.try_emplace(maker, maker).first->second;
    if (!writesMoved(cast<OpResult>(operand->get()), written)) {
      stacks.insert(operand->get());
    }
  }
  return stacks;
}

} // namespace mlir::alpa
