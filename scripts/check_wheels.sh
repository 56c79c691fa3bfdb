#!/usr/bin/env bash
# Installs the wheels of the folder $2, each into a virtual environment of its own that has nothing else, and runs them
# there; $1 is the build folder. The Pythons are those of PYTHONS for which there are wheels.
set -euo pipefail

root=$(cd "$(dirname "$0")/.." && pwd)
work=$(cd "$1" && pwd)/wheels/check
dist=$(cd "$2" && pwd)
largest=$((10 * 1000 * 1000))
devices=(PJRT_NPROC=32 XLA_FLAGS=--xla_force_host_platform_device_count=8 JAX_PLATFORMS=cpu)

# bare VENV COMMAND...: with nothing of this environment but where programs lie.
bare() {
  local venv=$1
  shift
  (cd "$work" && env -i HOME="$work" PATH="$venv/bin:/usr/bin:/bin" "${devices[@]}" "$@")
}

install() {
  "$1/bin/python" -m pip install -q --disable-pip-version-check -c "$root/requirements/pins.txt" "${@:2}"
}

rm -rf "$work"
mkdir -p "$work"
checked=0
for python in ${PYTHONS:-python3.11 python3.12 python3.13}; do
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) || continue
  planner=$(ls "$dist"/stablehlo_alpa-*-cp"${version/./}"-*manylinux*.whl)
  runtime=$(ls "$dist"/alpa_runtime-*-py3-none-any.whl)
  for wheel in "$planner" "$runtime"; do
    if [ "$(stat -c %s "$wheel")" -gt $largest ]; then
      echo "error: $wheel has $(stat -c %s "$wheel") bytes, more than $largest" >&2
      exit 1
    fi
  done
  folder=$work/$version
  mkdir "$folder"
  "$python" -m venv "$folder/planner"
  "$python" -m venv "$folder/runtime"
  install "$folder/planner" "$runtime" "$planner"
  install "$folder/runtime" "$runtime"
  bare "$folder/planner" python "$root/tests/wheels/planner.py" "$folder"
  bare "$folder/planner" stablehlo-alpa --version
  bare "$folder/runtime" python "$root/tests/wheels/runtime.py" "$folder"
  echo "Python $version: $(basename "$planner"), $(($(stat -c %s "$planner") / 1000)) kB, and $(basename "$runtime") run"
  checked=1
done
if [ $checked -eq 0 ]; then
  echo "error: there is no wheel for a Python that is here" >&2
  exit 1
fi
