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

constexpr StringRef kConstraintOp = "sdy.sharding_constraint";
constexpr StringRef kShardingAttr = "sdy.sharding";

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
    SmallVector<Operation *> constraints, named;
    module.walk([&](Operation *op) {
      if (isConstraint(op)) {
        constraints.push_back(op);
      } else if (isShardyMesh(op)) {
        named.push_back(op);
      }
    });
    for (Operation *op : constraints) {
      import(op);
    }
    for (Operation *op : named) {
      op->erase();
    }
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

private:
  /// Text may say anything: the operation has to be one that can be taken out.
  static bool isConstraint(Operation *op) {
    if (op->getNumOperands() != 1 || op->getNumResults() != 1 ||
        op->getNumRegions() != 0 || op->getNumSuccessors() != 0 ||
        op->getOperand(0).getType() != op->getResult(0).getType() ||
        !op->getParentOfType<func::FuncOp>() || op == &op->getBlock()->back()) {
      return false;
    }
    auto call = dyn_cast<stablehlo::CustomCallOp>(op);
    return op->getName().getStringRef() == kConstraintOp ||
           (call && call.getCallTargetName() == "Sharding");
  }

  void import(Operation *op) {
    Value value = op->getOperand(0);
    if (value.getDefiningOp() == op) {
      // Of itself, where nothing ever comes.
      return;
    }
    std::string text = getShardyText(getShardyAttribute(op, "sharding"));
    StringRef rest = text;
    std::optional<ShardySharding> sharding = readShardySharding(rest);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    auto axes = sharding ? meshes.get(sharding->mesh) : std::nullopt;
    if (!sharding || !type || !axes ||
        type.getRank() != static_cast<int64_t>(sharding->dims.size())) {
      ignore(op, axes);
    } else if (!asksForNothing(*sharding, *axes)) {
      if (isPlannedFor(*axes)) {
        builder.setInsertionPoint(op);
        value = ConstrainOp::create(builder, op->getLoc(), type, value,
                                    getDims(*sharding));
      } else {
        ignore(op, axes);
      }
    }
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  using Axes = SmallVector<std::pair<StringRef, int64_t>>;

  /// A mesh without axes says nothing about any device. JAX itself constrains
  /// the data of PRNG keys so, which have dimensions that no user of a key
  /// sees.
  static bool asksForNothing(const ShardySharding &sharding, const Axes &axes) {
    return axes.empty() ||
           llvm::all_of(sharding.dims,
                        [](const ShardyDim &dim) { return dim.isOpen; });
  }

  /// As `alpa.constrain` has them. An open dimension may be split further: what
  /// splits it is not all of it.
  ArrayAttr getDims(const ShardySharding &sharding) {
    SmallVector<Attribute> dims;
    for (const ShardyDim &dim : sharding.dims) {
      dims.push_back(dim.isOpen ? Attribute(builder.getUnitAttr())
                                : builder.getStrArrayAttr(dim.names));
    }
    return builder.getArrayAttr(dims);
  }

  bool isPlannedFor(const Axes &axes) {
    return llvm::all_of(
        axes, [&](const auto &axis) { return known.contains(axis.first); });
  }

  void ignore(Operation *op, const std::optional<Axes> &axes) {
    if (numIgnored++ == 0) {
      firstIgnored = op->getLoc();
      if (axes) {
        ignoredMesh = llvm::join(llvm::make_first_range(*axes), ", ");
      }
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

/// They would refer to meshes that are gone.
void removeBoundaryShardings(func::FuncOp function) {
  StringAttr name = StringAttr::get(function.getContext(), kShardingAttr);
  for (unsigned index = 0; index < function.getNumArguments(); ++index) {
    function.removeArgAttr(index, name);
  }
  for (unsigned index = 0; index < function.getNumResults(); ++index) {
    function.removeResultAttr(index, name);
  }
}

struct ImportConstraints : impl::ImportConstraintsBase<ImportConstraints> {
  using ImportConstraintsBase::ImportConstraintsBase;

  void runOnOperation() override {
    Importer(getOperation(), axes).run();
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      removeBoundaryShardings(function);
    }
  }
};

} // namespace
} // namespace mlir::alpa
