"""A parallelised method of an object."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Generic, ParamSpec, TypeVar

from stablehlo_alpa.api.given import check_state_options

P = ParamSpec("P")
R = TypeVar("R")


class BoundParallelized(Generic[P, R]):
    """A parallelised method; call it without the object, which is its first argument.

    As under ``jax.jit`` the object is a pytree, or a static argument (``static_argnums=0``).
    Arguments are counted without it.

    Attributes:
        __func__: the parallelised function of the class.
        __self__: the object.
    """

    def __init__(self, function: Any, instance: Any) -> None:
        """Made where the method is looked up.

        Args:
            function: the parallelised function.
            instance: the object.
        """
        self.__func__, self.__self__ = function, instance
        self.__name__, self.__wrapped__ = function.__name__, function.__wrapped__
        self.__doc__ = function.__doc__

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Runs the method."""
        result: R = self.__func__(self.__self__, *args, **kwargs)
        return result

    def plan(self, *args: Any, **kwargs: Any) -> Any:
        """See `Parallelized.plan`."""
        return self.__func__.plan(self.__self__, *args, **kwargs)

    def lower(self, *args: Any, **kwargs: Any) -> Any:
        """See `Parallelized.lower`."""
        return self.__func__.lower(self.__self__, *args, **kwargs)

    def compile(self, *args: Any, **kwargs: Any) -> Any:
        """See `Parallelized.compile`."""
        return self.__func__.compile(self.__self__, *args, **kwargs)

    def create_state(
        self,
        init_fn: Callable[..., Any],
        *init_args: Any,
        batch: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        argnum: int | str = 0,
    ) -> Any:
        """See `Parallelized.create_state`."""
        more = self._state_options(batch, kwargs, argnum)
        return self.__func__.create_state(init_fn, *init_args, **more)

    def restore_state(
        self,
        path: str | os.PathLike[str],
        state: Any,
        *,
        batch: Sequence[Any] | None = None,
        kwargs: Mapping[str, Any] | None = None,
        argnum: int | str = 0,
    ) -> Any:
        """See `Parallelized.restore_state`."""
        return self.__func__.restore_state(
            path, state, **self._state_options(batch, kwargs, argnum)
        )

    def _state_options(
        self, batch: Sequence[Any] | None, kwargs: Mapping[str, Any] | None, argnum: int | str
    ) -> dict[str, Any]:
        check_state_options(batch, kwargs, argnum)
        if batch is not None or kwargs is not None:
            batch = (self.__self__, *(batch or ()))
        if not isinstance(argnum, str):
            argnum += 1
        return {"batch": batch, "kwargs": kwargs, "argnum": argnum}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, BoundParallelized):
            return NotImplemented
        return self.__func__ is other.__func__ and self.__self__ is other.__self__

    def __hash__(self) -> int:
        return hash((id(self.__func__), id(self.__self__)))

    def __repr__(self) -> str:
        return f"<bound {self.__func__!r} of {self.__self__!r}>"
