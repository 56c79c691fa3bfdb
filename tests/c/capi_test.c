/*===- capi_test.c - Tests of the C interfaces ----------------------------===*\
|*                                                                            *|
|* alpa-capi-test text|threads|context|modules|describe|          *|
|*     strategies|solve FILE                                                  *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "capi_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

AlpaArrayRef find_array(const AlpaResult *result, const char *name) {
  for (size_t i = 0; i < alpaResultGetNumArrays(result); ++i) {
    AlpaArrayRef array = alpaResultGetArray(result, i);
    if (array.name.length == strlen(name) &&
        !memcmp(array.name.data, name, array.name.length)) {
      return array;
    }
  }
  fprintf(stderr, "there is no array %s\n", name);
  exit(1);
}

int64_t get_int(AlpaArrayRef array, size_t index) {
  switch (array.type) {
  case ALPA_INT8:
    return ((const int8_t *)array.data)[index];
  case ALPA_INT32:
    return ((const int32_t *)array.data)[index];
  case ALPA_INT64:
    return ((const int64_t *)array.data)[index];
  default:
    fprintf(stderr, "an array is not of whole numbers\n");
    exit(1);
  }
}

static char *read_file(const char *path, size_t *length) {
  FILE *file = fopen(path, "rb");
  if (!file) {
    return NULL;
  }
  fseek(file, 0, SEEK_END);
  *length = (size_t)ftell(file);
  rewind(file);
  char *data = malloc(*length + 1);
  if (data) {
    *length = fread(data, 1, *length, file);
    data[*length] = '\0';
  }
  fclose(file);
  return data;
}

int main(int argc, char **argv) {
  size_t length = 0;
  char *data = argc == 3 ? read_file(argv[2], &length) : NULL;
  if (!data) {
    fprintf(stderr,
            "usage: alpa-capi-test text|threads|context|modules|describe|"
            "strategies|solve FILE\n");
    return 2;
  }
  Source source = {data, length};
  int status = 2;
  if (!strcmp(argv[1], "text")) {
    status = plan_text(source);
  } else if (!strcmp(argv[1], "threads")) {
    status = plan_in_threads(source);
  } else if (!strcmp(argv[1], "context")) {
    status = plan_in_context(source);
  } else if (!strcmp(argv[1], "modules")) {
    status = keep_modules(source);
  } else if (!strcmp(argv[1], "describe")) {
    status = describe(source);
  } else if (!strcmp(argv[1], "strategies")) {
    status = print_strategies(source);
  } else if (!strcmp(argv[1], "solve")) {
    status = solve_grids(source);
  }
  free(data);
  return status;
}
