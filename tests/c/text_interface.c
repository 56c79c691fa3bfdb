/*===- text_interface.c - Planning through StablehloAlpa.h ----------------===*/

#include "capi_test.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static AlpaStringRef ref(const char *text) {
  AlpaStringRef found = {text, strlen(text)};
  return found;
}

static int fails(const AlpaResult *result, FILE *out) {
  if (alpaResultHasFailed(result)) {
    AlpaStringRef error = alpaResultGetError(result);
    fprintf(out, "failed: %.*s\n", (int)error.length, error.data);
    return 1;
  }
  return 0;
}

/** The first string of the first list: a pipeline's module. */
static AlpaStringRef get_text(const AlpaResult *result) {
  return alpaResultGetString(result, 0, 0);
}

/** Runs a pipeline on a result's module and frees the result. */
static AlpaResult *then(AlpaResult *before, const char *pipeline) {
  AlpaResult *after =
      alpaRunPipeline(get_text(before), ref(pipeline), false, false);
  alpaResultDestroy(before);
  return after;
}

/** The strategies that do and move least: a FLOP for a byte. */
static AlpaResult *solve(const AlpaResult *graph) {
  AlpaArrayRef offsets = find_array(graph, "node_offset");
  AlpaArrayRef flops = find_array(graph, "strategy_flops");
  AlpaArrayRef plans = find_array(graph, "plan_offset");
  AlpaArrayRef steps = find_array(graph, "step_bytes");
  AlpaArrayRef sources = find_array(graph, "edge_src");
  AlpaArrayRef targets = find_array(graph, "edge_dst");
  AlpaArrayRef edge_plans = find_array(graph, "edge_plan");
  const double *bytes = steps.data;
  size_t num_nodes = offsets.rows - 1, num_edges = sources.rows;

  int64_t *sizes = malloc(num_nodes * sizeof *sizes);
  for (size_t node = 0; node < num_nodes; ++node) {
    sizes[node] = get_int(offsets, node + 1) - get_int(offsets, node);
  }
  int64_t *ends = malloc((2 * num_edges + 1) * sizeof *ends);
  for (size_t edge = 0; edge < num_edges; ++edge) {
    ends[2 * edge] = get_int(sources, edge);
    ends[2 * edge + 1] = get_int(targets, edge);
  }
  double *costs = calloc(edge_plans.rows + 1, sizeof *costs);
  for (size_t entry = 0; entry < edge_plans.rows; ++entry) {
    size_t plan = (size_t)get_int(edge_plans, entry);
    int64_t end = get_int(plans, plan + 1);
    for (int64_t step = get_int(plans, plan); step < end; ++step) {
      costs[entry] += bytes[step];
    }
  }
  AlpaCosts all = {num_nodes, sizes, flops.data, flops.rows,
                   num_edges, ends,  costs,      edge_plans.rows};
  AlpaMinimizeOptions options = alpaMinimizeOptionsDefault();
  AlpaResult *found = alpaMinimize(&all, &options, NULL);
  free(sizes);
  free(ends);
  free(costs);
  return found;
}

static int plan(Source source, FILE *out) {
  AlpaStringRef text = {source.data, source.length};
  AlpaResult *merged = alpaRunPipeline(
      text, ref("builtin.module(alpa-prepare-pipeline)"), false, false);
  if (fails(merged, out)) {
    alpaResultDestroy(merged);
    return 1;
  }
  AlpaStringRef names[] = {ref("x"), ref("y")};
  int64_t sizes[] = {2, 4};
  AlpaResult *graph = alpaGetStrategyGraph(get_text(merged), names, sizes, 2,
                                           (AlpaStringRef){"", 0});
  if (fails(graph, out)) {
    alpaResultDestroy(graph);
    alpaResultDestroy(merged);
    return 1;
  }
  fprintf(out, "nodes: %zu\n", find_array(graph, "node_offset").rows - 1);
  AlpaResult *solution = solve(graph);
  if (fails(solution, out)) {
    alpaResultDestroy(solution);
    alpaResultDestroy(graph);
    alpaResultDestroy(merged);
    return 1;
  }
  AlpaArrayRef choice = find_array(solution, "choice");
  char pipeline[4096];
  int end =
      snprintf(pipeline, sizeof pipeline,
               "builtin.module(alpa-plan-pipeline{mesh=x:2,y:4 solution=");
  for (size_t node = 0; node < choice.rows; ++node) {
    end += snprintf(pipeline + end, sizeof pipeline - (size_t)end, "%s%d",
                    node ? "," : "", (int)get_int(choice, node));
  }
  snprintf(pipeline + end, sizeof pipeline - (size_t)end, "})");
  AlpaResult *local =
      then(then(merged, pipeline), "builtin.module(alpa-spmd-pipeline)");
  int status = fails(local, out);
  if (!status) {
    AlpaStringRef found = get_text(local);
    fprintf(out, "%.*s\n", (int)found.length, found.data);
  }
  alpaResultDestroy(solution);
  alpaResultDestroy(graph);
  alpaResultDestroy(local);
  return status;
}

int plan_text(Source source) { return plan(source, stdout); }

/** A thread's source, and what it has printed. */
typedef struct Work {
  Source source;
  char *printed;
  size_t length;
  int status;
} Work;

static void *work(void *argument) {
  Work *own = argument;
  for (int round = 0; round < 5; ++round) {
    free(own->printed);
    FILE *out = open_memstream(&own->printed, &own->length);
    own->status |= plan(own->source, out);
    fclose(out);
  }
  return NULL;
}

int plan_in_threads(Source source) {
  enum { NUM_THREADS = 8 };
  pthread_t threads[NUM_THREADS];
  Work own[NUM_THREADS];
  int status = 0;
  for (int i = 0; i < NUM_THREADS; ++i) {
    Work fresh = {source, NULL, 0, 0};
    own[i] = fresh;
    pthread_create(&threads[i], NULL, work, &own[i]);
  }
  for (int i = 0; i < NUM_THREADS; ++i) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < NUM_THREADS; ++i) {
    status |= own[i].status || strcmp(own[0].printed, own[i].printed);
  }
  printf(status ? "threads disagree\n" : "all threads agree\n");
  for (int i = 0; i < NUM_THREADS; ++i) {
    free(own[i].printed);
  }
  return status;
}
