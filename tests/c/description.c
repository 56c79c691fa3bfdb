/*===- description.c - What the text interface says of a module -----------===*/

#include "capi_test.h"

#include <stdio.h>

static void print_number(AlpaArrayRef array, size_t index) {
  switch (array.type) {
  case ALPA_INT8:
    printf(" %d", ((const int8_t *)array.data)[index]);
    break;
  case ALPA_INT32:
    printf(" %d", ((const int32_t *)array.data)[index]);
    break;
  case ALPA_INT64:
    printf(" %lld", (long long)((const int64_t *)array.data)[index]);
    break;
  case ALPA_FLOAT64:
    printf(" %g", ((const double *)array.data)[index]);
    break;
  }
}

/** Prints every array and list of a result, and frees it. */
static int print_result(const char *title, AlpaResult *result) {
  printf("%s:\n", title);
  int status = alpaResultHasFailed(result);
  if (status) {
    AlpaStringRef error = alpaResultGetError(result);
    printf("  failed: %.*s\n", (int)error.length, error.data);
  }
  for (size_t i = 0; i < alpaResultGetNumArrays(result); ++i) {
    AlpaArrayRef array = alpaResultGetArray(result, i);
    printf("  %.*s:", (int)array.name.length, array.name.data);
    size_t columns = array.columns ? array.columns : 1;
    for (size_t entry = 0; entry < array.rows * columns; ++entry) {
      print_number(array, entry);
    }
    printf("\n");
  }
  for (size_t list = 0; list < alpaResultGetNumStringLists(result); ++list) {
    AlpaStringRef name = alpaResultGetStringListName(result, list);
    printf("  %.*s:", (int)name.length, name.data);
    for (size_t i = 0; i < alpaResultGetStringListSize(result, list); ++i) {
      AlpaStringRef text = alpaResultGetString(result, list, i);
      printf(" '%.*s'", (int)text.length, text.data);
    }
    printf("\n");
  }
  alpaResultDestroy(result);
  return status;
}

int describe(Source source) {
  AlpaStringRef text = {source.data, source.length};
  int64_t donated[] = {0};
  AlpaStringRef cuda = {"cuda", 4}, tpu = {"tpu", 3};
  return print_result("communication", alpaGetCommunication(text)) |
         print_result("rings", alpaGetProductRings(text)) |
         print_result("memory", alpaGetMemory(text, donated, 1, cuda)) |
         print_result("memory on TPU", alpaGetMemory(text, donated, 1, tpu)) |
         print_result("work", alpaGetWork(text, cuda)) |
         print_result("signature", alpaGetSignature(text)) |
         print_result("boundary", alpaGetBoundaryRule(text)) |
         print_result("submodules", alpaGetSubmodules(text));
}
