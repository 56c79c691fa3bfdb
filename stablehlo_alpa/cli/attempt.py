"""One plan that is tried: found, or why not."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stablehlo_alpa.api.methods import Method, PipeshardParallel
from stablehlo_alpa.cli.method_names import MethodOptions, cuts_layers, default_method, parse_method
from stablehlo_alpa.cli.record import asked_record, plan_record, refusal_record
from stablehlo_alpa.cli.subject import FileSubject, Sizes, Subject
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.errors import InfeasibleError, StablehloAlpaError
from stablehlo_alpa.planning import Plan, SearchInterrupted


@dataclass(frozen=True)
class Attempt:
    """A plan, or an error.

    Attributes:
        plan: None where there is none.
        error: None where there is a plan.
        make_record: of both, for JSON.
        interrupt: what ended the search, where the plan is the best that it had then.
    """

    plan: Plan | None
    error: Exception | None
    make_record: Callable[[], dict[str, Any]]
    interrupt: SearchInterrupted | None = None

    @cached_property
    def record(self) -> dict[str, Any]:
        """Of both, for JSON; made when it is asked for, as FLOPs of a model are counted for it."""
        return self.make_record()

    @property
    def is_too_large(self) -> bool:
        """Whether it does not fit the devices."""
        return isinstance(self.error, InfeasibleError)


def method_name(subject: Subject, asked: str | None, options: MethodOptions) -> str:
    """The name of a method: what is asked for, or by default what suits subject and cluster.

    Raises:
        UsageError: there is no such method, or it makes no stages of layers that are asked for.
    """
    is_file = isinstance(subject, FileSubject)
    usual = "shard" if is_file or options.mesh_shape else default_method(options.cluster)
    name = usual if asked is None else asked
    check_layers(options.layers, [name])
    return name


def check_layers(layers: int | None, names: Sequence[str]) -> None:
    """Refuses a number of layers that none of the methods looks at.

    Args:
        layers: as asked for; None where they are not.
        names: of the methods.

    Raises:
        UsageError: none makes stages of layers.
    """
    if layers is not None and not any(map(cuts_layers, names)):
        raise UsageError(
            f"--layers {layers} is of methods that make stages, pipeshard and megatron:1x1x2, got "
            f"{', '.join(names)}: leave it out"
        )


def method_names(methods: str, layers: int | None) -> tuple[str, ...]:
    """Names of methods that are joined by commas.

    Args:
        methods: the names.
        layers: see `check_layers`.

    Raises:
        UsageError: there is no such method, or none makes stages of layers that are asked for.
    """
    names = tuple(methods.split(","))
    for name in names:
        parse_method(name)
    check_layers(layers, names)
    return names


def method_for(subject: Subject, name: str, options: MethodOptions) -> Method:
    """The method of a name.

    Raises:
        UsageError: there is no such method, or it has no schedule, or no mesh that can be said.
        ValueError: the options do not go together.
    """
    make, written = parse_method(name)
    method = make(options, written)
    if options.schedule is not None and not isinstance(method, PipeshardParallel):
        raise UsageError(
            f"--schedule {options.schedule} is of pipeshard, the method is {name}: leave it out"
        )
    if options.mesh_shape is not None and method.mesh_shape != options.mesh_shape:
        shape = "x".join(map(str, options.mesh_shape))
        raise UsageError(
            f"--mesh {shape} is of methods on one mesh whose shape they leave open, the method is "
            f"{name}: say --mesh {options.cluster.num_devices}"
        )
    return method


def attempt(
    subject: Subject, sizes: Sizes, method: Method, cluster: Cluster, cluster_name: str | None
) -> Attempt:
    """Plans; what a user can cause is in the result."""

    def asked() -> dict[str, Any]:
        return asked_record(subject, sizes, method, cluster, cluster_name)

    start = time.perf_counter()
    interrupt = None
    try:
        plan = subject.plan(method, cluster)
    except SearchInterrupted as error:
        plan, interrupt = error.plan, error
    except (StablehloAlpaError, ValueError) as error:
        spent, reason = time.perf_counter() - start, str(error)
        is_too_large = isinstance(error, InfeasibleError)
        return Attempt(None, error, lambda: refusal_record(asked(), reason, is_too_large, spent))
    spent = time.perf_counter() - start
    return Attempt(plan, None, lambda: plan_record(asked(), plan, spent), interrupt)


@contextlib.contextmanager
def quietly(is_quiet: bool) -> Iterator[None]:
    """Shows no progress where nobody wants it."""
    with contextlib.redirect_stderr(io.StringIO()) if is_quiet else contextlib.nullcontext():
        yield
