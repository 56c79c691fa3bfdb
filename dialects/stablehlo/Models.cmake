# What the planner is told of StableHLO, be it the bundled one or the parent's.
add_subdirectory(DataFlow)
add_subdirectory(ShardingRules)
