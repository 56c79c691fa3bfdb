"""Plans upstream's test programs at random, and holds what they are lowered to against upstream.

The programs are those of `check_upstream.py` that have one function of static shapes. Each gets a
random strategy for every operator on 2x2 devices, is lowered, read by the StableHLO of jaxlib, and,
where XLA compiles the program as it is written, run: its results must be those of the program.
Those with quantized types, which jaxlib does not read, are lowered and read by our own StableHLO.

Prints one line for each outcome and each program that failed, or that was refused without a word of
what the planner does not take; the status is 1 where there is one.
"""

from __future__ import annotations

import argparse
import contextlib
import enum
import multiprocessing
import os
import pathlib
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from typing import Any

from check_upstream import programs_of, strip

AXES = (("x", 2), ("y", 2))
MESH = ",".join(f"{name}:{size}" for name, size in AXES)
# Results are numbers that a device draws.
DRAWN = ("stablehlo.rng ", '"stablehlo.rng"', "stablehlo.rng_", "UNIFORM", "NORMAL")
DTYPES = {
    **{f"i{bits}": f"int{bits}" for bits in (8, 16, 32, 64)},
    **{f"ui{bits}": f"uint{bits}" for bits in (8, 16, 32, 64)},
    **{f"f{bits}": f"float{bits}" for bits in (16, 32, 64)},
    "bf16": "bfloat16",
    "i1": "bool",
    "complex<f32>": "complex64",
    "complex<f64>": "complex128",
}
TIMEOUT_S = 40.0
# How a refusal says what it refuses: the operator, or the value. What a verifier says of a module
# that a pass has made reads `'name' op ...`; a program itself returns what its type does not.
REFUSAL = re.compile(
    r"[^ ]*:\d+:\d+: ('[\w.-]+' (?!op )|argument |result "
    r"|'stablehlo.return' op returns \d+ values from @main)"
)
# A scatter that combines by `(a, b, c, d) -> (a + b, c + d)`: what is scattered to one place twice
# depends on the order, which is XLA's own (it is not that of the indices on one device either).
ORDER_DECIDES = frozenset({"ops_stablehlo_roundtrip.mlir:1#64"})


class Outcome(enum.Enum):
    """What became of a program."""

    NOT_READ = "refused by upstream's dialect as it is written"
    NOT_PLANNED = "refused by the planner, by name"
    NOT_NAMED = "refused by a verifier of what a pass has made"
    LOWERED = "lowered, not read by upstream's dialect: jaxlib has no quantized types"
    VERIFIED = "read by upstream's dialect, not run: XLA does not, or its results are its own"
    EQUAL = "equal in numbers"
    FAILED = "failed"


def prepared(text: str) -> str | None:
    """A program whose one function is a public `main`, of static shapes; None where it is not."""
    names = re.findall(r"\bfunc\.func\b[^@]*@([\w.$-]+|\"[^\"]*\")", text)
    if len(names) != 1 or "?" in text:
        return None
    return re.sub(r"\bfunc\.func\b[^@]*@([\w.$-]+|\"[^\"]*\")", "func.func public @main", text)


def types_of(text: str) -> tuple[list[Any], list[Any]]:
    """Shapes and numpy dtypes of arguments and results, as upstream's dialect reads them.

    Raises:
        ValueError: one is no tensor of numbers that numpy has.
    """
    from jax._src.interpreters import mlir as jax_mlir
    from jax.extend.mlir import ir

    def one(kind: Any) -> tuple[tuple[int, ...], str]:
        element = str(kind.element_type)
        if element not in DTYPES:
            raise ValueError(f"no numbers of numpy: {kind}")
        return tuple(kind.shape), DTYPES[element]

    with jax_mlir.make_ir_context():
        module = ir.Module.parse(text)
        (main,) = module.body.operations
        kind = main.function_type.value
        return tuple(
            [one(ir.RankedTensorType(t)) for t in ts] for ts in (kind.inputs, kind.results)
        )


def draw(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    """Numbers that most operators have a result for: small, positive ones among them."""
    import jax.numpy as jnp
    import numpy as np

    random = np.random.default_rng(seed)
    if dtype == "bool":
        return random.integers(0, 2, shape).astype(bool)
    if "int" in dtype:
        return random.integers(0, 3, shape).astype(dtype)
    values = random.uniform(0.1, 0.9, shape)
    if "complex" in dtype:
        return (values + 1j * random.uniform(0.1, 0.9, shape)).astype(dtype)
    return values.astype(jnp.dtype(dtype))


def lower(text: str, seed: int) -> tuple[str, dict[str, Any]]:
    """A random plan of a program, as the module of one device, and its shardings."""
    import numpy as np

    from stablehlo_alpa import _core

    merged, _ = _core.run_pipeline(text, "builtin.module(alpa-prepare-pipeline)")
    counts = np.diff(_core.strategy_graph(merged, list(AXES))["node_offset"])
    solution = ",".join(str(int(i)) for i in np.random.default_rng(seed).integers(0, counts))
    plan = f"builtin.module(alpa-plan-pipeline{{mesh={MESH} solution={solution}}})"
    planned, _ = _core.run_pipeline(merged, plan)
    # As programs of these devices are lowered: XLA for CPU needs some forms to be right.
    local, _ = _core.run_pipeline(planned, "builtin.module(alpa-spmd-pipeline{platform=cpu})")
    return local, _core.signature(planned)


def run(text: str, mesh: Any, types: Any, shardings: Any, args: list[Any]) -> list[Any]:
    """Results of a program on as many devices as its mesh has."""
    import jax
    from alpa_runtime import SpmdProgram, ValueSpec, compile_spmd

    specs = [
        tuple(ValueSpec(*kind, axes) for kind, axes in zip(some, split, strict=True))
        for some, split in zip(types, shardings, strict=True)
    ]
    program = SpmdProgram(text=text, mesh=mesh, inputs=specs[0], outputs=specs[1], name="program")
    count = len(jax.devices()[: 1 if len(mesh) == 1 else 4])
    return [jax.device_get(x) for x in compile_spmd(program, jax.devices()[:count])(*args)]


def differs(ours: Any, theirs: Any) -> str:
    """How two results differ; empty where they do not."""
    import numpy as np

    for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
        if (mine.shape, mine.dtype) != (other.shape, other.dtype):
            return f"result {index} is {mine.dtype}{mine.shape}, not {other.dtype}{other.shape}"
        wide = np.complex128 if np.iscomplexobj(mine) else np.float64
        small = mine.dtype.itemsize <= 2 and mine.dtype.kind not in "iub"
        tolerance = 0.0 if mine.dtype.kind in "iub" else 2e-2 if small else 1e-5
        if not np.allclose(
            mine.astype(wide), other.astype(wide), tolerance, tolerance, equal_nan=True
        ):
            return f"result {index} has other values"
    return ""


def check(text: str, seed: int) -> Iterator[tuple[Outcome, str]]:
    """What becomes of one program, and why; what is yielded last stands."""
    from stablehlo_alpa import _core
    from stablehlo_alpa.compiler.notation import parse_sharding

    is_quantized = "!quant" in text
    if not is_quantized and (said := refused_by_upstream(text)):
        yield Outcome.NOT_READ, said
        return
    try:
        local, signature = lower(text, seed)
    except _core.CompilerError as error:
        said = str(error).splitlines()[0]
        yield (Outcome.NOT_PLANNED if REFUSAL.match(said) else Outcome.NOT_NAMED), said
        return
    if is_quantized:
        yield read_again(local)
        return
    if said := refused_by_upstream(local):
        yield Outcome.FAILED, f"upstream refuses what it was lowered to: {said}"
        return
    yield Outcome.VERIFIED, "XLA ends, or waits, at it"
    try:
        types = types_of(text)
        args = [draw(*kind, seed + index) for index, kind in enumerate(types[0])]
        whole = [[((),) * len(shape) for shape, _ in some] for some in types]
        expected = run(text, (("x", 1),), types, whole, args)
    except Exception as error:
        yield Outcome.VERIFIED, str(error).splitlines()[0]
        return
    if any(word in text for word in DRAWN):
        yield Outcome.VERIFIED, "its results are drawn"
        return
    yield Outcome.FAILED, "XLA ends, or waits, at what it was lowered to"
    axes = [name for name, _ in AXES]
    split = [[parse_sharding(s, axes) for s in signature[k]] for k in ("inputs", "outputs")]
    try:
        said = differs(run(local, AXES, types, split, args), expected)
    except Exception as error:
        said = f"XLA refuses what it was lowered to: {error}"
    yield (Outcome.FAILED, said) if said else (Outcome.EQUAL, "")


def read_again(local: str) -> tuple[Outcome, str]:
    """Whether our own StableHLO takes what a program was lowered to."""
    from stablehlo_alpa import _core

    try:
        _core.run_pipeline(local, "builtin.module()")
    except _core.CompilerError as error:
        return Outcome.FAILED, f"it is not read again: {str(error).splitlines()[0]}"
    return Outcome.LOWERED, ""


def refused_by_upstream(text: str) -> str:
    """Why the StableHLO of jaxlib does not take a module; empty if it does."""
    from jax._src.interpreters import mlir as jax_mlir
    from jax.extend.mlir import ir

    try:
        with jax_mlir.make_ir_context():
            ir.Module.parse(text).operation.verify()
    except ir.MLIRError as error:
        return " ".join(str(error).split())
    return ""


def serve(texts: list[str], first: int, answers: Any) -> None:
    """Answers for texts, from the one numbered `first`."""
    os.environ["JAX_PLATFORMS"] = "cpu"
    os.environ["PJRT_NPROC"] = "16"
    os.environ["XLA_FLAGS"] = (
        "--xla_force_host_platform_device_count=4 --xla_backend_optimization_level=0"
    )
    import jax

    jax.config.update("jax_enable_x64", True)
    for index in range(first, len(texts)):
        for outcome, why in check(texts[index], index):
            answers.send((index, outcome, why))


def check_all(texts: list[str]) -> list[tuple[Outcome, str]]:
    """`check` of every text, in a process that is started again where XLA ends it."""
    spawn = multiprocessing.get_context("spawn")
    found = [(Outcome.FAILED, "our compiler ends, or waits, at it")] * len(texts)
    first = 0
    while first < len(texts):
        receiver, sender = spawn.Pipe(duplex=False)
        worker = spawn.Process(target=serve, args=(texts, first, sender))
        worker.start()
        sender.close()
        current = first
        with contextlib.suppress(EOFError):
            while receiver.poll(TIMEOUT_S):
                current, outcome, why = receiver.recv()
                found[current] = outcome, why
        worker.kill()
        worker.join()
        first = current + 1
    return found


def main() -> int:
    """Prints the table; fails where a program does."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkout", type=pathlib.Path, help="folder of openxla/stablehlo")
    parser.add_argument("--only", default="", help="programs whose place has this in it")
    parser.add_argument("--every", type=int, default=1, help="only each so manieth program")
    parser.add_argument("--list", action="store_true", help="say of every program what became")
    arguments = parser.parse_args()

    places: dict[str, str] = {}
    for program in programs_of(arguments.checkout / "stablehlo" / "tests"):
        text = None
        if "expected-error" not in program.text and arguments.only in program.place:
            text = prepared(strip(program.text))
        if text is not None:
            places.setdefault(text, program.place)
    texts = list(places)[:: arguments.every]
    start = time.monotonic()
    answers = [
        (Outcome.VERIFIED, "its results depend on an order that is XLA's")
        if places[text] in ORDER_DECIDES and outcome is Outcome.FAILED
        else (outcome, why)
        for text, (outcome, why) in zip(texts, check_all(texts), strict=True)
    ]
    counts = Counter(outcome for outcome, _ in answers)
    print(f"{len(texts):6} programs with one function, in {time.monotonic() - start:.0f} s")
    for outcome in Outcome:
        print(f"{counts[outcome]:6} {outcome.value}")
    bad = (Outcome.FAILED, Outcome.NOT_NAMED)
    for text, (outcome, why) in zip(texts, answers, strict=True):
        if arguments.list or outcome in bad:
            print(f"       {places[text]}: {outcome.value}: {why}")
    return int(any(counts[outcome] for outcome in bad))


if __name__ == "__main__":
    sys.exit(main())
