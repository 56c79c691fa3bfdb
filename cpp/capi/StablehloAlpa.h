/*===- StablehloAlpa.h - C interface of the compiler --------------*- C -*-===*\
|*                                                                            *|
|* Text and flat arrays in, text and flat arrays out: no MLIR object crosses. *|
|* Every call makes its own context, so calls may run in parallel threads.    *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#ifndef CPP_CAPI_STABLEHLOALPA_H
#define CPP_CAPI_STABLEHLOALPA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A borrowed string; not terminated. */
typedef struct AlpaStringRef {
  const char *data;
  size_t length;
} AlpaStringRef;

/** What a call produced: named arrays, named lists of strings, diagnostics. */
typedef struct AlpaResult AlpaResult;

/** Frees a result and all that was borrowed from it. */
void alpaResultDestroy(AlpaResult *result);

/** True if the call failed; alpaResultGetError then says why. */
bool alpaResultHasFailed(const AlpaResult *result);
AlpaStringRef alpaResultGetError(const AlpaResult *result);

typedef enum AlpaArrayType {
  ALPA_INT8 = 0,
  ALPA_INT32 = 1,
  ALPA_INT64 = 2,
  ALPA_FLOAT64 = 3
} AlpaArrayType;

/** A borrowed array of `rows` x `columns` (columns 0: one dimension). */
typedef struct AlpaArrayRef {
  AlpaStringRef name;
  AlpaArrayType type;
  const void *data;
  size_t rows;
  size_t columns;
} AlpaArrayRef;

size_t alpaResultGetNumArrays(const AlpaResult *result);
AlpaArrayRef alpaResultGetArray(const AlpaResult *result, size_t index);

size_t alpaResultGetNumStringLists(const AlpaResult *result);
AlpaStringRef alpaResultGetStringListName(const AlpaResult *result,
                                          size_t list);
size_t alpaResultGetStringListSize(const AlpaResult *result, size_t list);
AlpaStringRef alpaResultGetString(const AlpaResult *result, size_t list,
                                  size_t index);

/** Runs a textual pass pipeline on a module. String lists: "text" (the printed
 *  module), "remarks" (remarks and warnings). */
AlpaResult *alpaRunPipeline(AlpaStringRef text, AlpaStringRef pipeline,
                            bool printGeneric, bool printLocations);

/** The strategy graph of a module with roles. `axisNames` and `axisSizes` give
 *  the mesh. Arrays and lists are named as in stablehlo_alpa.cost. */
AlpaResult *alpaGetStrategyGraph(AlpaStringRef text,
                                 const AlpaStringRef *axisNames,
                                 const int64_t *axisSizes, size_t numAxes);

/** The collectives of a planned module: arrays "kind", "axes", "bytes",
 *  "count"; list "name". */
AlpaResult *alpaGetCommunication(AlpaStringRef text);

/** Peak memory of a per-device module: arrays "peak_bytes", "bytes"; list
 *  "name". Arguments in `donated` are freed after their last use. */
AlpaResult *alpaGetMemory(AlpaStringRef text, const int64_t *donated,
                          size_t numDonated);

/** Mesh and boundary shardings of a planned module: array "mesh_shape"; lists
 *  "mesh_axes", "inputs" and "outputs" in the paper's notation. */
AlpaResult *alpaGetSignature(AlpaStringRef text);

#ifdef __cplusplus
}
#endif

#endif /* CPP_CAPI_STABLEHLOALPA_H */
