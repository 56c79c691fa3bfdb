#!/usr/bin/env bash
# Writes the documentation of the passes, from TableGen, to standard output; $1 is the folder of LLVM's tools.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
bin=$1

cat <<'HEAD'
# Passes

Made from `passes/*Passes.td` by `make pass-docs`. `stablehlo-alpa-opt` and, with the plugin, stock `mlir-opt` run them by these names.

| pipeline | passes |
| --- | --- |
| `alpa-import-pipeline` | import manual computations, check regions, import constraints, import rules, inline calls, canonicalise, fold padding, batch lookups, import callbacks, import |
| `alpa-merge-pipeline` | behind it: with `pad-to` pad dimensions, with `attention-keys` outline attention, merge operators |
| `alpa-prepare-pipeline` | both |
| `alpa-cut-pipeline` | behind the import: split micro-batches, where there are several insert reshards, lower to SPMD, canonicalise, fold padding |
| `alpa-mark-pipeline` | behind that: with `pad-to` pad dimensions, with `attention-keys` outline attention, mark layers: a train step before it is cut into stages |
| `alpa-layers-pipeline` | import, cut and mark |
| `alpa-stage-pipeline` | canonicalise, merge operators: a stage |
| `alpa-plan-pipeline` | choose strategies, apply strategies, insert reshards, optimise collectives, verify the plan |
| `alpa-spmd-pipeline` | verify the plan and lower it to SPMD, verify that, for `platform=tpu` block exchanges, clean up |

HEAD
"$bin/mlir-tblgen" -gen-pass-doc -I "$root" -I "$bin/../include" "$root/passes/Passes.td" | sed 's/^### /## /; s/^#### /### /'
