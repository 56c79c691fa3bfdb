//===- PhaseFunction.h - The program of a phase, as it grows ----*- C++ -*-===//
//
// A module with one function, `main`, whose arguments and results say what they
// are (`alpa.input`, `alpa.local`, ...) and how they are sharded.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_TRANSFORMS_PHASEFUNCTION_H
#define CPP_TRANSFORMS_PHASEFUNCTION_H

#include "dialects/alpa/Alpa.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/IRMapping.h"

namespace mlir::alpa {

class PhaseFunction {
public:
  /// What a value of the boundary is: an attribute and its number.
  struct Kind {
    StringRef name;
    int64_t number;
  };

  /// A module at the insertion point, on the mesh of `source`.
  PhaseFunction(OpBuilder &builder, ModuleOp source, Location loc,
                StringRef name);

  /// A new argument of the type of `like`.
  Value addArgument(Value like, Kind kind, ShardingAttr sharding);
  /// Makes an argument stand for `value`.
  void mapToArgument(Value value, Kind kind, ShardingAttr sharding);
  void addResult(Value value, Kind kind, ShardingAttr sharding);
  /// Returns `value` in place of `before`.
  void replaceResult(Value before, Value value);

  /// Copies an operator whose operands are mapped.
  Operation *clone(Operation &op) { return body.clone(op, mapping); }
  void map(Value value, Value stand) { mapping.map(value, stand); }
  bool contains(Value value) const { return mapping.contains(value); }
  Value lookup(Value value) const { return mapping.lookup(value); }
  OpBuilder &getBuilder() { return body; }
  ModuleOp getModule() const { return module; }

  /// Returns the results; nothing is added behind that.
  void finish();

private:
  struct Entry {
    Kind kind;
    ShardingAttr sharding;
  };

  ModuleOp module;
  func::FuncOp function;
  OpBuilder body;
  IRMapping mapping;
  SmallVector<Entry> arguments, results;
  SmallVector<Value> returned;
};

} // namespace mlir::alpa

#endif // CPP_TRANSFORMS_PHASEFUNCTION_H
