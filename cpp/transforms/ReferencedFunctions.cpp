//===- ReferencedFunctions.cpp - Functions that operators name ------------===//

#include "cpp/transforms/ReferencedFunctions.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/SymbolTable.h"

namespace mlir::alpa {

void copyReferencedFunctions(ModuleOp source, ModuleOp target) {
  SymbolTable known(source), copied(target);
  SmallVector<Operation *> work = {target};
  while (!work.empty()) {
    Operation *user = work.pop_back_val();
    std::optional<SymbolTable::UseRange> uses =
        SymbolTable::getSymbolUses(&user->getRegion(0));
    if (!uses) {
      continue;
    }
    for (const SymbolTable::SymbolUse &use : *uses) {
      StringAttr name = use.getSymbolRef().getRootReference();
      auto function = known.lookup<func::FuncOp>(name);
      if (function && !copied.lookup(name)) {
        Operation *copy = function->clone();
        SymbolTable::setSymbolVisibility(copy,
                                         SymbolTable::Visibility::Private);
        copied.insert(copy);
        work.push_back(copy);
      }
    }
  }
}

} // namespace mlir::alpa
