"""What everything that is kept was made by."""

from __future__ import annotations

import hashlib
import importlib.metadata
import importlib.util
import sys
from pathlib import Path

# Packages whose results go into what is kept.
_PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "cvxpy", "highspy", "flax", "optax")
_OWN = ("stablehlo_alpa", "alpa_runtime")
_IGNORED = (".pyc", ".pyi")


def own_version() -> str:
    """A digest of this package, its compiler, and the packages that both compute with.

    Sources and the compiled extension are read, not asked for a number: a checkout that was
    changed, or built anew, is another version. They are read once, when this module is imported:
    what a process has imported stays what it is, whatever is installed in its place while it runs.
    """
    return _IMPORTED


def _read_version() -> str:
    found = hashlib.sha256(sys.version.encode())
    for name in _PACKAGES:
        found.update(f"{name} {_version_of(name)}\n".encode())
    files = {name: path for package in _OWN for name, path in _files(package).items()}
    # A checkout may have it elsewhere.
    core = importlib.util.find_spec("stablehlo_alpa._core")
    if core is not None and core.origin and Path(core.origin) not in files.values():
        files["_core"] = Path(core.origin)
    for name, path in sorted(files.items()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        found.update(f"{name} {content}\n".encode())
    return found.hexdigest()


def _version_of(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return "none"


def _files(package: str) -> dict[str, Path]:
    """Sources, data and extensions of a package, by their places in it."""
    spec = importlib.util.find_spec(package)
    folders = [] if spec is None else list(spec.submodule_search_locations or ())
    return {
        f"{package}/{path.relative_to(folder).as_posix()}": path
        for folder in folders
        for path in Path(folder).rglob("*")
        if path.is_file() and path.suffix not in _IGNORED
    }


# Read here and not when it is first asked for: an upgrade in between would be taken for what runs,
# and results of the old version would be kept as those of the new one. It takes a tenth of a
# second, beside seconds for what is imported with it.
_IMPORTED = _read_version()
