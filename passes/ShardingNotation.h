//===- ShardingNotation.h - Shardings as XLA writes them --------*- C++ -*-===//

#ifndef PASSES_SHARDINGNOTATION_H
#define PASSES_SHARDINGNOTATION_H

#include "dialects/alpa/Sharding.h"
#include "mlir/IR/Builders.h"
#include <memory>

namespace mlir::alpa {

/// How one of XLA's partitioners writes shardings and constraints. Shardings
/// are without partial axes.
class ShardingNotation {
public:
  virtual ~ShardingNotation() = default;

  /// `shardy` or `gspmd`; null for anything else.
  static std::unique_ptr<ShardingNotation> get(StringRef name, MeshAttr mesh);

  /// The attribute of arguments and results.
  virtual StringRef getAttributeName() const = 0;
  virtual Attribute getAttribute(ShardingAttr sharding) const = 0;

  /// The value, to be laid out as `sharding` says.
  virtual Value createConstraint(OpBuilder &builder, Location loc, Value value,
                                 ShardingAttr sharding) const = 0;
};

/// A sharding in Shardy's notation. The dialect is not linked.
Attribute getShardyAttr(MLIRContext *context, StringRef text);

/// `sdy.sharding_constraint` with such a sharding, in generic form.
Value createShardyConstraint(OpBuilder &builder, Location loc, Value value,
                             Attribute sharding);

} // namespace mlir::alpa

#endif // PASSES_SHARDINGNOTATION_H
