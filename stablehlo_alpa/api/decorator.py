"""``parallelize``: the decorator."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ParamSpec, TypeAlias, TypeVar, overload

import jax
import numpy as np
from alpa_runtime import ensure_cpu_pool

from stablehlo_alpa.api.given import (
    argument_names,
    argument_numbers,
    batch_numbers,
    chosen_devices,
)
from stablehlo_alpa.api.methods import Method, ShardParallel
from stablehlo_alpa.api.parallelized import Parallelized
from stablehlo_alpa.api.settings import Settings
from stablehlo_alpa.cluster import Cluster, ClusterSpec, UnlikeCluster, as_cluster
from stablehlo_alpa.errors import MeshError, OptionError, TraceError
from stablehlo_alpa.frontend import BatchArguments, Function, KernelRule
from stablehlo_alpa.option_checks import checked_instance, checked_sequence, restated
from stablehlo_alpa.store import StoreOption, as_store

if TYPE_CHECKING:
    from alpa_runtime.ray import RayCluster


# Numbers or names of arguments, a mapping from them to pytree prefixes of booleans, or a prefix for
# each positional argument.
BatchArgnums = int | str | Iterable[Any] | Mapping[int | str, Any]

# One device, some in order, or an array of them, which is taken flat.
Devices: TypeAlias = jax.Device | Iterable[jax.Device] | np.ndarray[Any, Any]

P = ParamSpec("P")
R = TypeVar("R")


@overload
def parallelize(
    fun: Callable[P, R],
    *,
    method: Method = ...,
    devices: Devices | None = ...,
    cluster: RayCluster | Cluster | str | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    batch_argnums: BatchArgnums = ...,
    rules: Iterable[KernelRule] = ...,
    reuse_gap: float | None = ...,
    trip_count_hint: int | None = ...,
    store: StoreOption = ...,
) -> Parallelized[P, R]: ...


@overload
def parallelize(
    fun: None = ...,
    *,
    method: Method = ...,
    devices: Devices | None = ...,
    cluster: RayCluster | Cluster | str | None = ...,
    donate_argnums: int | Sequence[int] | None = ...,
    donate_argnames: str | Iterable[str] | None = ...,
    static_argnums: int | Sequence[int] | None = ...,
    static_argnames: str | Iterable[str] | None = ...,
    batch_argnums: BatchArgnums = ...,
    rules: Iterable[KernelRule] = ...,
    reuse_gap: float | None = ...,
    trip_count_hint: int | None = ...,
    store: StoreOption = ...,
) -> Callable[[Callable[P, R]], Parallelized[P, R]]: ...


def parallelize(
    fun: Callable[..., Any] | None = None,
    *,
    method: Method = ShardParallel(),  # noqa: B008
    devices: Devices | None = None,
    cluster: RayCluster | Cluster | str | None = None,
    donate_argnums: int | Sequence[int] | None = None,
    donate_argnames: str | Iterable[str] | None = None,
    static_argnums: int | Sequence[int] | None = None,
    static_argnames: str | Iterable[str] | None = None,
    batch_argnums: BatchArgnums = (),
    rules: Iterable[KernelRule] = (),
    reuse_gap: float | None = 0.05,
    trip_count_hint: int | None = None,
    store: StoreOption = True,
) -> Any:
    """Parallelises a function of pytrees over devices.

    Arguments mean what they mean to ``jax.jit``, and so do donated and static ones: given by number
    or by name, they are found however they are passed.

    Args:
        fun: the function, or anything callable; left out when used as a decorator with arguments.
        method: how; by default the ILP chooses everything.
        devices: devices to run on, in the order of the flattened mesh, TPUs that fill a box of a
            torus in the order of that; one, several, or an array of them; all by default.
        cluster: a Ray cluster to run on instead, where results stay, as handles. Functions of equal
            clusters share its processes, and take each other's results where they lie. Or a
            `ClusterSpec`, the name of a preset (``"p4d.24xlarge:4"``) or a TOML file that describes
            the cluster to plan for; its devices need not exist, unless the function is run. For a
            pipeline it may have parts of unlike machines (``"p4d.24xlarge:2 + p3.16xlarge:4"``, an
            `UnlikeCluster`), whose devices are in the order of the parts.
        donate_argnums: positions of arguments whose buffers the call may overwrite.
        donate_argnames: their names.
        static_argnums: positions of arguments that are compile-time constants.
        static_argnames: their names.
        batch_argnums: arguments that hold a batch, by position or by name; or a mapping from them
            to pytree prefixes of booleans (``{"batch": {"x": True, "table": False}}``); or such a
            prefix for each positional argument. By default those that are neither state (an
            argument with the structure and shapes of an output), scalars nor PRNG keys.
        rules: how custom calls of the function can be split, before what `register_rule` says.
        reuse_gap: a call in other sizes takes the strategies of the nearest plan there is, see
            `Plan.transfer`, where these are proved to be no further from the best than this part of
            a step; otherwise strategies are searched. Nearest is the plan whose most changed
            dimension differs by the smallest factor. 0 or None: they are always searched.
        trip_count_hint: how often loops run of which the program does not say it, as
            ``lax.while_loop`` until values have converged: their work, collectives and seconds
            count so often, once without. One that is inside of another counts for each of its
            turns. What is computed does not depend on it.
        store: keeps what is computed on the way to a plan, on disk and by its content, so that the
            next plan of the same or a similar question need not: a folder, a `Store`, True for
            that in the user's cache directory, False for none. Plans do not depend on it.

    Returns:
        a `Parallelized`, to be called as ``fun``.

    Raises:
        OptionError: an option has another type or value than it may have; it is a `TypeError` and a
            `ValueError`, as ``jax.jit`` raises them of arguments that are not there.
        TraceError: an argument is donated and static, or a batch that is static or not there.
        MeshError: there are no devices, one is there twice, both devices and a Ray cluster, or no
            such cluster.

    Example:
        >>> step = parallelize(train_step, donate_argnums=0)
        >>> state = step.create_state(init, key, batch=(batch,))
        >>> print(step.plan(state, batch))
        >>> state, loss = step(state, batch)
    """
    checked_instance("method", method, Method, "made by ShardParallel() or another method")
    if fun is not None and not callable(fun):
        raise OptionError(
            f"fun must be callable, got {fun!r}: a method is passed as method=, and a decorator "
            "with arguments takes them all by keyword"
        )
    described = None
    if isinstance(cluster, ClusterSpec | UnlikeCluster | str):
        described = as_cluster(cluster)
    with restated():
        kept = as_store(store)
    settings = Settings(
        method=method,
        devices=None if devices is None else chosen_devices(devices),
        cluster=None if described is not None else _ray(cluster),
        described=described,
        batches=BatchArguments.of(batch_numbers(batch_argnums)),
        rules=_rules(rules),
        reuse_gap=reuse_gap,
        trip_count_hint=trip_count_hint,
        store=kept,
    )
    _check_place(settings)
    given: dict[str, Any] = {
        "static_argnums": argument_numbers("static_argnums", static_argnums),
        "static_argnames": argument_names("static_argnames", static_argnames),
        "donate_argnums": argument_numbers("donate_argnums", donate_argnums),
        "donate_argnames": argument_names("donate_argnames", donate_argnames),
    }
    _check_apart(given["donate_argnums"], given["static_argnums"], "numbers")
    _check_apart(given["donate_argnames"], given["static_argnames"], "names")
    if devices is None:
        _prepare_cpu_pool()

    def decorate(fun: Callable[..., Any]) -> Parallelized[..., Any]:
        with restated():
            function = Function(fun, **given)
        function.check_batches(settings.batches.arguments)
        return Parallelized(fun, function, settings)

    return decorate if fun is None else decorate(fun)


def _ray(cluster: Any) -> RayCluster | None:
    """A cluster to run on; anything else is refused."""
    if cluster is not None and not hasattr(cluster, "address"):
        as_cluster(cluster)
    ray: RayCluster | None = cluster
    return ray


def _check_place(settings: Settings) -> None:
    if settings.cluster is not None and settings.devices is not None:
        raise MeshError(
            "devices= are those of this process, cluster= has its own: pass one of both"
        )


def _rules(rules: Any) -> tuple[KernelRule, ...]:
    found = checked_sequence("rules", rules, "KernelRule")
    return tuple(
        checked_instance(f"rules[{number}]", rule, KernelRule, "KernelRule.parse(...)")
        for number, rule in enumerate(found)
    )


def _check_apart(donated: Any, static: Any, kind: str) -> None:
    """Raises ``TraceError`` when arguments are donated and static."""
    both = set(donated or ()) & set(static or ())
    if both:
        raise TraceError(
            f"arguments with the {kind} {sorted(both)} are donated and static, they can "
            "be one of both"
        )


def _prepare_cpu_pool() -> None:
    """Sizes the thread pool of a CPU client that may still have to be made.

    Harmless when the client exists: the variable is read once. The number of devices is asked for
    without making the client, which would fix the pool.
    """
    flag = "--xla_force_host_platform_device_count="
    wanted = [f for f in os.environ.get("XLA_FLAGS", "").split() if f.startswith(flag)]
    count = int(wanted[-1].removeprefix(flag)) if wanted else 0
    count = max(count, int(getattr(jax.config, "jax_num_cpu_devices", 0)))
    if count > 1:
        ensure_cpu_pool(count, client_exists=False)
