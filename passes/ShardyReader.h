//===- ShardyReader.h - Shardy's notation, read from its text ---*- C++ -*-===//
//
// Shardy's dialect is not part of the build: its operations come unregistered,
// and its attributes as text.
//
//===----------------------------------------------------------------------===//

#ifndef PASSES_SHARDYREADER_H
#define PASSES_SHARDYREADER_H

#include "dialects/alpa/Alpa.h"
#include "mlir/IR/BuiltinOps.h"
#include <map>
#include <optional>

namespace mlir::alpa {

/// An attribute of an operation whose dialect need not be loaded: unregistered
/// operations keep what stands in `<{...}>` apart.
Attribute getShardyAttribute(Operation *op, StringRef name);

/// Takes an attribute of Shardy's out of a dictionary: it is called `sdy.` and
/// the name, or `xla.sdy.` and the name among `mhlo.frontend_attributes`, as a
/// string. So XLA writes it in modules that are stored.
Attribute takeShardyAttribute(NamedAttrList &attributes, StringRef name);

/// Likewise of an operation.
Attribute takeShardyAttribute(Operation *op, StringRef name);

/// An attribute as it is printed, or the text that a string stores; empty for
/// none.
std::string getShardyText(Attribute attribute);

/// True for an operation of Shardy's, `sdy.` and the name, and for the call
/// `xla.sdy.` and `target` that XLA writes for it.
bool isOfShardy(Operation *op, StringRef name, StringRef target);

/// True for `sdy.mesh`.
bool isShardyMesh(Operation *op);

/// A dimension of a sharding.
struct ShardyDim {
  SmallVector<StringRef> names;
  /// It may be split further.
  bool isOpen = false;
};

/// A sharding; its parts point into the text that was read.
struct ShardySharding {
  /// The mesh, by name (`@mesh`) or in full.
  StringRef mesh;
  SmallVector<ShardyDim> dims;
  /// Axes that split no dimension for sure.
  SmallVector<StringRef> replicated;
};

/// Reads Shardy's notation from the start of `text`, and takes it off:
///   sharding<@mesh, [{"data"}, {"model", ?}p1], replicated={"z"}>
/// with or without what stands in front of `<`. None for partial sums, parts
/// of axes and whatever is no sharding.
std::optional<ShardySharding> readShardySharding(StringRef &text);

/// Reads a rule of Shardy:
///   #sdy.op_sharding_rule<([i, jk])->([i, j]) {i=8, j=2, k=4} reduction={k}>
/// A factor is parallel if an operand and every result have it, a sum if it is
/// reduced, and otherwise replicated. None for what is no such rule.
std::optional<ShardingRule> readShardyRule(StringRef text);

/// The meshes that a module names, as operations or as XLA stores them, and
/// those that stand in shardings in full.
class ShardyMeshes {
public:
  explicit ShardyMeshes(ModuleOp module);

  /// Names and sizes of `@mesh` or of a mesh in full; none if there is no such
  /// mesh.
  std::optional<SmallVector<std::pair<StringRef, int64_t>>>
  get(StringRef mesh) const;

private:
  void readStored(StringRef text);

  std::map<std::string, std::string> texts;
};

} // namespace mlir::alpa

#endif // PASSES_SHARDYREADER_H
