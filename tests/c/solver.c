/*===- solver.c - The exact solver through StablehloAlpa.h ----------------===*\
|*                                                                            *|
|* A grid of nodes with random costs: elimination, the bound, branching, and  *|
|* the tables that calls share agree with one another.                        *|
|*                                                                            *|
\*===----------------------------------------------------------------------===*/

#include "capi_test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { ROWS = 5, COLUMNS = 6, CHOICES = 4, NODES = ROWS * COLUMNS };
enum { EDGES = ROWS * (COLUMNS - 1) + COLUMNS * (ROWS - 1) };

typedef struct Grid {
  int64_t sizes[NODES];
  double node_costs[NODES * CHOICES];
  int64_t ends[2 * EDGES];
  double edge_costs[EDGES * CHOICES * CHOICES];
} Grid;

/** The same numbers everywhere: a linear congruential generator. */
static double next_number(uint32_t *state) {
  *state = *state * 1664525u + 1013904223u;
  return (double)(*state >> 8) / (1 << 24);
}

static AlpaCosts fill(Grid *grid, uint32_t seed) {
  size_t edge = 0;
  for (size_t node = 0; node < NODES; ++node) {
    grid->sizes[node] = CHOICES;
    if (node % COLUMNS + 1 < COLUMNS) {
      grid->ends[2 * edge] = (int64_t)node;
      grid->ends[2 * edge++ + 1] = (int64_t)node + 1;
    }
    if (node + COLUMNS < NODES) {
      grid->ends[2 * edge] = (int64_t)node;
      grid->ends[2 * edge++ + 1] = (int64_t)node + COLUMNS;
    }
  }
  for (size_t i = 0; i < NODES * CHOICES; ++i) {
    grid->node_costs[i] = next_number(&seed);
  }
  for (size_t i = 0; i < EDGES * CHOICES * CHOICES; ++i) {
    grid->edge_costs[i] = next_number(&seed);
  }
  AlpaCosts costs = {
      NODES, grid->sizes, grid->node_costs, NODES * CHOICES,
      EDGES, grid->ends,  grid->edge_costs, EDGES * CHOICES * CHOICES};
  return costs;
}

static const void *data_of(const AlpaResult *result, const char *name) {
  return find_array(result, name).data;
}

static double cost_of(const Grid *grid, const int32_t *choice) {
  double cost = 0;
  for (size_t node = 0; node < NODES; ++node) {
    cost += grid->node_costs[node * CHOICES + (size_t)choice[node]];
  }
  for (size_t edge = 0; edge < EDGES; ++edge) {
    const int64_t *ends = grid->ends + 2 * edge;
    size_t row = (size_t)choice[ends[0]], column = (size_t)choice[ends[1]];
    cost += grid->edge_costs[(edge * CHOICES + row) * CHOICES + column];
  }
  return cost;
}

/** The least cost; exits where the bound does not prove it. */
static double least(const Grid *grid, const AlpaCosts *costs,
                    const AlpaMinimizeOptions *options,
                    AlpaSolverCache *cache) {
  AlpaResult *result = alpaMinimize(costs, options, cache);
  double cost = cost_of(grid, data_of(result, "choice"));
  double bound = *(const double *)data_of(result, "bound");
  alpaResultDestroy(result);
  if (fabs(cost - bound) > 1e-9) {
    printf("cost %.12g, bound %.12g\n", cost, bound);
    exit(1);
  }
  return cost;
}

/** Whether a search that ends early says what is true: a plan that costs no
 *  less than the least one, and a bound that is no higher. */
static int is_honest(const Grid *grid, const AlpaCosts *costs,
                     const AlpaMinimizeOptions *options, double least_cost) {
  AlpaResult *result = alpaMinimize(costs, options, NULL);
  double cost = cost_of(grid, data_of(result, "choice"));
  double bound = *(const double *)data_of(result, "bound");
  alpaResultDestroy(result);
  return bound <= least_cost + 1e-9 && cost >= least_cost - 1e-9;
}

static int print_error(const char *title, AlpaResult *result) {
  AlpaStringRef error = alpaResultGetError(result);
  int has_failed = alpaResultHasFailed(result);
  printf("%s: %.*s\n", title, (int)error.length, error.data);
  alpaResultDestroy(result);
  return !has_failed;
}

/** Two layers on two devices: both on both, or a stage for each. */
static int print_stage_sums(double time_of_both) {
  int64_t firsts[] = {1, 0, 0}, lasts[] = {1, 0, 1}, sizes[] = {1, 1, 2};
  int64_t limits[] = {9, 9, 9}, lows[] = {0, 0, 0}, highs[] = {3, 3, 3};
  double times[] = {1.0, 2.0, time_of_both};
  AlpaStageChoices choices = {3, firsts, lasts, sizes, limits, times};
  AlpaResult *result = alpaGetStageSums(&choices, 2, 2, -1, 10.0, lows, highs);
  if (alpaResultHasFailed(result)) {
    return print_error("stages", result);
  }
  // [layer][any number of stages][devices]
  printf("stages take %g s\n", ((const double *)data_of(result, "sums"))[2]);
  alpaResultDestroy(result);
  choices.firsts = lasts;
  return print_error("order",
                     alpaGetStageSums(&choices, 2, 2, -1, 10.0, lows, highs));
}

/** The same layers, each on the one device of a part. */
static int print_unlike_stage_sums(void) {
  int64_t firsts[] = {1, 1, 0}, lasts[] = {1, 1, 0}, sizes[] = {1, 1, 1};
  int64_t limits[] = {9, 9, 9}, parts[] = {1, 1, 0}, sources[] = {0, 1, 0};
  int64_t devices[] = {1, 1};
  double times[] = {1.0, 0.25, 2.0};
  AlpaStageChoices choices = {3, firsts, lasts, sizes, limits, times};
  AlpaResult *result =
      alpaGetUnlikeStageSums(&choices, parts, sources, 2, devices, 2, -1);
  if (alpaResultHasFailed(result)) {
    return print_error("parts", result);
  }
  // [layer][part before][any number of stages][devices][devices]
  printf("on parts they take %g s\n",
         ((const double *)data_of(result, "sums"))[3]);
  alpaResultDestroy(result);
  parts[2] = 2;
  return print_error("part", alpaGetUnlikeStageSums(&choices, parts, sources, 2,
                                                    devices, 2, -1));
}

int solve_grids(Source source) {
  (void)source;
  Grid grid;
  AlpaMinimizeOptions options = alpaMinimizeOptionsDefault(), small = options;
  // Nothing is small enough: strategies are dropped by the bound first.
  small.smallTable = small.smallWork = 1;
  // Tables of two nodes at most: the others have to be fixed.
  AlpaMinimizeOptions narrow = small;
  narrow.maxTable = CHOICES * CHOICES;
  narrow.maxBranches = 100000;
  AlpaMinimizeOptions few = narrow;
  few.maxBranches = 2;
  AlpaSolverCache *cache = alpaSolverCacheCreate();
  for (uint32_t seed = 0; seed < 20; ++seed) {
    AlpaCosts costs = fill(&grid, seed);
    double cost = least(&grid, &costs, &options, NULL);
    if (fabs(cost - least(&grid, &costs, &small, NULL)) > 1e-9 ||
        fabs(cost - least(&grid, &costs, &narrow, NULL)) > 1e-9 ||
        fabs(cost - least(&grid, &costs, &options, cache)) > 1e-9 ||
        fabs(cost - least(&grid, &costs, &options, cache)) > 1e-9) {
      printf("ways to solve grid %u disagree\n", seed);
      return 1;
    }
    if (!is_honest(&grid, &costs, &few, cost)) {
      printf("what is said of grid %u after two branches is not true\n", seed);
      return 1;
    }
    AlpaResult *kept = alpaDropChoices(&costs, cost + 1e-9, 200);
    if (*(const double *)data_of(kept, "bound") > cost + 1e-9) {
      printf("the bound of grid %u is no bound\n", seed);
      return 1;
    }
    alpaResultDestroy(kept);
  }
  alpaSolverCacheDestroy(cache);
  printf("20 grids of %d nodes are solved exactly\n", NODES);

  AlpaCosts costs = fill(&grid, 1);
  grid.ends[1] = grid.ends[0];
  int status = print_error("loop", alpaMinimize(&costs, &options, NULL));
  costs = fill(&grid, 1);
  grid.node_costs[3] = NAN;
  status |= print_error("nan", alpaMinimize(&costs, &options, NULL));
  costs = fill(&grid, 1);
  costs.numNodeCosts -= 1;
  status |= print_error("short", alpaMinimize(&costs, &options, NULL));
  return status | print_stage_sums(2.5) | print_stage_sums(3.5) |
         print_unlike_stage_sums();
}
