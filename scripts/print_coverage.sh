#!/usr/bin/env bash
# Prints the line coverage of each folder of C++, from the profiles below the build folder $1.
set -euo pipefail

build=$1
llvm-profdata merge -sparse "$build"/profiles/*.profraw -o "$build/coverage.profdata"
for folder in dialects cpp passes; do
  llvm-cov export "$build/bin/stablehlo-alpa-opt" -object "$build/bin/alpa-capi-test" \
    -instr-profile "$build/coverage.profdata" -summary-only "$PWD/$folder" |
    python3 -c '
import json, sys
lines = json.load(sys.stdin)["data"][0]["totals"]["lines"]
print(f"{sys.argv[1]:10} {lines[\"covered\"]:6} of {lines[\"count\"]:6} lines  {lines[\"percent\"]:5.1f} %")
' "$folder"
done
