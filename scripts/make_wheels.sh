#!/usr/bin/env bash
# Wheels of the planner, one for each Python of PYTHONS, and of the runtime, into the folder $2; the core is that of the
# build folder $1, compiled before. Pythons that are not here are said so.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
build=$(cd "$1" && pwd)
mkdir -p "$2"
dist=$(cd "$2" && pwd)
work=$build/wheels
rm -rf "$work/core" "$work/raw"
rm -f "$dist"/stablehlo_alpa-*.whl "$dist"/alpa_runtime-*.whl

cmake --install "$build" --component development --prefix "$work/core" >/dev/null

made=0
for python in ${PYTHONS:-python3.11 python3.12 python3.13}; do
  if ! version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null); then
    echo "$python is not here: no wheel for it (PYTHONS=... names others)"
    continue
  fi
  tools=$work/tools-$version
  [ -x "$tools/bin/python" ] || "$python" -m venv "$tools"
  "$tools/bin/python" -m pip install -q --disable-pip-version-check -r "$root/requirements/wheel.txt"
  export PATH="$tools/bin:$PATH"
  "$tools/bin/python" -m pip wheel "$root" -q --disable-pip-version-check --no-deps --no-build-isolation -w "$work/raw" \
    -C cmake.source-dir=python -C build-dir="$work/extension-$version" \
    -C cmake.define.StablehloAlpa_DIR="$work/core/lib/cmake/StablehloAlpa"
  "$tools/bin/auditwheel" repair -w "$dist" "$work"/raw/stablehlo_alpa-*-cp"${version/./}"-*.whl >/dev/null
  [ $made -eq 1 ] || "$tools/bin/python" -m pip wheel "$root/runtime" -q --disable-pip-version-check --no-deps \
    --no-build-isolation -w "$dist"
  made=1
done
if [ $made -eq 0 ]; then
  echo "error: none of the Pythons is here" >&2
  exit 1
fi
ls -sh "$dist"/*.whl
