"""What the front doors are given besides methods, checked and as it is meant."""

from __future__ import annotations

import operator
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from stablehlo_alpa.errors import MeshError, OptionError
from stablehlo_alpa.option_checks import (
    checked_instance,
    checked_integer,
    checked_integers,
    checked_sequence,
    checked_text,
)


def chosen_devices(devices: Any) -> tuple[jax.Device, ...]:
    """Devices in the order of the flattened mesh.

    Args:
        devices: one, some, or an array of them, as meshes of jax have it.

    Raises:
        MeshError: there are none, one is no device, or is there twice.
    """
    what = "devices of jax, such as jax.devices()"
    if isinstance(devices, jax.Device):
        return (devices,)
    some = devices.flat if isinstance(devices, np.ndarray) else devices
    found = checked_sequence("devices", some, what, error=MeshError)
    for number, device in enumerate(found):
        checked_instance(
            f"devices[{number}]",
            device,
            jax.Device,
            "a device of jax, such as jax.devices()[0]",
            error=MeshError,
        )
    if not found:
        raise MeshError("devices is empty, a mesh has at least one device")
    twice, times = Counter(found).most_common(1)[0]
    if times > 1:
        raise MeshError(f"devices has {twice} twice, a mesh has every device once")
    return found


def argument_numbers(name: str, given: Any) -> tuple[int, ...] | None:
    """Positions of arguments, from one or some; None where nothing is said.

    Args:
        name: of the option.
        given: for it.

    Raises:
        OptionError: one is no integer.
    """
    if given is None:
        return None
    if isinstance(given, Iterable) and not isinstance(given, str):
        return checked_integers(name, given)
    return (checked_integer(name, given),)


def argument_names(name: str, given: Any) -> tuple[str, ...] | None:
    """Names of arguments, from one or some; see `argument_numbers`."""
    if given is None:
        return None
    some = (given,) if isinstance(given, str) else given
    # In no order: it may be a set.
    if isinstance(some, Mapping | bytes) or not isinstance(some, Iterable):
        raise OptionError(f"{name} must be names of arguments, got {given!r}")
    return tuple(checked_text(f"a name in {name}", one) for one in some)


def batch_numbers(given: Any) -> Any:
    """``batch_argnums`` with numbers of numpy as Python's; all else as it is."""
    if isinstance(given, np.ndarray):
        return given.tolist()
    if isinstance(given, Mapping):
        return {_plain(argument): prefix for argument, prefix in given.items()}
    if isinstance(given, Iterable) and not isinstance(given, str):
        return tuple(map(_plain, given))
    return _plain(given)


def check_state_options(batch: Any, kwargs: Any, argnum: Any) -> None:
    """Refuses what `Parallelized.create_state` cannot put a call together of.

    Raises:
        OptionError: the other positional arguments are no sequence, those by keyword no mapping,
            or the state has neither number nor name.
    """
    if batch is not None and (not isinstance(batch, Sequence) or isinstance(batch, str | bytes)):
        raise OptionError(
            "batch must be a sequence of the other positional arguments, such as (batch,), got "
            f"{batch!r}"
        )
    if kwargs is not None:
        checked_instance("kwargs", kwargs, Mapping, "a mapping from names to arguments")
    if not isinstance(argnum, str):
        checked_integer("argnum", argnum)


def _plain(one: Any) -> Any:
    return operator.index(one) if isinstance(one, np.integer) else one
