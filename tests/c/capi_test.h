/*===- capi_test.h - Tests of the C interfaces --------------------*- C -*-===*/

#ifndef TESTS_C_CAPI_TEST_H
#define TESTS_C_CAPI_TEST_H

#include <stddef.h>

/** A module's text, as it stands in a file. */
typedef struct Source {
  const char *data;
  size_t length;
} Source;

/** Each prints what it finds and returns an exit status. */
int plan_text(Source source);
int plan_in_threads(Source source);
int plan_in_context(Source source);
int describe(Source source);
int solve_grids(Source source);

#endif /* TESTS_C_CAPI_TEST_H */
