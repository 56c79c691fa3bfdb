//===- ImportConstraints.cpp - What the author asks for -------------------===//

#include "dialects/alpa/Alpa.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Builders.h"
#include "passes/Passes.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSet.h"

namespace mlir::alpa {

#define GEN_PASS_DEF_IMPORTCONSTRAINTS
#include "passes/Passes.h.inc"

namespace {

constexpr StringRef kMeshOp = "sdy.mesh";
constexpr StringRef kConstraintOp = "sdy.sharding_constraint";
constexpr StringRef kShardingAttr = "sdy.sharding";

/// An attribute of an operation whose dialect need not be loaded: unregistered
/// operations keep what stands in `<{...}>` apart.
Attribute getAttribute(Operation *op, StringRef name) {
  if (Attribute attribute = op->getAttr(name)) {
    return attribute;
  }
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties.get(name) : Attribute();
}

std::string getText(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (attribute) {
    attribute.print(stream);
  }
  return text;
}

/// The names in `<["data"=2, "model"=4]>`.
SmallVector<StringRef> getNames(StringRef mesh) {
  SmallVector<StringRef> names;
  while (mesh.contains('"')) {
    StringRef rest = mesh.split('"').second;
    names.push_back(rest.split('"').first);
    mesh = rest.split('"').second;
  }
  return names;
}

/// A mesh without axes says nothing about any device. JAX itself constrains the
/// data of PRNG keys so, which have dimensions that no user of a key sees.
bool isEmptyMesh(StringRef mesh) {
  mesh.consume_front("#sdy.");
  return mesh == "mesh<[]>";
}

/// Reads Shardy's notation:
///   #sdy.sharding<@mesh, [{"data"}, {"model", ?}p1], replicated={"z"}>
///   #sdy.sharding<mesh<["data"=2]>, [{}]>
/// Parts of axes and unreduced axes are not read.
class ShardingReader {
public:
  explicit ShardingReader(StringRef text) : text(text) {}

  /// The mesh, by name or in full.
  StringRef mesh;
  /// As `alpa.constrain` has them.
  SmallVector<Attribute> dims;

  bool read(Builder &builder) {
    if (text.contains("unreduced")) {
      return false;
    }
    // Of a text that is none of these nothing is left, and it has no end.
    std::tie(mesh, text) = text.split("sharding<").second.split(", [");
    while (!text.consume_front("]")) {
      if (!readDim(builder)) {
        return false;
      }
      text.consume_front(", ");
    }
    return true;
  }

private:
  bool readDim(Builder &builder) {
    if (!text.consume_front("{")) {
      return false;
    }
    bool isOpen = false;
    SmallVector<Attribute> names;
    while (!text.consume_front("}")) {
      if (text.consume_front("?")) {
        isOpen = true;
      } else if (text.consume_front("\"")) {
        auto [name, rest] = text.split('"');
        names.push_back(builder.getStringAttr(name));
        text = rest;
      } else {
        return false;
      }
      text.consume_front(", ");
    }
    if (text.consume_front("p")) {
      // A priority of propagation.
      text = text.drop_while([](char c) { return llvm::isDigit(c); });
    }
    // An open dimension may be split further: what splits it is not all of it.
    dims.push_back(isOpen ? Attribute(builder.getUnitAttr())
                          : builder.getArrayAttr(names));
    return true;
  }

  StringRef text;
};

class Importer {
public:
  template <typename Names>
  Importer(ModuleOp module, const Names &axes)
      : module(module), builder(module.getContext()) {
    for (const std::string &axis : axes) {
      known.insert(axis);
    }
  }

  void run() {
    SmallVector<Operation *> constraints, meshes;
    module.walk([&](Operation *op) {
      if (isConstraint(op)) {
        constraints.push_back(op);
      } else if (isMesh(op)) {
        meshes.push_back(op);
        if (auto name = dyn_cast_or_null<StringAttr>(
                getAttribute(op, SymbolTable::getSymbolAttrName()))) {
          meshTexts["@" + name.str()] = getText(getAttribute(op, "mesh"));
        }
      }
    });
    for (Operation *op : constraints) {
      import(op);
    }
    for (Operation *op : meshes) {
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

  static bool isMesh(Operation *op) {
    return op->getName().getStringRef() == kMeshOp &&
           op->getNumResults() == 0 && op->getNumRegions() == 0 &&
           isa<ModuleOp>(op->getParentOp());
  }

  void import(Operation *op) {
    Value value = op->getOperand(0);
    if (value.getDefiningOp() == op) {
      // Of itself, where nothing ever comes.
      return;
    }
    std::string text = getText(getAttribute(op, "sharding"));
    ShardingReader sharding(text);
    auto type = dyn_cast<RankedTensorType>(value.getType());
    bool isRead = sharding.read(builder) && type &&
                  type.getRank() == static_cast<int64_t>(sharding.dims.size());
    bool asksForNothing =
        isRead && (llvm::all_of(sharding.dims, llvm::IsaPred<UnitAttr>) ||
                   isEmptyMesh(getMeshText(sharding.mesh)));
    if (isRead && !asksForNothing && isPlannedFor(sharding.mesh)) {
      builder.setInsertionPoint(op);
      value = ConstrainOp::create(builder, op->getLoc(), type, value,
                                  builder.getArrayAttr(sharding.dims));
    } else if (!asksForNothing) {
      ignore(op, sharding.mesh);
    }
    op->getResult(0).replaceAllUsesWith(value);
    op->erase();
  }

  StringRef getMeshText(StringRef mesh) {
    auto it = meshTexts.find(mesh.str());
    return it == meshTexts.end() ? mesh : StringRef(it->second);
  }

  bool isPlannedFor(StringRef mesh) {
    SmallVector<StringRef> names = getNames(getMeshText(mesh));
    return !names.empty() && llvm::all_of(names, [&](StringRef name) {
      return known.contains(name);
    });
  }

  void ignore(Operation *op, StringRef mesh) {
    if (numIgnored++ == 0) {
      firstIgnored = op->getLoc();
      ignoredMesh = llvm::join(getNames(getMeshText(mesh)), ", ");
    }
  }

  ModuleOp module;
  OpBuilder builder;
  llvm::StringSet<> known;
  std::map<std::string, std::string> meshTexts;
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
