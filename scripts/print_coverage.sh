#!/usr/bin/env bash
# Prints the line coverage of each folder of C++, from the profiles below the build folder $1.
set -euo pipefail

build=$1
llvm-profdata merge -sparse "$build"/profiles/*.profraw -o "$build/coverage.profdata"
for folder in dialects cpp passes; do
  llvm-cov report "$build/bin/stablehlo-alpa-opt" -object "$build/bin/alpa-capi-test" \
    -instr-profile "$build/coverage.profdata" "$PWD/$folder" |
    awk -v folder="$folder" '$1 == "TOTAL" { printf "%-10s %6d lines, %s covered\n", folder, $8, $10 }'
done
