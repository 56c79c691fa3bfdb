//===- Result.cpp - What a call of the C interface produced ---------------===//

#include "cpp/capi/Result.h"

static AlpaStringRef toRef(const std::string &text) {
  return {text.data(), text.size()};
}

void alpaResultDestroy(AlpaResult *result) { delete result; }
bool alpaResultHasFailed(const AlpaResult *result) { return result->failed; }
AlpaStringRef alpaResultGetError(const AlpaResult *result) {
  return toRef(result->error);
}
size_t alpaResultGetNumArrays(const AlpaResult *result) {
  return result->arrays.size();
}
AlpaArrayRef alpaResultGetArray(const AlpaResult *result, size_t index) {
  const AlpaResult::Array &array = result->arrays[index];
  return {toRef(array.name), array.type, array.data.data(), array.rows,
          array.columns};
}
size_t alpaResultGetNumStringLists(const AlpaResult *result) {
  return result->lists.size();
}
AlpaStringRef alpaResultGetStringListName(const AlpaResult *result,
                                          size_t list) {
  return toRef(result->lists[list].name);
}
size_t alpaResultGetStringListSize(const AlpaResult *result, size_t list) {
  return result->lists[list].strings.size();
}
AlpaStringRef alpaResultGetString(const AlpaResult *result, size_t list,
                                  size_t index) {
  return toRef(result->lists[list].strings[index]);
}
