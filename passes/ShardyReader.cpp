//===- ShardyReader.cpp - Shardy's notation, read from its text -----------===//

#include "passes/ShardyReader.h"

#include "mlir/IR/SymbolTable.h"
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

std::string getShardyText(Attribute attribute) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  if (attribute) {
    attribute.print(stream);
  }
  return text;
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
