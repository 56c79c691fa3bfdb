"""One plan that is tried: found, or why not."""

from __future__ import annotations

import contextlib
import io
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from stablehlo_alpa.api.methods import Method, PipeshardParallel
from stablehlo_alpa.cli.method_names import MethodOptions, default_method, parse_method
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


def method_for(subject: Subject, name: str | None, options: MethodOptions) -> Method:
    """The method of a name; by default what suits subject and cluster.

    Raises:
        UsageError: there is no such method, or it has no schedule.
        ValueError: the options do not go together.
    """
    if name is None:
        is_file = isinstance(subject, FileSubject)
        name = "shard" if is_file or options.mesh_shape else default_method(options.cluster)
    make, written = parse_method(name)
    method = make(options, written)
    if options.schedule is not None and not isinstance(method, PipeshardParallel):
        raise UsageError(
            f"--schedule {options.schedule} is of pipeshard, the method is {name}: leave it out"
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
