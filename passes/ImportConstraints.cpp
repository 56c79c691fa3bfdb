//===- ImportConstraints.cpp - What the author asks for -------------------===//

#include "dialects/alpa/Alpa.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Passes.h"
#include "passes/ShardyReader.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORTCONSTRAINTS
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kSharding = "sharding";

class Importer {
public:
  template <typename Names>
  Importer(ModuleOp module, const Names &axes)
      : module(module), builder(module.getContext()), meshes(module) {
    for (const std::string &axis : axes) {
      known.insert(axis);
    }
  }

  void run() {
    SmallVector<Operation *> constraints, barriers, groups, named, others;
    SmallVector<func::FuncOp> functions;
    module.walk([&](Operation *op) {
      if (isConstraint(op)) {
        constraints.push_back(op);
      } else if (isBarrier(op)) {
        barriers.push_back(op);
      } else if (isGroup(op)) {
        groups.push_back(op);
      } else if (isShardyMesh(op)) {
        named.push_back(op);
      } else if (auto function = dyn_cast<func::FuncOp>(op)) {
        functions.push_back(function);
      } else {
        others.push_back(op);
      }
    });
    llvm::for_each(constraints, [&](Operation *op) { import(op); });
    llvm::for_each(barriers, handOn);
    llvm::for_each(functions, [&](auto function) { importBoundary(function); });
    // What propagation has found: no wish of the author's.
    for (Operation *op : others) {
      if (takeShardyAttribute(op, kSharding)) {
        ignore(op->getLoc(), std::nullopt);
      }
    }
    llvm::for_each(named, [](Operation *op) { op->erase(); });
    takeShardyAttribute(module, "meshes");
    dropGroups(groups);
    remarkIgnored();
  }

private:
  void remarkIgnored() {
    if (numIgnored > 0) {
      emitRemark(*firstIgnored)
          << numIgnored << " sharding constraint"
          << (numIgnored == 1 ? " is" : "s are") << " ignored: "
          << (ignoredMesh.empty()
                  ? "no axes are named"
                  : "the mesh that is planned for has other axes than " +
                        ignoredMesh);
    }
  }

  /// Text may say anything: the operation has to be one that can be taken out.
  static bool canGo(Operation *op) {
    return op->getNumOperands() == 1 && op->getNumRegions() == 0 &&
           op->getNumSuccessors() == 0 && op->getParentOfType<func::FuncOp>() &&
           op != &op->getBlock()->back();
  }

  static bool handsOn(Operation *op) {
    return canGo(op) && op->getNumResults() == 1 &&
           op->getOperand(0).getType() == op->getResult(0).getType();
  }

  static bool isConstraint(Operation *op) {
    auto call = dyn_cast<stablehlo::CustomCallOp>(op);
    return handsOn(op) &&
           (isOfShardy(op, "sharding_constraint", "FuncResultSharding") ||
            (call && call.getCallTargetName() == "Sharding"));
  }

  /// Past which shardings are not propagated; a plan propagates none.
  static bool isBarrier(Operation *op) {
    return handsOn(op) &&
           isOfShardy(op, "propagation_barrier", "PropagationBarrier");
  }

  /// Says that its operand is to be split as others are.
  static bool isGroup(Operation *op) {
    return canGo(op) && op->getNumResults() == 0 &&
           isOfShardy(op, "sharding_group", "ShardingGroup");
  }

  static void handOn(Operation *op) {
    if (op->getOperand(0).getDefiningOp() != op) {
      op->getResult(0).replaceAllUsesWith(op->getOperand(0));
      op->erase();
    }
  }

  static void dropGroups(ArrayRef<Operation *> groups) {
    // One of a single value asks for nothing.
    if (groups.size() > 1) {
      emitRemark(groups.front()->getLoc())
          << "sharding groups of " << groups.size()
          << " values are ignored: each is split as the plan finds best";
    }
    llvm::for_each(groups, [](Operation *op) { op->erase(); });
  }

  void import(Operation *op) {
    Value value = op->getOperand(0);
    if (value.getDefiningOp() == op) {
      // Of itself, where nothing ever comes.
      return;
    }
    builder.setInsertionPoint(op);
    Attribute sharding = getShardyAttribute(op, kSharding);
    if (!sharding) {
      sharding = takeShardyAttribute(op, kSharding);
    }
    op->getResult(0).replaceAllUsesWith(
        constrain(value, sharding, op->getLoc()));
    op->erase();
  }

  /// Shardings of arguments and results are constraints of the values there.
  void importBoundary(func::FuncOp function) {
    for (BlockArgument argument : function.getArguments()) {
      unsigned index = argument.getArgNumber();
      NamedAttrList attributes(function.getArgAttrDict(index));
      Attribute sharding = takeShardyAttribute(attributes, kSharding);
      if (!sharding) {
        continue;
      }
      function.setArgAttrs(index, attributes);
      builder.setInsertionPointToStart(argument.getOwner());
      Value kept = constrain(argument, sharding, argument.getLoc());
      if (kept != argument) {
        argument.replaceAllUsesExcept(kept, kept.getDefiningOp());
      }
    }
    for (unsigned index = 0; index < function.getNumResults(); ++index) {
      NamedAttrList attributes(function.getResultAttrDict(index));
      Attribute sharding = takeShardyAttribute(attributes, kSharding);
      if (!sharding) {
        continue;
      }
      function.setResultAttrs(index,
                              attributes.getDictionary(function.getContext()));
      for (auto exit : function.getOps<func::ReturnOp>()) {
        builder.setInsertionPoint(exit);
        Value kept = constrain(exit.getOperand(index), sharding, exit.getLoc());
        exit.setOperand(index, kept);
      }
    }
  }

  using Axes = SmallVector<std::pair<StringRef, int64_t>>;

  /// The value as a sharding asks for it; itself where that asks for nothing or
  /// is not understood.
  Value constrain(Value value, Attribute attribute, Location loc) {
    std::string text = getShardyText(attribute);
    StringRef rest = text;
    rest.consume_front("#sdy.sharding_per_value<[");
    std::optional<ShardySharding> sharding = readShardySharding(rest);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    auto axes = sharding ? meshes.get(sharding->mesh) : std::nullopt;
    if (!axes || !type || !isSharding(*sharding, type)) {
      ignore(loc, axes);
      return value;
    }
    if (asksForNothing(*sharding, *axes)) {
      return value;
    }
    if (!isPlannedFor(*axes)) {
      ignore(loc, axes);
      return value;
    }
    ArrayAttr whole = sharding->replicated.empty()
                          ? ArrayAttr()
                          : builder.getStrArrayAttr(sharding->replicated);
    return ConstrainOp::create(builder, loc, type, value, getDims(*sharding),
                               whole);
  }

  /// Whether a sharding has an entry per dimension and names axes once.
  static bool isSharding(const ShardySharding &sharding,
                         RankedTensorType type) {
    llvm::StringSet<> seen;
    auto isNew = [&](StringRef axis) { return seen.insert(axis).second; };
    return type.getRank() == static_cast<int64_t>(sharding.dims.size()) &&
           llvm::all_of(sharding.dims,
                        [&](const ShardyDim &dim) {
                          return llvm::all_of(dim.names, isNew);
                        }) &&
           llvm::all_of(sharding.replicated, isNew);
  }

  /// A mesh without axes says nothing about any device. JAX itself constrains
  /// the data of PRNG keys so, which have dimensions that no user of a key
  /// sees.
  static bool asksForNothing(const ShardySharding &sharding, const Axes &axes) {
    return axes.empty() || (sharding.replicated.empty() &&
                            llvm::all_of(sharding.dims, [](const auto &dim) {
                              return dim.isOpen && dim.names.empty();
                            }));
  }

  /// As `alpa.constrain` has them.
  ArrayAttr getDims(const ShardySharding &sharding) {
    SmallVector<Attribute> dims;
    for (const ShardyDim &dim : sharding.dims) {
      SmallVector<Attribute> entry;
      for (StringRef name : dim.names) {
        entry.push_back(builder.getStringAttr(name));
      }
      if (dim.isOpen) {
        entry.push_back(builder.getUnitAttr());
      }
      dims.push_back(builder.getArrayAttr(entry));
    }
    return builder.getArrayAttr(dims);
  }

  bool isPlannedFor(const Axes &axes) {
    return llvm::all_of(
        axes, [&](const auto &axis) { return known.contains(axis.first); });
  }

  void ignore(Location loc, const std::optional<Axes> &axes) {
    if (numIgnored++ == 0) {
      firstIgnored = loc;
    }
    if (axes && ignoredMesh.empty()) {
      ignoredMesh = llvm::join(llvm::make_first_range(*axes), ", ");
    }
  }

  ModuleOp module;
  OpBuilder builder;
  llvm::StringSet<> known;
  ShardyMeshes meshes;
  int64_t numIgnored = 0;
  std::optional<Location> firstIgnored;
  std::string ignoredMesh;
};

struct ImportConstraints : impl::ImportConstraintsBase<ImportConstraints> {
  using ImportConstraintsBase::ImportConstraintsBase;

  void runOnOperation() override { Importer(getOperation(), axes).run(); }
};

} // namespace
} // namespace mlir::alpa
