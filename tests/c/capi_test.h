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

/** An entry of an array of whole numbers, which come in the width that their
 *  values need; ends the program for any other array. */
int64_t get_int(AlpaArrayRef array, size_t index);

/** Each prints what it finds and returns an exit status. */
int plan_text(Source source);
int plan_in_threads(Source source);
int plan_in_context(Source source);
int keep_modules(Source source);
int describe(Source source);
int print_strategies(Source source);
int solve_grids(Source source);

#endif /* TESTS_C_CAPI_TEST_H */
