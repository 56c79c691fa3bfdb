//===- StrategyGraph.h - What the planner chooses from ----------*- C++ -*-===//
//
// The optimisation problem of the Alpa paper's Eq. 1 in flat arrays: nodes with
// strategies, edges with a reshard plan per pair of strategies. Volumes only:
// seconds are put on them outside the compiler.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_STRATEGYGRAPH_H
#define CPP_ANALYSIS_STRATEGYGRAPH_H

#include "cpp/analysis/Backend.h"
#include "cpp/analysis/DimensionClasses.h"
#include "cpp/analysis/Leeway.h"
#include "cpp/analysis/ProductShape.h"
#include "cpp/analysis/ReshardPlanner.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"
#include <array>
#include <string>
#include <vector>

namespace mlir::alpa {

class StepAnalyses;

/// One sharding row per strategy of a node.
struct SpecTable {
  unsigned numRows = 0;
  /// [numRows][numAxes]
  std::vector<int8_t> entries;
};

/// What moves bytes without being a product: sums, which write less than they
/// read, and all else, of numbers of 32 bits or of 16; and what moves them to
/// the memory of the host and back.
enum class Stream { Addition, NarrowAddition, Sum, NarrowSum, HostMove };
inline constexpr unsigned kNumStreams = 5;

/// An operator, or a group around its leader, with its strategies.
struct StrategyNode {
  std::string name;
  std::string op;
  /// Element type in which the floating-point operations run.
  std::string dtype = "f32";
  /// Whether it leads with a product (see ArgumentUses.h).
  bool isProduct = false;
  /// Of a product: how often it runs per step, its form, and per strategy its
  /// shape, its padding (see `getChannelPadding`) and the bytes that it moves
  /// itself.
  double productRuns = 0;
  ProductForm productForm = ProductForm::Usual;
  std::vector<ProductShape> productShapes;
  std::vector<double> productPaddings, productBytes;
  /// Kernels that it launches per step.
  double kernels = 0;
  unsigned numStrategies = 0;
  /// Per strategy, per device and step.
  std::vector<double> flops, bytes;
  /// Of these bytes those of each `Stream`; for GPU, those of what follows the
  /// operator, which may have an access of its own.
  std::array<std::vector<double>, kNumStreams> streams;
  std::vector<std::string> labels;
  /// [numStrategies][numAxes] the class of dimensions that each axis splits
  /// (see DimensionClasses.h); `kUnsplit` where it splits nothing.
  std::vector<int32_t> classes;
  /// The classes of all dimensions of its tensors, split or not.
  llvm::SmallSetVector<int64_t, 8> tensorClasses;
};

/// In place of a class: the axis splits nothing.
inline constexpr int32_t kUnsplit = -2;

/// Reshards that a node pays for itself: one plan per strategy.
struct UnaryTerm {
  int node;
  double weight;
  std::vector<int32_t> plans;
  /// What its collectives may run beside.
  Beside beside = Beside::Nothing;
};

/// Reshards between two nodes: plans[i * numStrategies(target) + j].
struct StrategyEdge {
  int source, target;
  double weight;
  std::vector<int32_t> plans;
  Beside beside = Beside::Nothing;
};

/// A tensor that occupies memory between two program points, inclusive.
struct LiveValue {
  int node;
  int start, end;
  std::string name;
  /// Local bytes per strategy of the node.
  std::vector<double> bytes;
};

/// What an operator reads of a value that takes more memory in the sharding in
/// which it is read: it lies beside the value, program points inclusive.
struct GatheredCopy {
  int source, target;
  int start, end;
  /// Of `copyTables`.
  int table;
  std::string name;
};

/// What is summed up over the micro-batches of a step: there from the first of
/// them to the end.
struct Accumulator {
  int node;
  /// Local bytes per strategy of the node.
  std::vector<double> bytes;
};

/// One collective of an interned reshard plan.
struct VolumeStep {
  CollectiveKind kind;
  uint32_t axes;
  double bytes;
};

/// Where a value lives in the graph; node -1: the same on every device.
struct ValuePlacement {
  int node = -1;
  int table = -1;
};

/// Shardings of an operator's operands and results under its node's choice.
/// Table -1 is replicated.
struct OperatorPlacement {
  int node = -1;
  /// Per choice of the node the operator's strategy; -1 where it splits
  /// nothing.
  int factorTable = -1;
  SmallVector<int, 3> operandTables;
  SmallVector<int, 2> resultTables;
};

struct StrategyGraph {
  SmallVector<std::string> meshAxes;
  SmallVector<int64_t> meshShape;
  std::vector<StrategyNode> nodes;
  std::vector<UnaryTerm> unaryTerms;
  std::vector<StrategyEdge> edges;
  std::vector<LiveValue> values;
  std::vector<GatheredCopy> copies;
  /// Local bytes per strategy of the source and of the target; 0 where there is
  /// no copy. Of copies within a node, per strategy.
  std::vector<std::vector<double>> copyTables;
  std::vector<Accumulator> accumulators;
  int numPoints = 0;
  /// Points up to the last operator of the forward phase of a stage.
  int numForwardPoints = 0;
  /// Points up to the last operator of its backward phase.
  int numBackwardPoints = 0;
  /// Interned plans; plan 0 moves nothing.
  std::vector<std::vector<VolumeStep>> plans;

  struct Boundary {
    std::string name;
    ValuePlacement placement;
    /// Arguments: the result that is the next step's value, or -1.
    int alias = -1;
    /// Arguments: an operator with FLOPs, or a gather, is reached from it.
    bool isParameter = false;
    /// Arguments: another stage sends it with every micro-batch.
    bool isTransfer = false;
    /// Arguments: a part of a batch; those of all micro-batches are there.
    bool isBatch = false;
    /// Per dimension its class.
    SmallVector<int64_t> classes = {};
  };
  std::vector<Boundary> inputs, outputs;

  std::vector<SpecTable> tables;
  /// Per strategy of a node that of one of its operators.
  std::vector<std::vector<FactorRow>> factorTables;

  /// For writing a solution back; keys are of the module the graph was made
  /// from.
  DenseMap<Value, ValuePlacement> valuePlacements;
  DenseMap<Operation *, OperatorPlacement> operatorPlacements;
  /// Operators with regions that values flow through: a place per edge.
  DenseMap<Operation *, SmallVector<ValuePlacement>> edgePlacements;

  /// The row of a table under the choice of its node.
  ShardingRow getRow(int node, int table, ArrayRef<int64_t> choices) const;

  /// The strategy of an operator under the choice of its node.
  FactorRow getFactorRow(const OperatorPlacement &placement,
                         ArrayRef<int64_t> choices) const;
};

/// Enumerates the strategies of a module whose operators have roles (see
/// OperatorRoles.h). Fails with a diagnostic on a module without roles.
/// \param backend whose rules decide what is stored, read and written.
FailureOr<StrategyGraph> buildStrategyGraph(func::FuncOp function,
                                            MeshAttr mesh,
                                            Backend backend = Backend::Gpu);

/// The same with what is known of the function for all meshes.
FailureOr<StrategyGraph> buildStrategyGraph(func::FuncOp function,
                                            MeshAttr mesh,
                                            StepAnalyses &analyses,
                                            Backend backend = Backend::Gpu);

/// The outermost name that a location carries, `jit(step)/layer_0/dot_general`;
/// empty if it has none.
std::string getScope(Location location);

/// A readable name from an operator's location: its name scope and kind.
std::string getReadableName(Operation *op);

/// The name that an argument's location carries, or its number.
std::string getReadableName(BlockArgument argument);

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_STRATEGYGRAPH_H
