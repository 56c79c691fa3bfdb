/*===- capi_test.h - Tests of the C interfaces --------------------*- C -*-===*/

#ifndef TESTS_C_CAPI_TEST_H
#define TESTS_C_CAPI_TEST_H

#include "cpp/capi/StablehloAlpa.h"

#include <stddef.h>

/** A module's text, as it stands in a file. */
typedef struct Source {
  const char *data;
  size_t length;
} Source;

/** The array of a result; ends the program where there is none of the name. */
AlpaArrayRef find_array(const AlpaResult *result, const char *name);

/** Each prints what it finds and returns an exit status. */
int plan_text(Source source);
int plan_in_threads(Source source);
int plan_in_context(Source source);
int describe(Source source);
int solve_grids(Source source);

#endif /* TESTS_C_CAPI_TEST_H */
