//===- ShardyReader.cpp - Shardy's notation, read from its text -----------===//

#include "passes/ShardyReader.h"

#include "mlir/IR/SymbolTable.h"
#include "stablehlo/dialect/StablehloOps.h"
#include "llvm/ADT/StringExtras.h"

namespace mlir::alpa {

Attribute getShardyAttribute(Operation *op, StringRef name) {
  if (Attribute attribute = op->getAttr(name)) {
    return attribute;
  }
  auto properties =
      dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute());
  return properties ? properties.get(name) : Attribute();
}

/// Where XLA keeps what it has no attributes for.
static constexpr StringRef kStored = "mhlo.frontend_attributes";

Attribute takeShardyAttribute(NamedAttrList &attributes, StringRef name) {
  if (Attribute own = attributes.erase(("sdy." + name).str())) {
    return own;
  }
  auto all = dyn_cast_or_null<DictionaryAttr>(attributes.get(kStored));
  NamedAttrList stored(all);
  Attribute found = stored.erase(("xla.sdy." + name).str());
  if (found && stored.empty()) {
    attributes.erase(kStored);
  } else if (found) {
    attributes.set(kStored, stored.getDictionary(found.getContext()));
  }
  return found;
}

Attribute takeShardyAttribute(Operation *op, StringRef name) {
  NamedAttrList attributes(op->getDiscardableAttrDictionary());
  Attribute found = takeShardyAttribute(attributes, name);
  if (found) {
    op->setDiscardableAttrs(attributes.getDictionary(op->getContext()));
  }
  return found;
}

/// A string within a string has its quotes behind backslashes.
static std::string getStoredText(StringAttr stored) {
  std::string text;
  llvm::copy_if(stored.getValue(), std::back_inserter(text),
                [](char c) { return c != '\\'; });
  return text;
}

std::string getShardyText(Attribute attribute) {
  if (auto stored = dyn_cast_or_null<StringAttr>(attribute)) {
    return getStoredText(stored);
  }
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (attribute) {
    attribute.print(stream);
  }
  return text;
}

bool isOfShardy(Operation *op, StringRef name, StringRef target) {
  auto call = dyn_cast<stablehlo::CustomCallOp>(op);
  return call ? call.getCallTargetName() == ("xla.sdy." + target).str()
              : op->getName().getStringRef() == ("sdy." + name).str();
}

bool isShardyMesh(Operation *op) {
  return op->getName().getStringRef() == "sdy.mesh" &&
         op->getNumResults() == 0 && op->getNumRegions() == 0 &&
         isa<ModuleOp>(op->getParentOp());
}

/// `"data"`
static std::optional<StringRef> readName(StringRef &text) {
  if (!text.consume_front("\"") || !text.contains('"')) {
    return std::nullopt;
  }
  auto [name, rest] = text.split('"');
  text = rest;
  return name;
}

/// `{"data", ?}p1`
static std::optional<ShardyDim> readDim(StringRef &text) {
  ShardyDim dim;
  if (!text.consume_front("{")) {
    return std::nullopt;
  }
  while (!text.consume_front("}")) {
    if (text.consume_front("?")) {
      dim.isOpen = true;
    } else if (std::optional<StringRef> name = readName(text)) {
      dim.names.push_back(*name);
    } else {
      return std::nullopt;
    }
    text.consume_front(", ");
  }
  if (text.consume_front("p")) {
    // A priority of propagation.
    text = text.drop_while([](char c) { return llvm::isDigit(c); });
  }
  return dim;
}

/// `@mesh`, or `mesh<["data"=2]>`.
static std::optional<StringRef> readMesh(StringRef &text) {
  StringRef start = text;
  size_t length = text.starts_with("@") ? text.find(',') : text.find(">, [");
  if (length == StringRef::npos) {
    return std::nullopt;
  }
  length += text.starts_with("@") ? 0 : 1;
  text = text.drop_front(length);
  return start.take_front(length);
}

std::optional<ShardySharding> readShardySharding(StringRef &text) {
  text.consume_front("#sdy.");
  text.consume_front("sharding");
  if (!text.consume_front("<")) {
    return std::nullopt;
  }
  ShardySharding sharding;
  std::optional<StringRef> mesh = readMesh(text);
  if (!mesh || !text.consume_front(", [")) {
    return std::nullopt;
  }
  sharding.mesh = *mesh;
  while (!text.consume_front("]")) {
    std::optional<ShardyDim> dim = readDim(text);
    if (!dim) {
      return std::nullopt;
    }
    sharding.dims.push_back(*dim);
    text.consume_front(", ");
  }
  if (text.consume_front(", replicated=")) {
    std::optional<ShardyDim> axes = readDim(text);
    if (!axes) {
      return std::nullopt;
    }
    sharding.replicated = std::move(axes->names);
  }
  if (!text.consume_front(">")) {
    return std::nullopt;
  }
  return sharding;
}

//===----------------------------------------------------------------------===//
// Rules
//===----------------------------------------------------------------------===//

namespace {

/// Reads a rule whose spaces are gone. Factors are i, j, ... z, z_1, z_2, ...
class RuleReader {
public:
  explicit RuleReader(StringRef text) : text(text) {}

  std::optional<ShardingRule> read() {
    text.consume_front("#sdy.");
    bool isRead = text.consume_front("op_sharding_rule<") &&
                  readTensors(rule.operands) && text.consume_front("->") &&
                  readTensors(rule.results) && readSizes();
    readFactors("reduction=", reduced);
    readFactors("need_replication=", replicated);
    readFactors("permutation=", replicated);
    std::vector<unsigned> ignored;
    readFactors("blocked_propagation=", ignored);
    text.consume_front(",custom");
    if (!isRead || isBroken || text != ">") {
      return std::nullopt;
    }
    setKinds();
    return std::move(rule);
  }

private:
  /// Calls `readOne` until `close`, past commas.
  bool readList(StringRef open, StringRef close, function_ref<bool()> readOne) {
    if (!text.consume_front(open)) {
      return false;
    }
    while (!text.consume_front(close)) {
      if (!readOne()) {
        return false;
      }
      text.consume_front(",");
    }
    return true;
  }

  std::optional<unsigned> readFactor() {
    if (text.empty() || text.front() < 'i' || text.front() > 'z') {
      return std::nullopt;
    }
    StringRef name = text.take_front();
    text = text.drop_front();
    if (text.consume_front("_")) {
      size_t digits = text.find_if_not(llvm::isDigit);
      name = StringRef(name.data(), 2 + std::min(digits, text.size()));
      text = text.drop_front(std::min(digits, text.size()));
    }
    auto [it, isNew] = numbers.try_emplace(name.str(), rule.factors.size());
    if (isNew) {
      rule.addFactor(kUnknownSize, FactorKind::Replicated);
    }
    return it->second;
  }

  bool readTensors(SmallVectorImpl<TensorFactors> &tensors) {
    return readList("(", ")", [&] {
      tensors.emplace_back();
      return readList("[", "]", [&] {
        tensors.back().emplace_back();
        while (std::optional<unsigned> factor = readFactor()) {
          tensors.back().back().push_back(*factor);
        }
        return !tensors.back().back().empty();
      });
    });
  }

  bool readSizes() {
    return !text.starts_with("{") || readList("{", "}", [&] {
      std::optional<unsigned> factor = readFactor();
      return factor && text.consume_front("=") &&
             !text.consumeInteger(10, rule.factors[*factor].size);
    });
  }

  void readFactors(StringRef title, std::vector<unsigned> &found) {
    if (!text.consume_front(title)) {
      return;
    }
    isBroken |= !readList("{", "}", [&] {
      std::optional<unsigned> factor = readFactor();
      found.push_back(factor.value_or(0));
      return factor.has_value();
    });
  }

  static bool has(const TensorFactors &tensor, unsigned factor) {
    return llvm::any_of(tensor, [&](const DimFactors &dim) {
      return llvm::is_contained(dim, factor);
    });
  }

  void setKinds() {
    for (auto [index, factor] : llvm::enumerate(rule.factors)) {
      auto hasIt = [index = index](const TensorFactors &tensor) {
        return has(tensor, index);
      };
      if (llvm::is_contained(replicated, index) ||
          llvm::none_of(rule.operands, hasIt)) {
        continue;
      }
      if (llvm::all_of(rule.results, hasIt)) {
        factor.kind = FactorKind::Parallel;
      } else if (llvm::is_contained(reduced, index) &&
                 llvm::none_of(rule.results, hasIt)) {
        factor.kind = FactorKind::Reduction;
      }
    }
  }

  StringRef text;
  ShardingRule rule;
  std::map<std::string, unsigned> numbers;
  std::vector<unsigned> reduced, replicated;
  bool isBroken = false;
};

} // namespace

std::optional<ShardingRule> readShardyRule(StringRef text) {
  std::string packed;
  llvm::copy_if(text, std::back_inserter(packed),
                [](char c) { return c != ' '; });
  return RuleReader(packed).read();
}

//===----------------------------------------------------------------------===//
// Meshes
//===----------------------------------------------------------------------===//

ShardyMeshes::ShardyMeshes(ModuleOp module) {
  for (Operation &op : *module.getBody()) {
    auto name = isShardyMesh(&op)
                    ? dyn_cast_or_null<StringAttr>(getShardyAttribute(
                          &op, SymbolTable::getSymbolAttrName()))
                    : nullptr;
    if (name) {
      texts["@" + name.str()] = getShardyText(getShardyAttribute(&op, "mesh"));
    }
  }
  NamedAttrList attributes(module->getDiscardableAttrDictionary());
  readStored(getShardyText(takeShardyAttribute(attributes, "meshes")));
}

/// `{mesh = #sdy.mesh<["x"=2]>, other = #sdy.mesh<["y"=4]>}`
void ShardyMeshes::readStored(StringRef text) {
  text.consume_front("{");
  while (text.contains('>')) {
    auto [mesh, rest] = text.split('>');
    auto [name, value] = mesh.split(" = ");
    texts["@" + name.str()] = value.str() + ">";
    text = rest;
    text.consume_front(", ");
  }
}

std::optional<SmallVector<std::pair<StringRef, int64_t>>>
ShardyMeshes::get(StringRef mesh) const {
  StringRef text = mesh;
  if (mesh.starts_with("@")) {
    auto it = texts.find(mesh.str());
    if (it == texts.end()) {
      return std::nullopt;
    }
    text = it->second;
  }
  text.consume_front("#sdy.");
  if (!text.consume_front("mesh<[")) {
    return std::nullopt;
  }
  SmallVector<std::pair<StringRef, int64_t>> axes;
  while (!text.consume_front("]")) {
    std::optional<StringRef> name = readName(text);
    int64_t size = 0;
    if (!name || !text.consume_front("=") || text.consumeInteger(10, size)) {
      return std::nullopt;
    }
    axes.emplace_back(*name, size);
    text.consume_front(", ");
  }
  return axes;
}

} // namespace mlir::alpa
