#!/usr/bin/env bash
# Makes the virtual environment $1 with the packages of requirements/dev.txt and lets it import the checkout.
set -euo pipefail

venv=$1
python=${PYTHON:-python3}
root=$(cd "$(dirname "$0")/.." && pwd)

if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
  echo "error: $python is $("$python" --version 2>&1), Python 3.11 or newer is needed (PYTHON=... names another)" >&2
  exit 1
fi
if [ ! -x "$venv/bin/python" ]; then
  "$python" -m venv "$venv"
fi
"$venv/bin/python" -m pip install -q --disable-pip-version-check -r "$root/requirements/dev.txt"
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
printf '%s\n%s\n' "$root" "$root/runtime" >"$site/stablehlo_alpa_checkout.pth"
# The command that an installed package has.
printf '#!%s\nfrom stablehlo_alpa.cli import main\n\nmain()\n' "$(cd "$venv/bin" && pwd)/python" >"$venv/bin/stablehlo-alpa"
chmod +x "$venv/bin/stablehlo-alpa"
