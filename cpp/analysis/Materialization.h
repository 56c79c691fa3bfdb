//===- Materialization.h - What a program keeps in memory -------*- C++ -*-===//
//
// Most values of a program never lie in memory: they are computed again inside
// of the fusions that read them. This says which do, from where to where, and
// what each fusion reads and writes. Peaks, budgets and the bytes of the
// roofline come from here, for the program as it is written and for its
// per-device form alike.
//
//===----------------------------------------------------------------------===//

#ifndef CPP_ANALYSIS_MATERIALIZATION_H
#define CPP_ANALYSIS_MATERIALIZATION_H

#include "cpp/analysis/Backend.h"
#include "cpp/analysis/FusionRole.h"
#include "cpp/analysis/ReturnedPlaces.h"
#include "cpp/analysis/Rounding.h"
#include "cpp/analysis/RowKernels.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"
#include <map>
#include <set>
#include <vector>

namespace mlir::alpa {

struct MaterializationOptions {
  /// Whether values are stored to save time as well, as XLA does; otherwise
  /// those that cannot be had without being stored.
  bool savesTime = true;
  /// Whether kernels are put where collectives can run beside them; see
  /// `getSchedule`.
  bool overlaps = true;
  /// Devices among which the columns that are summed up are taken to be
  /// divided; 1 where tensors are what one device holds.
  int64_t numDevices = 1;
  /// Whether tensors are what one device holds, so that it can be told which
  /// products are small (see MergedProducts.h).
  bool isLocal = false;
  /// Whether the sums of such products are split (see SplitSums.h).
  bool splitsSums = false;
  /// Whose rules decide.
  Backend backend = Backend::Gpu;
};

/// Which values of a function are stored, and what is read of them. Takes time
/// linear in the program.
///
/// Operators are program points; those of a region come before the operator
/// around them, so that a loop's body is counted beside what lives across the
/// loop. A value is stored
///
///   - if a kernel makes or reads it, or the function returns it;
///   - if several fusions read it, and computing it again would keep more than
///     one operand of its size in memory;
///   - if several fusions read it, and it takes long to compute.
///
/// Sums over the micro-batches of a step (`alpa.accumulate`) are not among
/// them: they are there before the first and behind the last of its operators.
///
/// It lives until the last fusion that reads it, itself or through values that
/// are computed again from it. A result takes the place of an operand that ends
/// with its fusion where the backend can write in place: then it lives from the
/// next point on.
class Materialization {
public:
  /// \param isDonated says of an argument whether its memory may be written
  ///        over; others live throughout.
  Materialization(func::FuncOp function,
                  function_ref<bool(BlockArgument)> isDonated,
                  MaterializationOptions options = {});

  int getNumPoints() const { return numPoints; }
  int getPoint(Operation *op) const { return points.lookup(op); }

  ArrayRef<StoredValue> getStoredValues() const { return storedValues; }
  bool isStored(Value value) const { return stored.contains(value); }
  /// True if a value lies in the memory of the host (see HostValues.h).
  bool isOnHost(Value value) const { return onHost.contains(value); }

  /// Bytes of whole tensors that the fusion around `operand`'s owner reads from
  /// memory through it, and of an update writes into its place, even where the
  /// operator only touches places of it (see
  /// `ShardingRule::untouchedOperands`); a tensor that the fusion has read
  /// before is not read again. 0 for operators that are computed again
  /// elsewhere.
  double getReadBytes(OpOperand &operand) const {
    return readBytes.lookup(&operand);
  }
  /// Of these, the bytes of elements of at most 16 bits in memory.
  double getNarrowReadBytes(OpOperand &operand) const {
    return narrowReadBytes.lookup(&operand);
  }
  /// True if elements take at most 16 bits in memory.
  bool isNarrow(Value value) const;
  /// Bytes of the whole tensor that the operator writes.
  double getWrittenBytes(OpResult result) const;
  /// Bytes that a kernel in front of a product writes for it, and that it reads
  /// again: a slice, what another product made in an order that it cannot take
  /// as a matrix, and what a loop carries where the product makes its next
  /// value. 0 where an operand is read as it lies.
  double getCopiedBytes(OpOperand &operand) const {
    return copiedBytes.lookup(&operand);
  }
  /// Kernels that are launched for it; of what is joined to one fusion, for the
  /// first alone.
  unsigned getNumKernels(Operation *op) const { return numKernels.lookup(op); }
  /// The product in whose kernel an operator is computed; null if there is none
  /// (see ProductEpilogues.h).
  Operation *getProduct(Operation *op) const { return epilogues.lookup(op); }

private:
  /// Stored values that a value is computed from; itself if it is stored.
  using Sources = SmallVector<Value, 4>;

  /// What joins fusions: equally many kernels before them, equally many
  /// elements, a common operand.
  struct FusionKey {
    int depth;
    int64_t numElements;
  };

  /// An operator that stores results, and what its fusion reads.
  struct Root {
    Operation *op;
    Sources from;
    FusionKey fusion;
    bool isElementwise;
  };

  void number(Block &block);
  void visit(Block &block);
  void visit(Operation *op);
  void visitRegions(Operation *op);
  void visitView(Operation *op);
  void visitFused(Operation *op);
  void visitRoot(Operation *op);
  void visitSum(Operation *op);

  /// True if a value is one stored value, perhaps in another shape.
  bool isView(Value value);
  bool isView(Value value, const Sources &from);
  /// Products that read a value, itself or in another shape.
  unsigned countProducts(Value value);
  /// \param isPrologue the value is an elementwise function of one stored
  /// value; of a larger one only if one product reads it.
  bool isReadByKernel(Value value, bool isPrologue);
  /// True if more is read of some value than the result has: what is better
  /// read in its narrow form where it is read several times
  /// (`IsInputWorthFusing` of XLA's GEMM fusion for GPU).
  bool isNarrowed(const Sources &from, Value result);
  /// True for what XLA for TPU rounds once for all products that read it: it is
  /// made of more bytes, or of what lies in another order.
  bool isRoundedOnce(const Sources &from, Value result);
  /// True for an elementwise function of several values of which a product
  /// makes the last, or one that nothing else reads: XLA for TPU computes it
  /// where that product is made.
  bool isEpilogue(const Sources &from, Value result);
  /// True if XLA for TPU compiles the program, and products alone read a value.
  bool isReadByProductsOnly(Value value);
  /// True for what one stored value makes, perhaps a part of it at a place that
  /// others say.
  bool isOfOne(const Sources &from) const;
  /// True if a result is computed elementwise from one stored value, perhaps
  /// with the sums and maxima of its rows.
  bool isFunctionOfOne(const Sources &from, Value result);
  /// True if what an operator makes has another last dimension than what it is
  /// made from, in whose order it lies in memory.
  bool isMoved(Operation *op) const;
  /// True for a reduction over the last dimension in memory: XLA for GPU makes
  /// a kernel of it and what is computed from it (a softmax, a norm), whose
  /// result is stored.
  bool normalizes(Operation *op) const;
  /// True if operands are in memory when the operator runs.
  bool readsStored(Operation *op);
  /// True for widened numbers that are summed up, and read again, of which a
  /// dimension has one element: XLA leaves it out of the reduction's operand,
  /// and its fusion for GPU stores what stands before that reshape. Of what
  /// lies in order, softmaxes are kernels.
  bool isReducedInOtherShape(Value value, const Sources &from);
  /// True for the results of long functions that XLA for GPU does not compute
  /// again for each of their readers: of numbers narrower than what it computes
  /// in, masks of random bits, and what is computed in order with a gathered
  /// parameter, if the cache does not hold it.
  bool isWorthKeeping(Value value, const Sources &from);
  /// True for an operator of several values as large as its result, which a
  /// product of XLA for GPU does not compute in its operand.
  bool joinsLarge(Operation *op) const;
  /// True if a value of which places are looked up is all that is read of one
  /// that an operator makes: it is stored instead.
  bool replacesLookedUp(Value value, const Sources &from);
  /// True for what is summed up in rows, as scores are, and joins what is
  /// looked up, such as the biases of distances, where several do so: each
  /// looks it up by itself. Kernels of rows of XLA for GPU look up nothing, so
  /// that it is stored.
  bool joinsLookedUp(Value value);
  /// Notes where places of a value that is not in memory are looked up.
  void noteLookUps(Value value);
  /// True if it is better stored than computed again by each of its readers.
  bool isWorthStoring(Value value, const Sources &sources);
  Sources collectSources(Operation *op) const;
  /// Makes one fusion of what is computed in one kernel: for GPU what reduces
  /// rows and reads them (see RowKernels.h), for TPU products and what follows
  /// them (see ProductEpilogues.h).
  void joinKernels();
  void joinEpilogues(ArrayRef<StoringOperator> storing);
  /// The point at which the kernel of an operator runs, or of the product in
  /// whose kernel it is computed.
  int getKernelPoint(Operation *op) const;
  /// Has all fusions read what they are computed from.
  void readSources();
  void read(OpOperand &operand, FusionKey fusion);
  /// True if a fusion reads some of these that are as large as what it
  /// computes.
  bool joinsFusion(const Sources &from, FusionKey fusion) const;
  /// True if the kernel of a product makes of what a loop carries its next
  /// value: it is written over no operand of a product, so XLA copies it.
  bool replacesCarried(OpOperand &operand) const;
  /// Notes where a product reads a copy.
  void copy(OpOperand &operand);
  void store(Value value, int depth);
  /// Bytes of a source that computing a value reads: all, or what slices on the
  /// way leave of it.
  double getTouchedBytes(Value value, Value source) const;
  /// Notes where a value that is computed again reads a part of its sources.
  void narrow(Operation *op, Value result);
  /// True if an operator reads a source in a copy alone: what was gathered, or
  /// what a loop reads in the order of that (see LoopOrder.h).
  bool readsCopyOf(Operation *op, Value source);
  /// Notes where an operator reads a source.
  void noteRead(Operation *op, Value source);
  /// Notes where a product reads a slice of others that are computed as one.
  /// True if that is all that it reads of them.
  bool readsSlices(Operation *op, Value source);
  void placeReturnedCopies();
  void placeCopies();
  void placeMadeAgain();
  void placeReorderedArguments(Block &block);
  void placeSlices();
  void placeLookedUp();
  void placePadded();
  void placeKernels();
  void holdSent();
  void holdScattered();
  /// Bytes in memory for each byte of a value.
  double getStoredRatio(Value value);
  /// Bytes that a kernel needs beside its results, as a share of those of the
  /// first.
  double getScratch(Operation *op) const;
  /// Bytes in memory for each of these, with what pads them to tiles.
  double getPadding(Value value) const;
  /// The point from which on the memory of a loop's result is taken.
  int getLoopStart(OpResult result) const;
  void placeResults();
  /// Where nothing lies yet of what is returned.
  SmallVector<ReturnedPlace> findReturnedPlaces(Operation *terminator);
  /// True for a gather of columns that are less than a tile: XLA for TPU adds
  /// blocks up among zeros, in the memory of the result.
  bool isGatheredBySum(Operation *op) const;
  /// True for a sum that is scattered over all devices: XLA for TPU makes it
  /// whole on each.
  bool isSummedWhole(Operation *op) const;
  /// True for such a sum that fusions alone read: they take their part of it.
  bool isHeldWhole(Operation *op);
  /// True for a sum that XLA for TPU writes over its summand.
  bool isSummedInPlace(Operation *op);
  /// Bytes in memory for each byte of a value, with what is held of a sum
  /// beside a device's part.
  double getHeldRatio(Value value);
  /// True for what other devices send, which XLA for TPU receives in memory of
  /// its own: what is returned is a copy of it, or written beside it.
  bool isReceivedApart(Value source) const;
  /// True if a result can be written over a value: it is as large, or its
  /// padded form is.
  bool fits(Value value, Value result);
  /// The value in whose place a result is written; null if there is none.
  Value findReplaced(OpResult result, const Sources &from);
  void recordRanges(func::FuncOp function,
                    function_ref<bool(BlockArgument)> isDonated);

  MaterializationOptions options;
  /// What takes none of the device's memory; see HostValues.h.
  llvm::DenseSet<Value> onHost;
  FusionRoles roles;
  Rounding rounding;
  int numPoints = 0;
  DenseMap<Operation *, int> points;
  /// Of operators with regions, the point of the first operator inside.
  DenseMap<Operation *, int> firstInside;

  DenseMap<Value, Sources> sources;
  /// By value and source, where less than all of the source is read.
  DenseMap<std::pair<Value, Value>, double> touched;
  /// Values that no kernel computes in its operand; see `endsPrologue`.
  llvm::DenseSet<Value> noPrologues;
  /// Made from nothing in memory, for a loop to start from.
  llvm::DenseSet<Value> filled;
  /// Of what loops of a block start from and nothing in memory makes, the point
  /// at which the first of them begins. XLA for GPU copies such a value for all
  /// of them in the fusion that makes it.
  DenseMap<std::pair<Value, Block *>, int> firstFilled;
  /// See `isMoved` and `normalizes`.
  llvm::DenseSet<Value> moved, normalizers;
  /// Of loops, what they read in another order; see LoopOrder.h.
  DenseMap<Operation *, llvm::DenseSet<Value>> reordered;
  /// Kernels on the longest way to a stored value.
  DenseMap<Value, int> stored;
  /// Last point at which a fusion reads a stored value, and the first.
  DenseMap<Value, int> lastRead, firstRead;
  /// Of sources that are copied, the first and last point at which a fusion
  /// reads the copy.
  llvm::MapVector<Value, std::pair<int, int>> copies;
  /// Of what is computed for kernels that look up places of it, the last point
  /// at which one does.
  llvm::MapVector<Value, int> lookedUp;
  /// Of look-ups how many operators read the result, moved and repeated.
  DenseMap<Operation *, unsigned> numLookUps;
  /// What is computed again to be returned; see ReturnedOrders.h.
  llvm::DenseSet<Value> madeAgain;
  /// In which order copies are made of what is returned.
  DenseMap<Value, int> copyOrders;
  /// Operators that store results, in order.
  std::vector<Root> roots;
  /// Of products that are computed as one the first, and how much larger what
  /// it makes is.
  DenseMap<Operation *, std::pair<Operation *, double>> merged;
  /// A copy of a product's slice, and the points between which others read it.
  struct SliceCopy {
    Operation *product;
    int start, end;
  };
  /// By the product's point and the order in which it is read.
  std::map<std::pair<int, SmallVector<int64_t>>, SliceCopy> slices;
  DenseMap<OpOperand *, double> readBytes, narrowReadBytes, copiedBytes;
  /// Results of products, and the orders in which products read copies of them.
  std::set<std::pair<int, SmallVector<int64_t>>> ordered;
  llvm::DenseSet<std::tuple<Value, int, int64_t>> joined;
  DenseMap<Operation *, unsigned> numKernels;
  /// Of what is computed in the kernels of products, the product.
  DenseMap<Operation *, Operation *> epilogues;
  /// Of products that wait for what their kernels read besides, where that is
  /// read.
  DenseMap<Operation *, Operation *> awaited;
  /// Results of products that are read in their kernels alone.
  llvm::DenseSet<Value> unwritten;

  /// Values whose memory may be written over once they end.
  llvm::DenseSet<Value> replaceable;
  /// Values that are written over arguments.
  llvm::DenseSet<Value> overArguments;
  /// Values that operators of other phases read.
  llvm::DenseSet<Value> handedOn;
  /// Values in memory that is counted for what a loop carries, or for the sums
  /// over the micro-batches of a step.
  llvm::DenseSet<Value> carried;
  /// Of several micro-batches.
  bool hasSums = false;
  /// Of results in memory of their own, where these are not the program's bits.
  DenseMap<Value, double> storedRatios;
  DenseMap<Value, int> starts;
  std::vector<StoredValue> storedValues;
};

} // namespace mlir::alpa

#endif // CPP_ANALYSIS_MATERIALIZATION_H
