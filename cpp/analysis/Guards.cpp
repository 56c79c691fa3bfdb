//===- Guards.cpp - What MLIR itself does not survive ---------------------===//

#include "cpp/analysis/Guards.h"

#include "llvm/ADT/StringExtras.h"

namespace mlir::alpa {

StringRef findHugeResultNumber(StringRef text) {
  for (size_t at = text.find('%'); at != StringRef::npos;
       at = text.find('%', at + 1)) {
    StringRef rest = text.drop_front(at + 1).drop_while(
        [](char c) { return llvm::isAlnum(c) || c == '_' || c == '$'; });
    if (!rest.consume_front("#") && !rest.consume_front(":")) {
      continue;
    }
    StringRef digits = rest.take_while(llvm::isDigit);
    uint64_t number = 0;
    if (!digits.empty() &&
        (digits.getAsInteger(10, number) || number > kMaxResults)) {
      return digits;
    }
  }
  return {};
}

StringRef findZeroWidthElements(StringRef text) {
  bool isQuoted = false;
  for (size_t at = 0; at + 3 < text.size(); ++at) {
    if (text[at] == '"' && (at == 0 || text[at - 1] != '\\')) {
      isQuoted = !isQuoted;
    }
    StringRef here = text.substr(at, 4);
    bool isElement = here.front() == 'x' || here.front() == '<';
    bool isEnd = here.back() == '>' || here.back() == ',';
    if (!isQuoted && isElement && isEnd && here.substr(1, 2) == "i0") {
      return here;
    }
  }
  return {};
}

std::string getReasonToRefuse(StringRef text) {
  if (StringRef huge = findHugeResultNumber(text); !huge.empty()) {
    return ("result number " + huge + " is above " + Twine(kMaxResults)).str();
  }
  if (!findZeroWidthElements(text).empty()) {
    return "elements of type i0 have no bits";
  }
  return "";
}

LogicalResult refuseUnknownRegions(Operation *root) {
  WalkResult walk = root->walk([](Operation *op) {
    if (op->isRegistered() || op->getNumRegions() != 1) {
      return WalkResult::advance();
    }
    op->emitError() << "'" << op->getName()
                    << "' is not known and has a region; it cannot be planned";
    return WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

} // namespace mlir::alpa
