"""Feeding batches ahead of the steps that use them."""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import jax

from stablehlo_alpa.api.stages import Compiled

_END = object()


def prefetch(
    batches: Iterable[Any], compiled: Compiled, *, argnum: int | str = 1, size: int = 2
) -> Generator[Any, None, None]:
    """Brings batches to the devices that need them while earlier ones are worked on.

    Batches are read, cut into micro-batches and copied by a thread of their own, in order.

    Args:
        batches: pytrees of arrays, as the function takes them.
        compiled: of the function: ``step.compile(state, batch)``.
        argnum: which argument of the function a batch is, by position or by name.
        size: batches that are ready or on their way; each takes the memory of a batch.

    Yields:
        what the function takes in place of the batch, once.

    Raises:
        ValueError: there is no such argument, or ``size`` is less than one.
        InputError: a batch has other shapes or dtypes than the function was compiled for.

    Example:
        >>> for batch in prefetch(loader, step.compile(state, first), argnum=1):
        ...     state, loss = step(state, batch)
    """
    if size < 1:
        raise ValueError(f"size must be >= 1, got {size}")
    inputs = compiled.plan.program.of_caller.inputs_of(argnum)
    if not inputs:
        raise ValueError(f"{compiled.plan.program.name} has no arrays in argument {argnum}")
    executable = compiled.executable
    source = iter(batches)

    def fetch() -> Any:
        batch = next(source, _END)
        if batch is _END:
            return _END
        leaves, tree = jax.tree.flatten(batch)
        if len(leaves) != len(inputs):
            raise ValueError(
                f"a batch has {len(leaves)} arrays, argument {argnum} of "
                f"{compiled.plan.program.name} has {len(inputs)}"
            )
        fed = [executable.feed(index, leaf) for index, leaf in zip(inputs, leaves, strict=True)]
        return jax.tree.unflatten(tree, fed)

    return _ahead(fetch, size)


def _ahead(fetch: Any, size: int) -> Generator[Any, None, None]:
    with ThreadPoolExecutor(1, "prefetch") as pool:
        waiting: deque[Future[Any]] = deque(pool.submit(fetch) for _ in range(size))
        try:
            while (batch := waiting.popleft().result()) is not _END:
                waiting.append(pool.submit(fetch))
                yield batch
        finally:
            for future in waiting:
                future.cancel()
