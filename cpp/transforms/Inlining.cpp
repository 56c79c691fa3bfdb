//===- Inlining.cpp - Bodies of called functions --------------------------===//

#include "cpp/transforms/Inlining.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/SmallVector.h"

namespace mlir::alpa {

namespace {

/// What a module says about one of its functions.
struct CalledFunction {
  /// Calls in the body, those in regions included.
  SmallVector<func::CallOp> calls;
  /// Functions that the body refers to other than by calls.
  SmallVector<func::FuncOp> references;
  /// Calls of the function that are not inlined yet.
  unsigned numCalls = 0;
  /// Can be reached from a public function.
  bool isLive = false;
  /// Is public, or something other than a call refers to it.
  bool isKept = false;
  enum { Unseen, Open, Done } state = Unseen;
};

class CallInlining {
public:
  explicit CallInlining(ModuleOp module) : module(module) {}

  FailureOr<int64_t> run() {
    for (auto function : module.getOps<func::FuncOp>()) {
      byName[function.getSymNameAttr()] = function;
    }
    findLive();
    for (func::FuncOp function :
         llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (functions[function].isLive && failed(finish(function))) {
        return failure();
      }
    }
    for (auto &[name, function] : byName) {
      const CalledFunction &called = functions[function];
      if (!called.isKept && called.numCalls == 0) {
        function.erase();
      }
    }
    return numVisits;
  }

private:
  // References
  void findLive();
  void readBody(func::FuncOp function);
  void readReferences(Operation *op, SmallVectorImpl<func::FuncOp> &found);
  func::FuncOp getCallee(func::CallOp call) const {
    return byName.lookup(call.getCalleeAttr().getAttr());
  }

  // Inlining
  LogicalResult finish(func::FuncOp root);
  LogicalResult refuseCircle(ArrayRef<func::FuncOp> path,
                             func::FuncOp callee) const;
  void inlineCallsOf(func::FuncOp function);

  ModuleOp module;
  llvm::MapVector<StringAttr, func::FuncOp> byName;
  DenseMap<Operation *, CalledFunction> functions;
  /// The functions that an attribute names.
  DenseMap<Attribute, SmallVector<func::FuncOp, 1>> namedBy;
  /// How often an operator was read, moved or copied.
  int64_t numVisits = 0;
};

//===----------------------------------------------------------------------===//
// References
//===----------------------------------------------------------------------===//

/// From public functions, and from what stands beside functions, along calls
/// and other references.
void CallInlining::findLive() {
  SmallVector<func::FuncOp> work;
  auto visit = [&](func::FuncOp function, bool isKept) {
    CalledFunction &called = functions[function];
    called.isKept |= isKept;
    if (!called.isLive) {
      called.isLive = true;
      work.push_back(function);
    }
  };
  SmallVector<func::FuncOp> references;
  for (Operation &op : *module.getBody()) {
    auto function = dyn_cast<func::FuncOp>(op);
    if (!function) {
      op.walk([&](Operation *inner) { readReferences(inner, references); });
    } else if (!function.isPrivate()) {
      visit(function, /*isKept=*/true);
    }
  }
  for (func::FuncOp function : references) {
    visit(function, /*isKept=*/true);
  }
  while (!work.empty()) {
    func::FuncOp function = work.pop_back_val();
    readBody(function);
    // Copies: visiting adds to the map.
    for (func::FuncOp referred :
         SmallVector<func::FuncOp>(functions[function].references)) {
      visit(referred, /*isKept=*/true);
    }
    for (func::CallOp call :
         SmallVector<func::CallOp>(functions[function].calls)) {
      if (func::FuncOp callee = getCallee(call)) {
        visit(callee, /*isKept=*/false);
        ++functions[callee].numCalls;
      }
    }
  }
}

void CallInlining::readBody(func::FuncOp function) {
  CalledFunction &caller = functions[function];
  function.getBody().walk([&](Operation *op) {
    ++numVisits;
    if (auto call = dyn_cast<func::CallOp>(op)) {
      caller.calls.push_back(call);
    } else {
      readReferences(op, caller.references);
    }
  });
}

void CallInlining::readReferences(Operation *op,
                                  SmallVectorImpl<func::FuncOp> &found) {
  for (NamedAttribute attribute : op->getAttrs()) {
    auto [known, isNew] = namedBy.try_emplace(attribute.getValue());
    if (isNew) {
      attribute.getValue().walk([&, names = &known->second](SymbolRefAttr ref) {
        if (func::FuncOp named = byName.lookup(ref.getRootReference())) {
          names->push_back(named);
        }
      });
    }
    found.append(known->second.begin(), known->second.end());
  }
}

//===----------------------------------------------------------------------===//
// Inlining
//===----------------------------------------------------------------------===//

bool canInline(func::FuncOp callee) {
  return callee && callee.isPrivate() && callee.getBody().hasOneBlock();
}

/// Locations of a body as seen from a call: `callsite(add at f)` that is called
/// at `g` becomes `callsite(add at callsite(f at g))`.
class CalledLocations {
public:
  explicit CalledLocations(Location call) : call(call) {}

  /// Returns the number of operators, those in regions included.
  int64_t relocate(Operation *root) {
    int64_t numOps = 0;
    root->walk([&](Operation *op) {
      ++numOps;
      op->setLoc(get(op->getLoc()));
      for (Region &region : op->getRegions()) {
        for (BlockArgument argument : region.getArguments()) {
          argument.setLoc(get(argument.getLoc()));
        }
      }
    });
    return numOps;
  }

private:
  /// Neighbours often have the same location: each is made once.
  Location get(Location inner) {
    if (LocationAttr known = made.lookup(inner)) {
      return known;
    }
    auto nested = dyn_cast<CallSiteLoc>(inner);
    Location seen =
        nested ? CallSiteLoc::get(nested.getCallee(), get(nested.getCaller()))
               : CallSiteLoc::get(inner, call);
    made[inner] = seen;
    return seen;
  }

  Location call;
  DenseMap<Location, LocationAttr> made;
};

/// before: %1 = call @f(%0)           after: %1 = <body of @f, on %0>
/// Returns the number of operators that are moved.
int64_t moveBody(func::CallOp call, func::FuncOp callee) {
  Block &body = callee.getBody().front();
  CalledLocations locations(call.getLoc());
  int64_t numOps = 0;
  for (Operation &op : body.without_terminator()) {
    numOps += locations.relocate(&op);
  }
  for (auto [argument, operand] :
       llvm::zip_equal(body.getArguments(), call.getOperands())) {
    argument.replaceAllUsesWith(operand);
  }
  Operation *end = body.getTerminator();
  call->replaceAllUsesWith(end->getOperands());
  call->getBlock()->getOperations().splice(call->getIterator(),
                                           body.getOperations(), body.begin(),
                                           end->getIterator());
  call.erase();
  return numOps;
}

/// The same, with a body that stays; returns the number of operators copied.
int64_t copyBody(func::CallOp call, func::FuncOp callee) {
  Block &body = callee.getBody().front();
  CalledLocations locations(call.getLoc());
  IRMapping mapping;
  mapping.map(body.getArguments(), call.getOperands());
  OpBuilder builder(call);
  int64_t numOps = 0;
  for (Operation &op : body.without_terminator()) {
    numOps += locations.relocate(builder.clone(op, mapping));
  }
  for (auto [result, value] : llvm::zip_equal(
           call.getResults(), body.getTerminator()->getOperands())) {
    result.replaceAllUsesWith(mapping.lookupOrDefault(value));
  }
  call.erase();
  return numOps;
}

/// Callees come first, so that bodies have no calls left when they are copied.
LogicalResult CallInlining::finish(func::FuncOp root) {
  // Functions from the root on, and how many of their calls have been looked
  // at.
  SmallVector<func::FuncOp> path;
  SmallVector<size_t> numSeen;
  auto open = [&](func::FuncOp function) {
    functions[function].state = CalledFunction::Open;
    path.push_back(function);
    numSeen.push_back(0);
  };
  if (functions[root].state == CalledFunction::Unseen) {
    open(root);
  }
  while (!path.empty()) {
    func::FuncOp function = path.back();
    CalledFunction &caller = functions[function];
    if (numSeen.back() == caller.calls.size()) {
      inlineCallsOf(function);
      caller.state = CalledFunction::Done;
      path.pop_back();
      numSeen.pop_back();
      continue;
    }
    func::FuncOp callee = getCallee(caller.calls[numSeen.back()++]);
    if (!callee) {
      continue;
    }
    if (functions[callee].state == CalledFunction::Open) {
      return refuseCircle(path, callee);
    }
    if (functions[callee].state == CalledFunction::Unseen) {
      open(callee);
    }
  }
  return success();
}

LogicalResult CallInlining::refuseCircle(ArrayRef<func::FuncOp> path,
                                         func::FuncOp callee) const {
  func::FuncOp function = callee;
  InFlightDiagnostic error = function.emitError();
  error << "@" << function.getSymName() << " calls itself";
  auto start = llvm::find(path, callee);
  for (func::FuncOp between : llvm::make_range(std::next(start), path.end())) {
    error << (between == *std::next(start) ? " through @" : ", @")
          << between.getSymName();
  }
  return error << ": recursive functions cannot be planned";
}

void CallInlining::inlineCallsOf(func::FuncOp function) {
  for (func::CallOp call : functions[function].calls) {
    func::FuncOp callee = getCallee(call);
    if (!canInline(callee)) {
      continue;
    }
    CalledFunction &called = functions[callee];
    bool isLast = --called.numCalls == 0 && !called.isKept;
    numVisits += (isLast ? moveBody : copyBody)(call, callee);
  }
}

} // namespace

FailureOr<int64_t> inlineCalls(ModuleOp module) {
  return CallInlining(module).run();
}

} // namespace mlir::alpa
