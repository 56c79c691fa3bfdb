//===- RowKernels.cpp - Rows that are reduced where they are read ---------===//

#include "cpp/analysis/RowKernels.h"

#include "dialects/alpa/Sharding.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/IntEqClasses.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/SmallSet.h"
#include <optional>
#include <vector>

namespace mlir::alpa {

/// Whether something is chosen by what is computed of a value in its own size.
static bool isChosenBy(Value value) {
  int64_t numElements = countElements(value.getType());
  SmallVector<Value> work{value};
  llvm::SmallDenseSet<Operation *, 8> seen;
  while (!work.empty()) {
    for (Operation *user : work.pop_back_val().getUsers()) {
      if (isa<stablehlo::SelectOp, stablehlo::ClampOp>(user)) {
        return true;
      }
      if (user->getNumResults() == 1 && user->getNumRegions() == 0 &&
          seen.insert(user).second &&
          countElements(user->getResult(0).getType()) == numElements) {
        work.push_back(user->getResult(0));
      }
    }
  }
  return false;
}

bool reducesRows(Operation *op) {
  auto reduce = dyn_cast<stablehlo::ReduceOp>(op);
  if (!reduce || reduce.getInputs().size() != 1) {
    return false;
  }
  auto type = cast<RankedTensorType>(reduce.getInputs().front().getType());
  SmallVector<int64_t> dims(reduce.getDimensions());
  llvm::sort(dims);
  int64_t first = type.getRank() - static_cast<int64_t>(dims.size());
  int64_t numElements = 1;
  for (int64_t dim : dims) {
    numElements *= type.getDimSize(dim);
  }
  return !dims.empty() && dims.front() == first && numElements <= kLongestRow &&
         !isChosenBy(op->getResult(0));
}

namespace {

/// Reductions of the same rows.
struct Rows {
  /// What they read beside each other's results.
  SmallVector<Value> sources;
  SmallVector<unsigned> members;
  /// What reads their results, by number.
  llvm::SetVector<unsigned> readers;
};

class RowKernelFinder {
public:
  RowKernelFinder(ArrayRef<StoringOperator> storing,
                  function_ref<bool(Operation *)> isRowReduction)
      : storing(storing), kernels(storing.size()) {
    for (unsigned number : llvm::seq<unsigned>(storing.size())) {
      noteReads(number);
      if (isRowReduction(storing[number].op)) {
        addReduction(number);
      } else if (storing[number].isElementwise) {
        addFunction(number);
      }
    }
  }

  DenseMap<Operation *, Operation *> find() {
    joinReaders();
    llvm::SmallDenseSet<unsigned> apart;
    for (unsigned number : sideBySide) {
      apart.insert(kernels.findLeader(number));
    }
    DenseMap<Operation *, Operation *> found;
    for (const Rows &each : rows) {
      unsigned kernel = kernels.findLeader(each.members.front());
      SmallVector<unsigned> joined = each.members;
      llvm::copy_if(each.readers, std::back_inserter(joined),
                    [&](unsigned reader) {
                      return kernels.findLeader(reader) == kernel;
                    });
      if (joined.size() == 1 || apart.contains(kernel)) {
        continue;
      }
      for (unsigned number : joined) {
        found[storing[number].op] = storing[kernel].op;
      }
    }
    return found;
  }

private:
  void noteReads(unsigned number) {
    for (Value source : storing[number].sources) {
      if (auto it = rowsOf.find(source); it != rowsOf.end()) {
        rows[it->second].readers.insert(number);
      }
    }
  }

  /// Joins the reduction to the rows whose result it takes, if it reads nothing
  /// else than these.
  void addReduction(unsigned number) {
    SmallVector<Value> sources;
    llvm::SmallSet<unsigned, 4> taken;
    for (Value source : storing[number].sources) {
      if (auto it = rowsOf.find(source); it != rowsOf.end()) {
        taken.insert(it->second);
      } else {
        sources.push_back(source);
      }
    }
    // Sources of an operator are all different.
    auto isSame = [&](unsigned other) {
      return rows[other].sources.size() == sources.size() &&
             llvm::all_of(sources, [&](Value source) {
               return llvm::is_contained(rows[other].sources, source);
             });
    };
    for (unsigned other : taken) {
      if (isSame(other) && inOneBlock(rows[other].members.front(), number)) {
        return add(number, other);
      }
    }
    rowsOf[storing[number].op->getResult(0)] = rows.size();
    rows.push_back({std::move(sources), {number}, {}});
  }

  /// Joins what is computed of one result for each of the rows to them.
  void addFunction(unsigned number) {
    ArrayRef<Value> sources = storing[number].sources;
    auto it = sources.empty() ? rowsOf.end() : rowsOf.find(sources.front());
    if (it == rowsOf.end()) {
      return;
    }
    unsigned own = it->second;
    if (getNumElements(number) != countElements(sources.front().getType()) ||
        !inOneBlock(rows[own].members.front(), number) ||
        !llvm::all_of(sources, [&](Value source) {
          auto other = rowsOf.find(source);
          return other != rowsOf.end() && other->second == own;
        })) {
      return;
    }
    add(number, own);
  }

  void add(unsigned number, unsigned own) {
    kernels.join(rows[own].members.front(), number);
    rows[own].readers.remove(number);
    rows[own].members.push_back(number);
    rowsOf[storing[number].op->getResult(0)] = own;
  }

  int64_t getNumElements(unsigned number) const {
    return countElements(storing[number].op->getResult(0).getType());
  }

  bool inOneBlock(unsigned one, unsigned other) const {
    return storing[one].op->getBlock() == storing[other].op->getBlock();
  }

  /// The last first: whether a reduction is read by one kernel depends on what
  /// its readers have joined.
  void joinReaders() {
    // Of a kernel, the reductions that joined it last.
    DenseMap<unsigned, const Rows *> first;
    for (const Rows &each : llvm::reverse(rows)) {
      std::optional<unsigned> reader = getReader(each);
      if (!reader) {
        continue;
      }
      const Rows *next = first.lookup(kernels.findLeader(*reader));
      if (next && llvm::none_of(next->members, [&](unsigned member) {
            return each.readers.contains(member);
          })) {
        sideBySide.push_back(*reader);
      }
      first[kernels.join(*reader, each.members.front())] = &each;
    }
  }

  /// One of those that read the rows' results, if they are one kernel, of the
  /// same rows.
  std::optional<unsigned> getReader(const Rows &of) const {
    int64_t numElements =
        countElements(storing[of.members.front()].op->getOperand(0).getType());
    std::optional<unsigned> found;
    for (unsigned reader : of.readers) {
      const StoringOperator &root = storing[reader];
      bool isOfRows =
          inOneBlock(reader, of.members.front()) &&
          (rowsOf.contains(root.op->getResult(0)) ||
           (root.isElementwise && getNumElements(reader) == numElements));
      if (!isOfRows ||
          (found && kernels.findLeader(*found) != kernels.findLeader(reader))) {
        return std::nullopt;
      }
      found = reader;
    }
    return found;
  }

  ArrayRef<StoringOperator> storing;
  std::vector<Rows> rows;
  /// By what they are reduced to.
  DenseMap<Value, unsigned> rowsOf;
  /// Of operators, by number.
  llvm::IntEqClasses kernels;
  /// Some of each kernel that would have reductions side by side.
  SmallVector<unsigned> sideBySide;
};

} // namespace

DenseMap<Operation *, Operation *>
findRowKernels(ArrayRef<StoringOperator> storing,
               function_ref<bool(Operation *)> isRowReduction) {
  return RowKernelFinder(storing, isRowReduction).find();
}

} // namespace mlir::alpa
