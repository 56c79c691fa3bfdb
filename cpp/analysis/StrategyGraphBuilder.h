//===- StrategyGraphBuilder.h - Strategies of a module ----------*- C++ -*-===//
//
// Walks a module once, in order, and gives every value a place in the graph.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_STRATEGYGRAPHBUILDER_H
#define CPP_ANALYSIS_STRATEGYGRAPHBUILDER_H

#include "cpp/analysis/FactorMapping.h"
#include "cpp/analysis/Materialization.h"
#include "cpp/analysis/StrategyGraph.h"
#include "dialects/alpa/DataFlow.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/StringSet.h"
#include <map>
#include <tuple>
#include <unordered_map>

namespace mlir::alpa {

/// In place of a class (see StrategyNode): the axis hands shares of a sum on.
inline constexpr int32_t kSharesHandedOn = -3;

class StrategyGraphBuilder {
public:
  StrategyGraphBuilder(func::FuncOp function, MeshAttr mesh);

  FailureOr<StrategyGraph> build();

private:
  using Table = std::vector<ShardingRow>;

  // Tables, nodes and plans.
  int internTable(const Table &rows);
  int internFactorTable(ArrayRef<FactorRow> rows);
  int internReplicated(unsigned numRows);
  ShardingRowRef getRow(int table, unsigned row) const;
  int addNode(StringRef name, StringRef op, unsigned numStrategies);
  std::string makeUnique(std::string name);
  int32_t internPlan(std::vector<VolumeStep> steps);
  int32_t getReshardPlan(RankedTensorType type, ShardingRowRef from,
                         ShardingRowRef to);
  ArrayRef<int32_t> getReshardPlans(int fromTable, int toTable,
                                    RankedTensorType type);

  // Joins.
  void connect(Value value, int node, int table, double weight);
  void connectRematerialized(Operation *op, int node, int table, double weight);
  void requireReplicated(Value value, double weight);
  /// A node with every sharding of `value`'s shape that is `allowed`, or with
  /// every one if none is.
  ValuePlacement
  placeFreely(Value value, StringRef name, StringRef op,
              function_ref<bool(ShardingRowRef)> allowed = nullptr);
  /// A node with every sharding of `value`'s shape, partial ones included.
  ValuePlacement placeSum(Value value, StringRef name, StringRef op);
  /// A node with these shardings of `value`.
  ValuePlacement placeIn(ArrayRef<ShardingRow> rows, Value value,
                         StringRef name, StringRef op);
  /// An argument that only goes into a constraint lies as that asks for.
  ValuePlacement placeArgument(BlockArgument argument, StringRef name);

  // The walk.
  LogicalResult visit(Block &block, double weight);
  LogicalResult visit(Operation *op, double weight);
  LogicalResult visitRegions(DataFlowOpInterface op, double weight);
  void placeEdges(DataFlowOpInterface op, const DataFlowEdges &edges);
  ValuePlacement placeSlices(ValuePlacement whole, unsigned dim);
  void visitLeader(Operation *op, double weight);
  /// Drops the strategies that a constraint rules out, unless those are all.
  static void keepAllowed(ConstrainOp op, MeshAttr mesh,
                          SmallVector<FactorRow> &factorRows,
                          SmallVector<OperatorRows> &rows);
  LogicalResult visitManual(ManualOp op, double weight);
  void visitFollower(Operation *op, double weight);
  void visitReplicated(Operation *op, double weight);
  void finishFunction(Operation *terminator);

  /// Records the tables of one operator, its costs and its joins.
  void placeOperator(Operation *op, int node, const ShardingRule &rule,
                     ArrayRef<FactorRow> factorRows,
                     ArrayRef<OperatorRows> rows, double weight);
  void addOperatorCosts(Operation *op, int node, const ShardingRule &rule,
                        ArrayRef<FactorRow> factorRows,
                        ArrayRef<OperatorRows> rows, double weight);
  bool canBePartial(Value value) const;

  // Memory and data flow.
  /// Local bytes of a value per strategy of its node.
  std::vector<double> getLocalBytes(RankedTensorType type,
                                    ValuePlacement placement) const;
  void recordLiveRanges();
  void recordAccumulators();
  int countForwardPoints();
  void recordParameters();

  func::FuncOp function;
  MeshAttr mesh;
  SmallVector<int64_t> meshShape;
  unsigned numAxes;
  ReshardPlanner planner;
  DimensionClasses classes;
  StrategyGraph graph;

  std::map<std::string, int> tableIds, factorTableIds;
  std::map<std::string, int32_t> planIds;
  std::map<std::tuple<int, int, const void *>, std::vector<int32_t>> planTables;
  /// Of each type: rows from and to, side by side -> plan.
  DenseMap<const void *, std::unordered_map<uint64_t, int32_t>> pairPlans;
  std::map<std::tuple<const void *, int, int>, bool> joined;
  llvm::StringMap<unsigned> nameCounts;
  Materialization memory;
  Leeway leeway;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_STRATEGYGRAPHBUILDER_H
