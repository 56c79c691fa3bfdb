//===- StrategyGraphBuilder.h - Strategies of a module ----------*- C++ -*-===//
//
// Walks a module once, in order, and gives every value a place in the graph.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_STRATEGYGRAPHBUILDER_H
#define CPP_ANALYSIS_STRATEGYGRAPHBUILDER_H

#include "cpp/analysis/FactorMapping.h"
#include "cpp/analysis/StepAnalyses.h"
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

/// The strategies of an operator as its rule gives them: those of all operators
/// with the same rule that follow shardings of the same table.
struct OperatorStrategies {
  SmallVector<FactorRow> factorRows;
  SmallVector<OperatorRows> rows;
  int factorTable = -1;
  /// Of results as the operator makes them, and as it hands them on.
  SmallVector<int, 3> operandTables;
  SmallVector<int, 2> resultTables, handedOnTables;
  /// Per strategy the blocks that the loops are split into.
  std::vector<double> shards;
  /// Per operand or result and strategy the blocks of the tensor.
  std::vector<std::vector<double>> operandShards, resultShards;
  /// Of leaders; shapes of products alone.
  std::vector<std::string> labels;
  std::vector<ProductShape> productShapes;
};

class StrategyGraphBuilder {
public:
  StrategyGraphBuilder(func::FuncOp function, MeshAttr mesh,
                       StepAnalyses &analyses, Backend backend);

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
  /// \param reader reads it; null for what no operator does.
  void connect(Value value, int node, int table, double weight,
               Operation *reader = nullptr);
  void connectRematerialized(Operation *op, int node, int table, double weight,
                             Operation *reader);
  /// Notes what `reader` has beside a value that it gathers.
  void addCopy(Value value, int node, int table, Operation *reader);
  int internCopyTable(RankedTensorType type, int fromTable, int toTable,
                      bool isWithin);
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
  const OperatorStrategies &getLeaderStrategies(Operation *op,
                                                const ShardingRule &rule);
  LogicalResult visitManual(ManualOp op, double weight);
  void visitFollower(Operation *op, double weight);
  void visitReplicated(Operation *op, double weight);
  void finishFunction(Operation *terminator);

  /// Tables and numbers of blocks of strategies.
  /// \param sumsAtOnce shares of a sum over split loops are not handed on.
  OperatorStrategies tabulate(const ShardingRule &rule,
                              SmallVector<FactorRow> factorRows,
                              SmallVector<OperatorRows> rows, bool sumsAtOnce);
  /// What strategies are called: the shardings of operands and results.
  void label(OperatorStrategies &strategies, Operation *op) const;
  /// Records the tables of one operator, its costs and its joins.
  void placeOperator(Operation *op, int node, const ShardingRule &rule,
                     const OperatorStrategies &strategies, double weight);
  void addOperatorCosts(Operation *op, int node, const ShardingRule &rule,
                        const OperatorStrategies &strategies, double weight);
  /// Where bytes of an operator are counted beside those of its node, by the
  /// bits that numbers have in memory: more than 16, and at most so many.
  struct Streams {
    std::vector<double> *wide = nullptr, *narrow = nullptr;
  };
  /// The streams of an operator; null for those of products, and for GPU of the
  /// operator that leads the node, unless it moves values to the host or back.
  Streams getStreams(StrategyNode &node, Operation *op,
                     const ShardingRule &rule) const;
  /// Counts what an operator moves, as part of the product in whose kernel it
  /// is computed if there is one.
  void addTraffic(Operation *op, int node, const ShardingRule &rule,
                  const OperatorStrategies &strategies, double weight);
  /// Counts what moves with a product, as its result is split.
  void addEpilogue(Value product, const OperatorPlacement &placement,
                   double bytes);
  /// Records the copies in front of a product; see
  /// `Materialization::getCopiedBytes`.
  void addCopies(Operation *op, int node, const OperatorStrategies &strategies,
                 double weight);
  bool canBePartial(Value value) const;

  // Memory and data flow.
  /// Local bytes of a value per strategy of its node.
  std::vector<double> getLocalBytes(RankedTensorType type,
                                    ValuePlacement placement) const;
  void recordLiveRanges();
  /// Where the last fusion runs that reads what an operator reads.
  int getLastRead(Operation *reader);
  void recordAccumulators();
  void countPhasePoints();
  void recordParameters();

  func::FuncOp function;
  MeshAttr mesh;
  SmallVector<int64_t> meshShape;
  unsigned numAxes;
  ReshardPlanner planner;
  OperatorRules &rules;
  const DimensionClasses &classes;
  Backend backend;
  const Materialization &memory;
  const Leeway &leeway;
  StrategyGraph graph;

  /// All that strategies depend on: the rule; the operator itself where it is a
  /// constraint; of followers the table of the operand that they follow, its
  /// number and whether they sum at once; of leaders their sets of operands
  /// that can be partial.
  using StrategiesKey = std::tuple<const ShardingRule *, Operation *, int,
                                   unsigned, bool, std::vector<unsigned>>;
  std::map<StrategiesKey, OperatorStrategies> knownStrategies;
  /// Of a rematerialized operator's rule and the table in which its result is
  /// needed: the tables of its operands.
  std::map<std::pair<const ShardingRule *, int>, SmallVector<int, 3>>
      rematerializedTables;

  std::map<std::string, int> tableIds, factorTableIds;
  std::map<std::string, int32_t> planIds;
  std::map<std::tuple<int, int, const void *>, std::vector<int32_t>> planTables;
  /// Of each type: rows from and to, side by side -> plan.
  DenseMap<const void *, std::unordered_map<uint64_t, int32_t>> pairPlans;
  std::map<std::tuple<const void *, int, int>, bool> joined;
  std::map<std::tuple<const void *, int, int, bool>, int> copyTableIds;
  DenseMap<Operation *, int> lastReads;
  llvm::StringMap<unsigned> nameCounts;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_STRATEGYGRAPHBUILDER_H
