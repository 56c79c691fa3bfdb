/*===- strategies.c - The strategy graph, a line per strategy -------------===*/

#include "capi_test.h"

#include <stdio.h>
#include <string.h>

/** The steps of a plan: kind, mask of mesh axes, bytes. */
static void print_steps(const AlpaResult *graph, size_t plan) {
  AlpaArrayRef offsets = find_array(graph, "plan_offset");
  const double *bytes = find_array(graph, "step_bytes").data;
  for (int64_t step = get_int(offsets, plan); step < get_int(offsets, plan + 1);
       ++step) {
    printf(" [%d axes %d bytes %g]",
           (int)get_int(find_array(graph, "step_kind"), (size_t)step),
           (int)get_int(find_array(graph, "step_axes"), (size_t)step),
           bytes[step]);
  }
}

/** What a node sends in one of its strategies. */
static void print_sent(const AlpaResult *graph, size_t node, size_t choice) {
  AlpaArrayRef nodes = find_array(graph, "unary_node");
  AlpaArrayRef offsets = find_array(graph, "unary_offset");
  AlpaArrayRef plans = find_array(graph, "unary_plan");
  const double *runs = find_array(graph, "unary_weight").data;
  for (size_t entry = 0; entry < nodes.rows; ++entry) {
    if ((size_t)get_int(nodes, entry) == node) {
      if (runs[entry] != 1) {
        printf(" %g times", runs[entry]);
      }
      size_t at = (size_t)get_int(offsets, entry) + choice;
      print_steps(graph, (size_t)get_int(plans, at));
    }
  }
}

/** Of a module with roles on a mesh of four devices. */
int print_strategies(Source source) {
  AlpaStringRef text = {source.data, source.length};
  AlpaStringRef axis = {"x", 1};
  int64_t size = 4;
  AlpaResult *graph =
      alpaGetStrategyGraph(text, &axis, &size, 1, (AlpaStringRef){"", 0});
  int status = alpaResultHasFailed(graph);
  if (status) {
    AlpaStringRef error = alpaResultGetError(graph);
    printf("failed: %.*s\n", (int)error.length, error.data);
  } else {
    AlpaArrayRef offsets = find_array(graph, "node_offset");
    size_t labels = 0;
    size_t names = 0;
    for (size_t list = 0; list < alpaResultGetNumStringLists(graph); ++list) {
      AlpaStringRef name = alpaResultGetStringListName(graph, list);
      if (!strncmp(name.data, "strategy_label", name.length)) {
        labels = list;
      } else if (!strncmp(name.data, "node_op", name.length)) {
        names = list;
      }
    }
    for (size_t node = 0; node + 1 < offsets.rows; ++node) {
      AlpaStringRef name = alpaResultGetString(graph, names, node);
      int64_t first = get_int(offsets, node);
      for (int64_t s = first; s < get_int(offsets, node + 1); ++s) {
        AlpaStringRef label = alpaResultGetString(graph, labels, (size_t)s);
        printf("%.*s: %.*s", (int)name.length, name.data, (int)label.length,
               label.data);
        print_sent(graph, node, (size_t)(s - first));
        printf("\n");
      }
    }
  }
  alpaResultDestroy(graph);
  return status;
}
