"""What is planned: a model of the zoo, a module from a file, or a function's step."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

import jax.numpy as jnp

from stablehlo_alpa import zoo
from stablehlo_alpa.api.decorator import parallelize
from stablehlo_alpa.api.methods import Method, ShardParallel
from stablehlo_alpa.cli.mlir_file import read_program
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.cluster import Cluster, logical_mesh_shapes, one_part
from stablehlo_alpa.intra_op import SolveOptions
from stablehlo_alpa.planning import Plan, PlanOptions, plan_program
from stablehlo_alpa.store import OFF, Store


@dataclass(frozen=True)
class Sizes:
    """Sizes of a step that options say; None where they do not.

    Attributes:
        batch: examples.
        sequence: tokens of each.
        image: pixels of a side of each.
        remat: whether blocks are computed again in the backward pass.
        scanned: whether equal blocks are one scan.
        dtype: of what is computed.
        gradients: dtype that they are taken and added up in.
        optimizer: name of the zoo's.
    """

    batch: int | None = None
    sequence: int | None = None
    image: int | None = None
    remat: bool | None = None
    scanned: bool = False
    dtype: str | None = None
    gradients: str | None = None
    optimizer: str | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Those that are not at their defaults, by name."""
        named: dict[str, Any] = {"batch": self.batch, "sequence": self.sequence}
        named |= {"remat": self.remat, "scanned": self.scanned or None}
        named |= {"image": self.image, "dtype": self.dtype, "gradients": self.gradients}
        named |= {"optimizer": self.optimizer}
        return {name: value for name, value in named.items() if value is not None}

    @property
    def options(self) -> dict[str, Any]:
        """The same as functions take them."""
        dtypes = {"dtype": self.dtype, "gradients": self.gradients}
        typed = {name: getattr(jnp, dtype) for name, dtype in dtypes.items() if dtype is not None}
        return self.given | typed


class Subject(Protocol):
    """What can be planned."""

    @property
    def name(self) -> str:
        """Of it."""

    @property
    def case(self) -> zoo.ModelCase | None:
        """Its step where it is a model of the zoo, or made like one."""

    def plan(self, method: Method, cluster: Cluster) -> Plan:
        """Plans it."""


@dataclass(frozen=True)
class StepSubject:
    """A train step in shapes.

    Attributes:
        name: of it.
        step: the function.
        args: its arguments, shapes.
        donate_argnums: those that it may overwrite.
        case: see `Subject`.
        trip_count_hint: as ``parallelize`` takes it.
        store: likewise.
    """

    name: str
    step: Callable[..., Any]
    args: tuple[Any, ...]
    donate_argnums: tuple[int, ...] = ()
    case: zoo.ModelCase | None = None
    trip_count_hint: int | None = None
    store: Store = OFF

    @classmethod
    def of(cls, case: zoo.ModelCase) -> StepSubject:
        """The step of a model."""
        return cls(case.name, case.step, case.args, case.donate_argnums, case)

    def plan(self, method: Method, cluster: Cluster) -> Plan:
        """See `Subject`."""
        step = parallelize(
            self.step,
            method=method,
            cluster=cluster,
            donate_argnums=self.donate_argnums,
            trip_count_hint=self.trip_count_hint,
            store=self.store,
        )
        return step.plan(*self.args)


@dataclass(frozen=True)
class FileSubject:
    """A module, which does not say what of its inputs is state: only the search can split it.

    Attributes:
        path: of the file.
        trip_count_hint: as ``parallelize`` takes it.
        store: likewise.
    """

    path: Path
    trip_count_hint: int | None = None
    store: Store = OFF

    @property
    def name(self) -> str:
        """Of the file."""
        return self.path.stem

    @property
    def case(self) -> None:
        """None."""

    def plan(self, method: Method, cluster: Cluster) -> Plan:
        """See `Subject`.

        Raises:
            UsageError: the method needs to know what the inputs are.
        """
        if type(method) is not ShardParallel or method.num_micro_batches is not None:
            raise UsageError(
                f"{self.path} does not say which inputs are state and which a batch, that "
                f"{method.brief()} asks for: leave --method and --micro-batches out, or plan a "
                "model or module:function"
            )
        place = one_part(cluster, method.brief())
        searched = tuple(logical_mesh_shapes(place.num_devices, place.num_hosts))
        budget = method.memory_budget
        solve = SolveOptions(
            memory_budget=place.device.memory_bytes if budget is None else float(budget)
        )
        shapes = searched if method.mesh_shape is None else (method.mesh_shape,)
        program = replace(read_program(self.path), trip_count_hint=self.trip_count_hint)
        options = PlanOptions(cluster=place, mesh_shapes=shapes, solve=solve, store=self.store)
        return plan_program(program, options)


def find_subject(
    text: str, sizes: Sizes, trip_count_hint: int | None = None, store: Store = OFF
) -> Subject:
    """What a name stands for: a file where it ends in ``.mlir`` or is there, a function, a model.

    Args:
        text: the name.
        sizes: of a step.
        trip_count_hint: as ``parallelize`` takes it.
        store: likewise.

    Raises:
        UsageError: there is no such function, options do not go with what is planned, or a file is
            no module.
        ModelError: there is no such model, or its sizes make none.
        OSError: there is no such file.
    """
    path = Path(text)
    if path.suffix == ".mlir" or path.is_file():
        _refuse(sizes.given, f"{text} has its sizes in it")
        if not path.is_file():
            raise FileNotFoundError(f"no file {text}")
        _check_module(path)
        return FileSubject(path, trip_count_hint, store)
    if ":" in text:
        return replace(_function(text, sizes), trip_count_hint=trip_count_hint, store=store)
    entry = zoo.find(text)
    if sizes.batch is None:
        raise UsageError(f"{entry.name} needs --batch, the examples of a step")
    # What has a memory worth planning for does not fit without.
    options = {"remat": True, **sizes.options}
    step = StepSubject.of(entry.case(**options))
    return replace(step, trip_count_hint=trip_count_hint, store=store)


def _check_module(path: Path) -> None:
    """Refuses files that are something else than StableHLO text."""
    if path.suffix == ".py":
        raise UsageError(f"{path} is a file of functions: say which, as {path}:FUNCTION")
    if zipfile.is_zipfile(path):
        raise UsageError(
            f"{path} is a plan, no module: explain, simulate, check, run and view take it"
        )


def _refuse(given: dict[str, Any], reason: str) -> None:
    if given:
        options = ", ".join(f"--{name}" for name in given)
        raise UsageError(f"{reason}: leave {options} out")


def _function(text: str, sizes: Sizes) -> StepSubject:
    """What ``module:function`` returns: a `ModelCase`, or a step and its arguments' shapes."""
    name, _, attribute = text.partition(":")
    try:
        function = getattr(_imported(name), attribute)
    except (ImportError, AttributeError) as error:
        raise UsageError(f"no function {text}: {error}") from error
    if not callable(function):
        raise UsageError(f"{text} is a {type(function).__name__}, must be a function")
    _check_parameters(text, function, sizes)
    made = function(**sizes.options)
    if isinstance(made, zoo.ModelCase):
        return StepSubject.of(made)
    is_pair = isinstance(made, tuple) and len(made) == 2 and callable(made[0])
    if is_pair and isinstance(made[1], tuple | list):
        return StepSubject(text, made[0], tuple(made[1]))
    raise UsageError(
        f"{text} returned {type(made).__name__}, must return a zoo.ModelCase, or a step and the "
        "tuple of its arguments (arrays or jax.ShapeDtypeStruct)"
    )


def _imported(name: str) -> ModuleType:
    """A module by its name, as ``python -m`` finds it, or by its file, as ``python FILE.py`` does.

    Raises:
        UsageError: it is neither.
        OSError: there is no such file.
    """
    path = Path(name)
    if path.suffix == ".py":
        if not path.is_file():
            raise FileNotFoundError(f"no file {name}")
        _look_in(str(path.resolve().parent))
        spec = importlib.util.spec_from_file_location(str(path.resolve()), path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        # Dataclasses look for their module there.
        sys.modules[module.__name__] = module
        spec.loader.exec_module(module)
        return module
    if not all(part.isidentifier() for part in name.split(".")):
        raise UsageError(
            f"{name!r} is no module, must be one as python -m takes it, such as package.steps, or "
            "a file, such as folder/steps.py"
        )
    _look_in("")
    return importlib.import_module(name)


def _look_in(folder: str) -> None:
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _check_parameters(text: str, function: Callable[..., Any], sizes: Sizes) -> None:
    """Refuses sizes that a function does not take, and a function that takes what is not given."""
    known = inspect.signature(function).parameters
    kinds = {one.kind for one in known.values()}
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        unknown = {key: value for key, value in sizes.given.items() if key not in known}
        _refuse(unknown, f"{text} has no such parameter")
    several = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        name
        for name, one in known.items()
        if one.default is one.empty and one.kind not in several and name not in sizes.given
    ]
    names = [one.name for one in fields(Sizes)]
    foreign = [name for name in needed if name not in names]
    if foreign:
        raise UsageError(
            f"{text} takes {', '.join(foreign)}, which no option says: options are "
            f"--{', --'.join(names)}, all else needs a default"
        )
    if needed:
        raise UsageError(f"{text} needs --{', --'.join(needed)}")
