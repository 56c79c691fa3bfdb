#!/usr/bin/env bash
# Installs the Debian packages named in the file $1, if any is missing; through sudo when not root.
# Where MLIR_DIR names an MLIR CMake folder, the machine is taken to be prepared and nothing is installed.
set -euo pipefail

packages_file=$1

if [ -n "${MLIR_DIR:-}" ]; then
  if [ ! -e "$MLIR_DIR/MLIRConfig.cmake" ]; then
    echo "error: MLIR_DIR is '$MLIR_DIR', which has no MLIRConfig.cmake" >&2
    exit 1
  fi
  echo "using MLIR from $MLIR_DIR; no system package is installed"
  exit 0
fi

if ! command -v apt-get >/dev/null; then
  cat >&2 <<'WORD'
error: this machine has no apt-get, so LLVM and MLIR 22 cannot be installed for you
hint: install clang 22, lld 22, LLVM and MLIR 22.1 (development files), CMake 3.25 or newer and Ninja, then say
      where MLIR is:  make test MLIR_DIR=/path/to/lib/cmake/mlir
      MLIR must have been built by clang; the build refuses other compilers and says why
WORD
  exit 1
fi

missing=()
while read -r package; do
  if [ "$(dpkg-query -W -f '${db:Status-Abbrev}' "$package" 2>/dev/null)" != "ii " ]; then
    missing+=("$package")
  fi
done < <(grep -v -e '^#' -e '^$' "$packages_file")

if [ ${#missing[@]} -eq 0 ]; then
  exit 0
fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "error: these Debian packages are missing, and there is neither root nor sudo: ${missing[*]}" >&2
    exit 1
  fi
  as_root=(sudo)
fi
echo "installing Debian packages: ${missing[*]}"
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
