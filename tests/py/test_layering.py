"""Who may import or include whom; see the table of layers in the design."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

TOP_LEVEL = [
    "stablehlo_alpa",
    "dialects",
    "passes",
    "cpp",
    "python",
    "runtime",
    "tests/lit",
    "tests/py",
    "CMakeLists.txt",
    "pyproject.toml",
]

# Folder -> includes (by prefix) that its C++ files must not have.
FORBIDDEN_INCLUDES = {
    "dialects": ("passes/", "cpp/", "python/"),
    "dialects/alpa": ("dialects/stablehlo/",),
    "cpp/analysis": ("passes/", "python/", "cpp/transforms/", "mlir/Pass/Pass.h"),
    "cpp/transforms": ("passes/", "python/", "cpp/solver/", "mlir/Pass/Pass.h"),
    "cpp/solver": ("passes/", "python/", "dialects/", "cpp/analysis/", "cpp/capi/", "mlir/"),
    "passes": ("cpp/capi/", "cpp/tools/", "cpp/plugin/", "python/"),
}


def python_imports(path: Path) -> set[str]:
    """Modules that a file imports when it runs; those for type checking only are left out."""
    found: set[str] = set()

    def visit(node: ast.AST) -> None:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            return
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path} uses a relative import"
            found.add(node.module or "")
        for child in ast.iter_child_nodes(node):
            visit(child)

    visit(ast.parse(path.read_text()))
    return found


def subpackage(module: str) -> str:
    parts = module.split(".")
    return ".".join(parts[:2])


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_top_level_is_as_designed(name):
    assert (ROOT / name).exists()


def test_runtime_needs_jax_and_numpy_only():
    allowed = {"alpa_runtime", "jax", "numpy"}
    import sys

    package = ROOT / "runtime" / "alpa_runtime"
    for path in package.rglob("*.py"):
        roots = {name.split(".")[0] for name in python_imports(path)}
        # Ray only where it is asked for.
        more = {"ray"} if path.is_relative_to(package / "ray") else set()
        assert roots - allowed - more - sys.stdlib_module_names == set(), path


def test_subpackages_import_without_cycles():
    graph: dict[str, set[str]] = {}
    for path in (ROOT / "stablehlo_alpa").rglob("*.py"):
        relative = path.relative_to(ROOT).with_suffix("")
        if relative.name == "__init__" and len(relative.parts) == 2:
            continue
        own = subpackage(".".join(relative.parts))
        used = {
            subpackage(name) for name in python_imports(path) if name.startswith("stablehlo_alpa")
        }
        graph.setdefault(own, set()).update(used - {own})
    done: set[str] = set()

    def visit(node: str, trail: tuple[str, ...]) -> None:
        assert node not in trail, f"import cycle {' -> '.join([*trail, node])}"
        if node not in done:
            for target in graph.get(node, ()):
                visit(target, (*trail, node))
            done.add(node)

    for node in list(graph):
        visit(node, ())


@pytest.mark.parametrize("folder", sorted(FORBIDDEN_INCLUDES))
def test_includes_point_downward(folder):
    for path in (ROOT / folder).rglob("*"):
        if path.suffix not in {".h", ".cpp", ".td", ".inc"}:
            continue
        for included in re.findall(r'(?:#include|include) ["<]([^">]+)[">]', path.read_text()):
            assert not included.startswith(FORBIDDEN_INCLUDES[folder]), f"{path} uses {included}"


def test_binding_includes_only_the_c_api():
    for path in (ROOT / "python").rglob("*"):
        if path.suffix not in {".h", ".cpp"}:
            continue
        for included in re.findall(r'#include "([^"]+)"', path.read_text()):
            is_ours = included.startswith(("dialects/", "passes/", "cpp/", "mlir/", "stablehlo/"))
            assert not is_ours or included.startswith(("cpp/capi/", "mlir-c/")), (
                f"{path} uses {included}"
            )
