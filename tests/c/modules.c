/*===- modules.c - Modules that stay parsed -------------------------------===*/

#include "capi_test.h"

#include <stdio.h>
#include <string.h>

static AlpaStringRef ref(const char *text) {
  AlpaStringRef found = {text, strlen(text)};
  return found;
}

/** Prints the first string of a result, or its error, and frees it. */
static int print_first(const char *title, AlpaResult *result) {
  int status = alpaResultHasFailed(result);
  AlpaStringRef said =
      status ? alpaResultGetError(result) : alpaResultGetString(result, 0, 0);
  printf("%s:%s %.*s\n", title, status ? " failed:" : "", (int)said.length,
         said.data);
  alpaResultDestroy(result);
  return status;
}

/** A copy is changed, what it was copied from is not; the modules within are
 *  copies as well, by number. */
int keep_modules(Source source) {
  AlpaStringRef text = {source.data, source.length};
  AlpaModule *whole = NULL;
  AlpaResult *parsed = alpaModuleParse(text, &whole);
  if (!whole) {
    return print_first("parse", parsed);
  }
  alpaResultDestroy(parsed);

  AlpaResult *names = alpaModuleGetSubmodules(whole);
  size_t count = alpaResultGetStringListSize(names, 0);
  alpaResultDestroy(names);
  for (size_t i = 0; i < count; ++i) {
    AlpaModule *inner = alpaModuleCloneSubmodule(whole, i);
    print_first("inner", alpaModulePrint(inner, false, false));
    alpaModuleDestroy(inner);
  }
  printf("behind the last: %s\n",
         alpaModuleCloneSubmodule(whole, count) ? "a module" : "none");

  AlpaModule *copy = alpaModuleClone(whole);
  AlpaResult *run = alpaModuleRun(copy, ref("builtin.module(canonicalize)"));
  int status = alpaResultHasFailed(run);
  alpaResultDestroy(run);
  print_first("copy", alpaModulePrint(copy, false, false));
  print_first("no pipeline",
              alpaModuleRun(copy, ref("builtin.module(nothing)")));
  print_first("refused", alpaModuleRun(copy, ref("builtin.module("
                                                 "alpa-choose-strategies)")));
  alpaModuleDestroy(copy);
  print_first("whole", alpaModulePrint(whole, false, false));
  alpaModuleDestroy(whole);
  alpaModuleDestroy(NULL);
  return status;
}
