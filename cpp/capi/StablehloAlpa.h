/*===- StablehloAlpa.h - C interface of the compiler --------------*- C -*-===*\
|*                                                                            *|
|* Text and flat arrays in, text and flat arrays out: no MLIR object crosses. *|
|* Every call on a text makes its own context, so calls may run in parallel   *|
|* threads. A module that is worked on again and again may stay parsed.       *|
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
 *  the mesh, `platform` is as of `alpaGetMemory`. Arrays and lists are named as
 *  in stablehlo_alpa.cost. */
AlpaResult *alpaGetStrategyGraph(AlpaStringRef text,
                                 const AlpaStringRef *axisNames,
                                 const int64_t *axisSizes, size_t numAxes,
                                 AlpaStringRef platform);

/** The collectives of a planned module: arrays "kind", "axes", "bytes",
 *  "count"; list "name". */
AlpaResult *alpaGetCommunication(AlpaStringRef text);

/** All-gathers and reduce-scatters of a planned module that can be done block
 * by block beside products, in the order of alpa-choose-product-rings. Arrays
 *  "kind", "axes", "bytes", "count" and "beside" as of the collective,
 *  "added_bytes" and "added_kernels" per run for slices, sums and updates; list
 *  "name" of the first product. One entry per product and ring: arrays
 *  "product" (equal numbers are one operator), "product_ring", "shape" and
 *  "block_shape" (batch, m, n, k), "product_bytes" and "block_bytes"; list
 *  "dtype". */
AlpaResult *alpaGetProductRings(AlpaStringRef text);

/** Peak memory of a per-device module: arrays "peak_bytes", "bytes"; list
 *  "name". Arguments in `donated` are freed after their last use. `platform` is
 *  jax's name of what runs it: for "tpu" the rules of XLA for TPU decide what
 * is stored, for all others those of XLA for GPU. */
AlpaResult *alpaGetMemory(AlpaStringRef text, const int64_t *donated,
                          size_t numDonated, AlpaStringRef platform);

/** Mesh and boundary shardings of a module, empty before it is planned: array
 *  "mesh_shape", and "input_once" (1 for what a stage receives once per step);
 *  lists "mesh_axes", "inputs" and "outputs" in the paper's notation,
 * "input_kinds" and "output_kinds" of a stage ("input 3", "transfer 0", "local
 * 1"), "input_types" and "output_types" ("8x4xf32"), all global. */
AlpaResult *alpaGetSignature(AlpaStringRef text);

/** Which dimensions of the arguments and results of a module are split
 * together: arrays "input_class" and "output_class", one entry per dimension,
 * all tensors one after the other (-1: goes with no other), "input_offset" and
 *  "output_offset" where each tensor's begin, and "class_size". Array
 * "input_use" says how the first product that reads an argument uses a
 * dimension: not at all (0), as a batch (1), summed over (2), as what it brings
 * into the result (3), or data say which of its rows are read (4). */
AlpaResult *alpaGetBoundaryRule(AlpaStringRef text);

/** What the operators of a per-device module do: arrays "flops" and "bytes",
 *  list "dtype". `platform` is as of `alpaGetMemory`. */
AlpaResult *alpaGetWork(AlpaStringRef text, AlpaStringRef platform);

/** The modules nested in a module: lists "names" and "texts". */
AlpaResult *alpaGetSubmodules(AlpaStringRef text);

/** A module that stays parsed, in a context of its own. Calls on a module and
 *  on those cut from it run one after the other, whatever their threads. */
typedef struct AlpaModule AlpaModule;

/** Parses a text; `*module` is null if the call fails. */
AlpaResult *alpaModuleParse(AlpaStringRef text, AlpaModule **module);
AlpaModule *alpaModuleClone(AlpaModule *module);
void alpaModuleDestroy(AlpaModule *module);

/** Runs a textual pass pipeline. String list: "remarks". A module on which it
 *  failed is only to be destroyed. */
AlpaResult *alpaModuleRun(AlpaModule *module, AlpaStringRef pipeline);

/** String list: "text". */
AlpaResult *alpaModulePrint(AlpaModule *module, bool printGeneric,
                            bool printLocations);

/** The modules nested in a module: list "names". */
AlpaResult *alpaModuleGetSubmodules(AlpaModule *module);

/** A copy of one of them, by its place in the list; null where there is none.
 */
AlpaModule *alpaModuleCloneSubmodule(AlpaModule *module, size_t index);

/** What the calls of these names say of a text. */
AlpaResult *alpaModuleGetStrategyGraph(AlpaModule *module,
                                       const AlpaStringRef *axisNames,
                                       const int64_t *axisSizes, size_t numAxes,
                                       AlpaStringRef platform);
AlpaResult *alpaModuleGetCommunication(AlpaModule *module);
AlpaResult *alpaModuleGetProductRings(AlpaModule *module);
AlpaResult *alpaModuleGetMemory(AlpaModule *module, const int64_t *donated,
                                size_t numDonated, AlpaStringRef platform);
AlpaResult *alpaModuleGetSignature(AlpaModule *module);
AlpaResult *alpaModuleGetBoundaryRule(AlpaModule *module);
AlpaResult *alpaModuleGetWork(AlpaModule *module, AlpaStringRef platform);

/** Ways to run a run of layers as a stage: first and last layer, devices, the
 *  largest number of stages from it to the end, seconds. Sorted by descending
 *  first layer. */
typedef struct AlpaStageChoices {
  size_t numChoices;
  const int64_t *firsts;
  const int64_t *lasts;
  const int64_t *sizes;
  const int64_t *limits;
  const double *times;
} AlpaStageChoices;

/** Least sums of the times of stages, none above `bound`: array "sums",
 *  row-major [numLayers + 1][mostStages + 2][numDevices + 1]; see
 *  cpp/solver/StageSums.h. `lows` and `highs` have numLayers + 1 entries. */
AlpaResult *alpaGetStageSums(const AlpaStageChoices *choices, int64_t numLayers,
                             int64_t numDevices, int64_t mostStages,
                             double bound, const int64_t *lows,
                             const int64_t *highs);

/** The same where devices are of several parts: `parts` has the part that each
 *  choice takes its devices of, `sources` that of the stage before. Array
 *  "sums", row-major [numLayers + 1][numParts][mostStages + 2]
 *  [deviceCounts[0] + 1][deviceCounts[1] + 1]...; see
 *  cpp/solver/UnlikeStageSums.h. */
AlpaResult *alpaGetUnlikeStageSums(const AlpaStageChoices *choices,
                                   const int64_t *parts, const int64_t *sources,
                                   int64_t numLayers,
                                   const int64_t *deviceCounts, size_t numParts,
                                   int64_t mostStages);

/** Tables that several calls of alpaMinimize share. Calls with the same cache
 *  run one after the other. */
typedef struct AlpaSolverCache AlpaSolverCache;
AlpaSolverCache *alpaSolverCacheCreate(void);
void alpaSolverCacheDestroy(AlpaSolverCache *cache);

/** Costs of nodes and of pairs of nodes; +inf forbids a choice. */
typedef struct AlpaCosts {
  size_t numNodes;
  /** Choices of each node, > 0. */
  const int64_t *sizes;
  /** The nodes' costs one after the other. */
  const double *nodeCosts;
  size_t numNodeCosts;
  size_t numEdges;
  /** Two different nodes u, v per edge. */
  const int64_t *edgeNodes;
  /** Row-major [choices of u][choices of v], one edge after the other. */
  const double *edgeCosts;
  size_t numEdgeCosts;
} AlpaCosts;

typedef struct AlpaMinimizeOptions {
  /** Entries of the largest table, and of all tables together, above which
   *  elimination is not begun. */
  int64_t maxTable;
  int64_t maxWork;
  /** The same, above which strategies are dropped by a lower bound first. */
  int64_t smallTable;
  int64_t smallWork;
  /** Entries of tables that are looked at before it is given up. What is found
   *  depends on it alone, unless the clock ends it. */
  int64_t maxEffort;
  /** Seconds after which it is given up whatever is left: a last resort. */
  double timeLimitSeconds;
  /** Problems with a choice fixed that are looked at where elimination is not
   *  begun. */
  int64_t maxBranches;
  /** Passes over the nodes by which the lower bound is raised at most. */
  int64_t maxSweeps;
} AlpaMinimizeOptions;

AlpaMinimizeOptions alpaMinimizeOptionsDefault(void);

/** Chooses per node so that the sum of costs is least. Arrays: "status" (0
 *  optimal, 1 given up, 2 infeasible), "choice", "kept" (one per node cost: an
 *  optimum is among the kept choices), "bound" (no plan costs less), and the
 *  counts "num_nodes", "num_choices", "num_sweeps", "largest", "work",
 *  "width", "num_steps", "num_computed", "effort" (entries looked at) and
 *  "is_late" (the clock has ended it). `cache` may be null. */
AlpaResult *alpaMinimize(const AlpaCosts *costs,
                         const AlpaMinimizeOptions *options,
                         AlpaSolverCache *cache);

/** Drops the choices that no plan of at most `cutoff` uses, by a lower bound
 *  that `numSweeps` passes over the nodes raise. All costs must be finite.
 *  Arrays: "kept", "bound". */
AlpaResult *alpaDropChoices(const AlpaCosts *costs, double cutoff,
                            int64_t numSweeps);

#ifdef __cplusplus
}
#endif

#endif /* CPP_CAPI_STABLEHLOALPA_H */
