"""Who may import or include whom; see the table of layers in the design."""

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cpp_functions import functions_of

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

# Operations that upstream's CHLO has only since 2026. What is compiled against a parent's StableHLO
# names them by text.
NEWER_OPERATIONS = r"\b(MulhiOp|ScanOp)\b"

# Folders whose functions are kept small, and packages whose classes are, and how small.
PACKAGES = ["stablehlo_alpa", "runtime/alpa_runtime"]
PROGRAMS = ["benchmarks", "docs", "examples", "scripts", "tests"]
MOST_LINES = 60
MOST_METHODS = 15

# Those that may import the compiled extension.
BORDER = {"stablehlo_alpa.compiler", "stablehlo_alpa.intra_op"}


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


@pytest.mark.parametrize(
    "folder",
    [
        *("dialects/alpa", "dialects/scf", "dialects/stablehlo/DataFlow"),
        *("dialects/stablehlo/ShardingRules", "cpp", "passes"),
    ],
)
def test_upstream_has_the_operations_that_are_named(folder: str) -> None:
    for path in (ROOT / folder).rglob("*.cpp"):
        assert not re.search(NEWER_OPERATIONS, path.read_text()), path


def test_binding_includes_only_the_c_api():
    for path in (ROOT / "python").rglob("*"):
        if path.suffix not in {".h", ".cpp"}:
            continue
        for included in re.findall(r'#include "([^"]+)"', path.read_text()):
            is_ours = included.startswith(("dialects/", "passes/", "cpp/", "mlir/", "stablehlo/"))
            assert not is_ours or included.startswith(("cpp/capi/", "mlir-c/")), (
                f"{path} uses {included}"
            )


def test_the_compiler_has_one_border():
    for path in (ROOT / "stablehlo_alpa").rglob("*.py"):
        own = subpackage(".".join(path.relative_to(ROOT).with_suffix("").parts))
        text = path.read_text()
        if own not in BORDER:
            assert not re.search(r"^\s*(import|from)\s.*\b_core\b", text, re.MULTILINE), path


def definitions(folder: str, kind: type[Any] | tuple[type[Any], ...]) -> Iterator[tuple[Path, Any]]:
    for path in sorted((ROOT / folder).rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, kind):
                yield path, node


@pytest.mark.parametrize("folder", [*PACKAGES, *PROGRAMS])
def test_functions_are_short(folder):
    """Signature and body; what the docstring says is no code."""
    for path, node in definitions(folder, (ast.FunctionDef, ast.AsyncFunctionDef)):
        lines = node.end_lineno - node.lineno + 1
        if ast.get_docstring(node) is not None:
            lines -= node.body[0].end_lineno - node.body[0].lineno + 1
        assert lines <= MOST_LINES, f"{path}: {node.name} has {lines} lines"


@pytest.mark.parametrize("folder", PACKAGES)
def test_classes_have_few_methods(folder):
    """Properties and special methods are methods; what is overloaded is one."""
    for path, node in definitions(folder, ast.ClassDef):
        names = {one.name for one in node.body if isinstance(one, ast.FunctionDef)}
        assert len(names) <= MOST_METHODS, f"{path}: {node.name} has {len(names)} methods"


CPP_SAMPLE = """
#define OPEN {
namespace alpa {
struct Pair {
  explicit Pair(int first)
      : first(first) {}
  int second() const { return '{' + 1; } // {
  int first = 0;
};
static int twice(
    int x) {
  auto once = [&](int y) {
    return y; };
  return once(x) + once(x);
}
} // namespace alpa
"""


def test_functions_of_cpp_are_found() -> None:
    found = [(one.head.partition("(")[0], one.lines) for one in functions_of(CPP_SAMPLE)]
    assert found == [("explicit Pair", 2), ("int second", 1), ("static int twice", 6)]


@pytest.mark.parametrize("folder", ["cpp", "dialects", "examples", "passes", "python", "tests"])
def test_functions_of_cpp_are_short(folder: str) -> None:
    for path in sorted((ROOT / folder).rglob("*")):
        if path.suffix in {".c", ".cpp", ".h"}:
            for one in functions_of(path.read_text()):
                said = f"{path}: {one.head} has {one.lines} lines"
                assert one.lines <= MOST_LINES, said


def passed_modules(method: str) -> set[str]:
    """Modules that a step passes through from ``parallelize`` to results."""
    command = [sys.executable, str(ROOT / "tests" / "py" / "passed_modules.py"), method]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return set(done.stdout.split())


@pytest.mark.slow
def test_one_mesh_takes_the_way_of_a_pipeline():
    pytest.importorskip("stablehlo_alpa._core")
    one, several = passed_modules("shard"), passed_modules("pipeshard")
    assert {"stablehlo_alpa.planning.plan", "alpa_runtime.local_executable"} <= one
    # Forms of what runs on one mesh are searched where that is all of a pipeline.
    several |= passed_modules("stage")
    assert one <= several, one - several


@pytest.mark.slow
def test_the_front_door_opens_without_the_modelling_language() -> None:
    """Few plans need cvxpy, and it takes longer to import than jax."""
    code = "import sys, stablehlo_alpa as sa; sa.parallelize; sys.exit('cvxpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
