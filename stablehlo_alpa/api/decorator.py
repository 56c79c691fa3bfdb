"""``parallelize``: the decorator."""

from __future__ import annotations

import functools
import operator
import os
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, overload

import jax
from alpa_runtime import ensure_cpu_pool

from stablehlo_alpa.api.methods import Method, PipeshardParallel, ShardParallel
from stablehlo_alpa.api.parallelized import Parallelized, Settings
from stablehlo_alpa.errors import MeshError, TraceError

if TYPE_CHECKING:
    from alpa_runtime.ray import RayCluster


@overload
def parallelize(
    fun: Callable[..., Any],
    *,
    method: Method = ...,
    devices: Sequence[jax.Device] | None = ...,
    cluster: RayCluster | None = ...,
    donate_argnums: int | Iterable[int] = ...,
    static_argnums: int | Iterable[int] = ...,
    batch_argnums: int | Iterable[int] = ...,
) -> Parallelized: ...


@overload
def parallelize(
    fun: None = ...,
    *,
    method: Method = ...,
    devices: Sequence[jax.Device] | None = ...,
    cluster: RayCluster | None = ...,
    donate_argnums: int | Iterable[int] = ...,
    static_argnums: int | Iterable[int] = ...,
    batch_argnums: int | Iterable[int] = ...,
) -> Callable[[Callable[..., Any]], Parallelized]: ...


def parallelize(
    fun: Callable[..., Any] | None = None,
    *,
    method: Method = ShardParallel(),  # noqa: B008
    devices: Sequence[jax.Device] | None = None,
    cluster: RayCluster | None = None,
    donate_argnums: int | Iterable[int] = (),
    static_argnums: int | Iterable[int] = (),
    batch_argnums: int | Iterable[int] = (),
) -> Any:
    """Parallelises a function of pytrees over devices.

    Args:
        fun: the function; left out when used as a decorator with arguments.
        method: how; by default the ILP chooses everything.
        devices: devices to run on, in the order of the flattened mesh; all by default.
        cluster: a Ray cluster to run on instead, for ``PipeshardParallel``.
        donate_argnums: arguments whose buffers the call may overwrite.
        static_argnums: arguments that are compile-time constants.
        batch_argnums: arguments that hold a batch; by default those that are neither state (an
            argument with the structure and shapes of an output), scalars nor PRNG keys.

    Returns:
        a `Parallelized`, to be called as ``fun``.

    Example:
        >>> step = parallelize(train_step, donate_argnums=0)
        >>> state = step.create_state(init, key, batch=(batch,))
        >>> print(step.plan(state, batch))
        >>> state, loss = step(state, batch)
    """
    if not isinstance(method, Method):
        raise TypeError(f"method must be made by ShardParallel() or another method, got {method!r}")
    if cluster is not None and devices is not None:
        raise MeshError(
            "devices= are those of this process, cluster= has its own: pass one of both"
        )
    if cluster is not None and not isinstance(method, PipeshardParallel):
        raise MeshError(
            f"cluster= runs pipelines: method must be PipeshardParallel(...), got {method!r}; "
            "with UniformStages(1) it has one stage"
        )
    settings = Settings(
        method=method,
        devices=None if devices is None else tuple(devices),
        cluster=cluster,
        donate_argnums=_tuple(donate_argnums),
        static_argnums=_tuple(static_argnums),
        batch_argnums=_tuple(batch_argnums),
    )
    if settings.devices == ():
        raise MeshError("devices is empty, a mesh has at least one device")
    both = set(settings.donate_argnums) & set(settings.static_argnums)
    if both:
        raise TraceError(
            f"arguments {sorted(both)} are donated and static, they can be one of both"
        )
    if devices is None:
        _prepare_cpu_pool()
    if fun is None:
        return functools.partial(Parallelized, settings=settings)
    return Parallelized(fun, settings)


def _tuple(argnums: int | Iterable[int]) -> tuple[int, ...]:
    numbers = (argnums,) if isinstance(argnums, int) else tuple(argnums)
    return tuple(operator.index(number) for number in numbers)


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
