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
  for (size_t at = 0; at < text.size(); ++at) {
    if (text[at] == '"' && (at == 0 || text[at - 1] != '\\')) {
      isQuoted = !isQuoted;
    }
    if (isQuoted || (text[at] != 'x' && text[at] != '<')) {
      continue;
    }
    // i0, ui0 or si0, with any number of zeros.
    StringRef type = text.drop_front(at + 1).ltrim(' ');
    StringRef rest =
        type.drop_while([](char c) { return c == 'u' || c == 's'; });
    if (type.size() - rest.size() > 1 || !rest.consume_front("i0")) {
      continue;
    }
    rest = rest.ltrim('0');
    if (rest.empty() || !llvm::isAlnum(rest.front())) {
      return type.take_front(type.size() - rest.size());
    }
  }
  return {};
}

std::string getReasonToRefuse(StringRef text) {
  if (StringRef huge = findHugeResultNumber(text); !huge.empty()) {
    return ("result number " + huge + " is above " + Twine(kMaxResults)).str();
  }
  if (StringRef type = findZeroWidthElements(text); !type.empty()) {
    return ("elements of type " + type + " have no bits").str();
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
