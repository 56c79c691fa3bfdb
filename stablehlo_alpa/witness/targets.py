"""Devices that XLA compiles for although they are not there."""

from __future__ import annotations

import contextlib
import importlib.metadata
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import resources
from types import MappingProxyType
from typing import Any

from stablehlo_alpa.errors import MeshError, WitnessError


@dataclass(frozen=True)
class Target:
    """A kind of device with a compiler of XLA.

    Attributes:
        name: what users call it.
        platform: as jax calls it.
        packages: distributions that hold the compiler; any of several sets.
        extra: of this package, which installs them.
        environment: variables that the compiler reads before it is loaded.
        topology: takes a number of devices, returns the arguments by which
            ``jax.experimental.topologies`` describes that many.
        clock_hz: cycles per second of what its compiler counts in cycles; 0 where it does not.
        untuned_options: options under which its compiler takes what it otherwise refuses for want
            of a device to try its choices on; in the order in which they are tried.
    """

    name: str
    platform: str
    packages: tuple[tuple[str, ...], ...]
    extra: str
    environment: Mapping[str, str] = field(hash=False)
    topology: Callable[[int], dict[str, Any]] = field(repr=False)
    clock_hz: float = 0.0
    untuned_options: tuple[Mapping[str, Any], ...] = field(default=(), hash=False)

    @property
    def versions(self) -> tuple[str, ...]:
        """The packages that make its programs, with their versions.

        Raises:
            WitnessError: one is not installed.
        """
        for packages in self.packages:
            with contextlib.suppress(importlib.metadata.PackageNotFoundError):
                return tuple(
                    f"{name}=={importlib.metadata.version(name)}"
                    for name in ("jax", "jaxlib", *packages)
                )
        missing = " or ".join(" and ".join(packages) for packages in self.packages)
        raise WitnessError(
            f"XLA's compiler for {self.name} is not installed ({missing}): "
            f"pip install 'stablehlo_alpa[{self.extra}]'"
        )

    def devices(self, count: int) -> list[Any]:
        """Devices on paper, in the process that compiles; see ``compiling``.

        Args:
            count: how many.

        Raises:
            MeshError: they cannot be connected so.
        """
        from alpa_runtime.torus_order import in_torus_order
        from jax.experimental import topologies

        described = topologies.get_topology_desc(platform=self.platform, **self.topology(count))
        return list(in_torus_order(described.devices))


def target_named(name: str) -> Target:
    """A target by name.

    Raises:
        WitnessError: there is no such target.
    """
    if name not in TARGETS:
        raise WitnessError(f"target is {name!r}, must be one of {', '.join(TARGETS)}")
    return TARGETS[name]


# Of a DGX H100, and of every preset of this device.
_GPUS_PER_HOST = 8
# A v5p host has four chips, 2x2x1 of the torus (Google Cloud's "TPU v5p" page).
_TPU_HOST = (2, 2, 1)


def _h100(count: int) -> dict[str, Any]:
    hosts, rest = divmod(count, _GPUS_PER_HOST)
    if hosts and rest:
        raise MeshError(
            f"{count} GPUs do not fill hosts of {_GPUS_PER_HOST}: take fewer or a multiple"
        )
    description = resources.files(__package__).joinpath("h100_sxm.txtpb").read_text("utf-8")
    shape = (1, hosts, _GPUS_PER_HOST) if hosts else (1, 1, count)
    return {
        "topology_name": "h100",
        "topology": "x".join(map(str, shape)),  # slices, hosts, devices of each
        "target_config": description,
    }


def _v5p(count: int) -> dict[str, Any]:
    if count < math.prod(_TPU_HOST):
        # A part of a host.
        shape = (1, count, 1)
        if count not in (1, 2):
            raise MeshError(f"{count} chips are no box of a host's {_box(_TPU_HOST)}")
        return {"topology_name": f"v5:{_box(shape)}", "chips_per_host_bounds": shape}
    return {"topology_name": f"v5:{_box(_torus(count))}"}


def _torus(count: int) -> tuple[int, int, int]:
    """The most cubic box of whole hosts.

    Raises:
        MeshError: there is none.
    """
    boxes = [
        (x, y, count // (x * y))
        for x in range(_TPU_HOST[0], count + 1, _TPU_HOST[0])
        for y in range(x, count // x + 1, _TPU_HOST[1])
        if count % (x * y) == 0
    ]
    if not boxes:
        raise MeshError(f"{count} chips do not fill hosts of {_box(_TPU_HOST)}")
    return min(boxes, key=lambda box: (max(box) - min(box), box))


def _box(shape: tuple[int, ...]) -> str:
    return "x".join(map(str, shape))


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        target.name: target
        for target in (
            Target(
                "h100",
                "cuda",
                tuple((f"jax-cuda{v}-pjrt", f"jax-cuda{v}-plugin") for v in (12, 13)),
                "cuda-check",
                {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1"},
                _h100,
                # On a device the autotuner drops kernels of Triton that do not compile. Without one
                # XLA takes a default tile, and refuses products whose operands have none such.
                untuned_options=({"xla_gpu_enable_triton_gemm": False},),
            ),
            Target(
                "tpu-v5p",
                "tpu",
                (("libtpu",),),
                "tpu-check",
                {
                    "ALLOW_MULTIPLE_LIBTPU_LOAD": "1",
                    "TPU_SKIP_MDS_QUERY": "1",
                    "TPU_ACCELERATOR_TYPE": "v5p-8",
                    "TPU_WORKER_HOSTNAMES": "localhost",
                },
                _v5p,
                # 459 TFLOP/s of eight units of 128 x 128.
                1.75e9,
            ),
        )
    }
)
"""By name."""
