#!/usr/bin/env bash
# Prints the line coverage of each folder of C++, from the profiles below the build folder $1; fails where it is less
# than LEAST percent.
set -euo pipefail

LEAST=90
build=$1
status=0
llvm-profdata merge -sparse "$build"/profiles/*.profraw -o "$build/coverage.profdata"
for folder in dialects cpp passes; do
  llvm-cov report "$build/bin/stablehlo-alpa-opt" -object "$build/bin/alpa-capi-test" \
    -instr-profile "$build/coverage.profdata" "$PWD/$folder" |
    awk -v folder="$folder" -v least="$LEAST" '$1 == "TOTAL" {
      printf "%-10s %6d lines, %s covered\n", folder, $8, $10
      if ($10 + 0 < least) { print "error: must be at least " least "%"; exit 1 }
    }' || status=1
done
exit $status
