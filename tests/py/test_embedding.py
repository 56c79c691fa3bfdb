"""The CMake package: what it installs, and a compiler that is built from it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from build_settings import BUILD, cached, llvm_tool

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.slow


def run(*command: str | Path) -> str:
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def prefix(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("prefix")
    run("cmake", "--install", BUILD, "--component", "development", "--prefix", folder)
    return folder


def configure(prefix: Path, build: Path) -> subprocess.CompletedProcess[str]:
    options = {
        "CMAKE_PREFIX_PATH": prefix,
        "MLIR_DIR": cached("MLIR_DIR"),
        "CMAKE_C_COMPILER": cached("CMAKE_C_COMPILER"),
        "CMAKE_CXX_COMPILER": cached("CMAKE_CXX_COMPILER"),
    }
    command = ["cmake", "-S", str(ROOT / "examples/embedding"), "-B", str(build), "-G", "Ninja"]
    command += [f"-D{name}={value}" for name, value in options.items()]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def tiny_opt(prefix: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    build = tmp_path_factory.mktemp("embedding")
    done = configure(prefix, build)
    assert done.returncode == 0, done.stdout + done.stderr
    run("cmake", "--build", build)
    return build / "tiny-opt"


def test_a_compiler_plans_an_operation_of_its_own(tiny_opt: Path) -> None:
    found = run(tiny_opt, ROOT / "examples/embedding/model.mlir")
    # Rows are split over all eight devices: 64 in the program, 8 on each.
    assert '"tiny.scale_rows"(%arg0, %arg1) : (tensor<8x256xf32>, tensor<8xf32>)' in found
    assert "alpa." not in found


def test_a_compiler_plans_a_loop_of_its_own(tiny_opt: Path) -> None:
    found = run(tiny_opt, ROOT / "examples/embedding/repeat.mlir")
    # Rows stay split in the loop, from operand to result: nothing is sent in any of its runs.
    assert re.search(r"^ *\^bb0\(%\w+: tensor<8x256xf32>\):", found, re.MULTILINE)
    assert "count = 3 : i64" in found
    assert "(tensor<8x256xf32>) -> tensor<8x256xf32>" in found
    assert "alpa." not in found


def test_the_page_on_adding_an_operator_has_the_loop_that_is_built() -> None:
    code = (ROOT / "examples/embedding/Repeat.h").read_text()
    shown = code[code.index("/// `tiny.repeat") : code.index("\n#endif")]
    assert f"```c++\n{shown}```" in (ROOT / "docs/adding_an_op.md").read_text()
    assert len(shown.splitlines()) <= 40


def test_another_version_is_refused(prefix: Path, tmp_path: Path) -> None:
    config = next(prefix.rglob("StablehloAlpaConfig.cmake"))
    before = config.read_text()
    config.write_text(re.sub(r'(_MLIR_VERSION) "[^"]*"', r'\1 "21.0.0"', before))
    try:
        done = configure(prefix, tmp_path)
    finally:
        config.write_text(before)
    assert done.returncode != 0
    assert "compiled against MLIR 21.0.0, found 22" in re.sub(r"\s+", " ", done.stderr)


def test_headers_need_nothing_that_is_not_installed(prefix: Path) -> None:
    includes = prefix / "include/stablehlo_alpa"
    for header in [*includes.rglob("*.h"), *includes.rglob("*.h.inc")]:
        for name in re.findall(r'#include "([^"]+)"', header.read_text()):
            if name.startswith(("cpp/", "dialects/", "passes/", "stablehlo/")):
                assert (includes / name).exists(), f"{header} includes {name}"


def test_libraries_do_nothing_when_loaded(prefix: Path) -> None:
    """No global constructors, and so no options of the command line that are registered by them."""
    for library in prefix.rglob("*.a"):
        sections = run(llvm_tool("llvm-objdump"), "--section-headers", library).split()
        constructors = [name for name in sections if re.match(r"\.(init_array|ctors)", name)]
        assert not constructors, f"{library.name} has {constructors}"


def test_libraries_define_names_of_their_own_only(prefix: Path) -> None:
    own = r"mlir::(alpa|stablehlo|chlo|hlo)::|alpa[A-Z]|(vtable|typeinfo).* for mlir::"
    for library in prefix.rglob("*.a"):
        command = (llvm_tool("llvm-nm"), "--defined-only", "--extern-only", "--demangle", library)
        for line in run(*command).splitlines():
            # Weak symbols are inline functions of headers, MLIR's among them.
            strong = re.match(r"[0-9a-f]+ [TDBR] (.*)$", line)
            if strong:
                assert re.search(own, strong[1]), f"{library.name} defines {strong[1]}"
