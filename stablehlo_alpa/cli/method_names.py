"""Methods by the name that the command line has for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from stablehlo_alpa.api.methods import (
    DataParallel,
    ExpertParallel,
    MegatronParallel,
    Method,
    PipeshardParallel,
    ShardParallel,
    Zero2Parallel,
    Zero3Parallel,
)
from stablehlo_alpa.cli.usage import UsageError
from stablehlo_alpa.cluster import Cluster
from stablehlo_alpa.inter_op import OwnSchedule, pipedream, pipedream_2bw
from stablehlo_alpa.layers import AutoLayers
from stablehlo_alpa.nearest import nearest
from stablehlo_alpa.planning.ordering import ScheduleKind, schedule_kind

# Layers that a pipeline is cut into unless --layers says (heuristic: the search is quadratic in
# them, and the paper has 8 or 16).
DEFAULT_LAYERS = 16


@dataclass(frozen=True)
class MethodOptions:
    """What all methods are made with.

    Attributes:
        cluster: what is planned for.
        mesh_shape: of methods of one mesh; None leaves it to them.
        memory_budget: per device, bytes or text; None for the device's.
        num_micro_batches: of a step; None searches.
        independent: micro-batches have statistics of their own.
        layers: that a pipeline is cut into; None for no more than 16.
        depth: layers that the model has.
        schedule: of a pipeline; None searches.
        recomputed: the model computes its blocks again, so that its layers need not be.
    """

    cluster: Cluster
    mesh_shape: tuple[int, ...] | None = None
    memory_budget: str | None = None
    num_micro_batches: int | None = None
    independent: bool = False
    layers: int | None = None
    depth: int = DEFAULT_LAYERS
    schedule: str | None = None
    recomputed: bool = False

    @property
    def shared(self) -> Mapping[str, Any]:
        """Attributes of every method."""
        count = self.num_micro_batches
        joined = {"micro_batches": "independent"} if self.independent and (count or 1) > 1 else {}
        return {"memory_budget": self.memory_budget, "num_micro_batches": count, **joined}

    @property
    def num_layers(self) -> int:
        """That a pipeline is cut into."""
        return min(DEFAULT_LAYERS, self.depth) if self.layers is None else self.layers

    @property
    def of_one_mesh(self) -> Mapping[str, Any]:
        """Attributes of methods that take a mesh."""
        return {**self.shared, "mesh_shape": self.mesh_shape}


@dataclass(frozen=True)
class Written:
    """What stands behind the name of a method.

    Attributes:
        sizes: behind a colon, ``8x2x8``.
        further: attributes that are named behind a plus, ``sequence``, or ``interleave=2``.
    """

    sizes: tuple[int, ...]
    further: Mapping[str, Any]


MEGATRON: Mapping[str, Mapping[str, Any]] = MappingProxyType(
    {
        "sequence": {"sequence_parallel": True},
        "zero1": {"zero_1": True},
        "selective": {"recompute": "selective"},
        "full": {"recompute": "full"},
    }
)
"""What may stand behind a plus, by name, beside ``interleave=`` a number."""

_FURTHER: Mapping[str, Mapping[str, Mapping[str, Any]]] = MappingProxyType(
    {"megatron": MEGATRON, "expert": {"zero1": {"zero": 1}, "zero3": {"zero": 3}}}
)


def _megatron(options: MethodOptions, written: Written) -> Method:
    """Tensor parallel inside of a host unless sizes say tensor, data and pipeline."""
    sizes, further = written.sizes, written.further
    host = min(part.devices_per_host for part in options.cluster.parts)
    tensor, data, pipeline = sizes or (host, None, 1)
    stages = pipeline * further.get("interleave", 1)
    if pipeline > 1 and options.layers is not None and options.layers < stages:
        raise UsageError(
            f"--layers is {options.layers}, must be at least the {stages} stages of megatron:"
            f"{'x'.join(map(str, sizes))}"
        )
    layers = AutoLayers(num_layers=max(options.num_layers, stages)) if pipeline > 1 else None
    return MegatronParallel(
        tensor=tensor, data=data, pipeline=pipeline, layers=layers, **further, **options.shared
    )


def _further(kind: str, texts: Sequence[str]) -> dict[str, Any]:
    """Attributes of a method that are named behind a plus."""
    if texts and kind not in _FURTHER:
        raise UsageError(f"method {kind} takes no options behind a plus, got {texts[0]!r}")
    known, found = _FURTHER.get(kind, {}), dict[str, Any]()
    counted = ["interleave"] if kind == "megatron" else []
    for text in texts:
        name, _, count = text.partition("=")
        if name in counted and count.isdecimal() and int(count):
            found[name] = int(count)
        elif text in known:
            found |= known[text]
        else:
            shown = f"+{', +'.join(known)}" + "".join(f" and +{one}=2" for one in counted)
            raise UsageError(
                f"{kind} takes {shown}, got +{text}{nearest(name, [*known, *counted])}"
            )
    return found


def _pipeline(options: MethodOptions, _: Written) -> Method:
    layers = AutoLayers(
        num_layers=options.num_layers, remat=False if options.recomputed else "search"
    )
    schedule = None if options.schedule is None else parse_schedule(options.schedule)
    return PipeshardParallel(layers=layers, schedule=schedule, **options.shared)


def parse_schedule(text: str) -> ScheduleKind:
    """A schedule by its name; those without a flush have micro-batches per update behind a colon.

    Raises:
        UsageError: the number is none, or missing.
    """
    name, colon, count = text.partition(":")
    make = _WITHOUT_FLUSH.get(name)
    if make is None:
        return schedule_kind(text)
    if not (count.isdecimal() and int(count)) and (colon or name != "pipedream"):
        raise UsageError(
            f"schedule {text} takes micro-batches per update behind a colon, such as {name}:4"
        )
    return make(int(count or 1))


_WITHOUT_FLUSH: Mapping[str, Callable[[int], OwnSchedule]] = MappingProxyType(
    {"pipedream": pipedream, "pipedream_2bw": pipedream_2bw}
)

Maker = Callable[[MethodOptions, Written], Method]

METHODS: Mapping[str, Maker] = MappingProxyType(
    {
        "shard": lambda options, _: ShardParallel(**options.of_one_mesh),
        "pipeshard": _pipeline,
        "data": lambda options, _: DataParallel(**options.of_one_mesh),
        "zero2": lambda options, _: Zero2Parallel(**options.of_one_mesh),
        "zero3": lambda options, _: Zero3Parallel(**options.of_one_mesh),
        "megatron": _megatron,
        "expert": lambda options, written: ExpertParallel(**written.further, **options.shared),
    }
)


def parse_method(name: str) -> tuple[Maker, Written]:
    """What makes a method, and what is said of it: ``"zero3"``, ``"megatron:8x2x8+sequence"``.

    Raises:
        UsageError: there is no such method, or it takes no such sizes or options.
    """
    named, *further = name.lower().split("+")
    kind, colon, rest = named.partition(":")
    if kind not in METHODS:
        raise UsageError(
            f"no method {kind!r}{nearest(kind, METHODS)}, methods are {', '.join(METHODS)}"
        )
    sizes = _sizes(kind, rest) if colon else ()
    return METHODS[kind], Written(sizes, _further(kind, further))


def _sizes(kind: str, text: str) -> tuple[int, ...]:
    """What stands behind the colon of a method."""
    if kind != "megatron":
        raise UsageError(f"method {kind} takes no sizes, got {text!r}")
    sizes = text.split("x")
    if len(sizes) != 3 or not all(size.isdecimal() and int(size) for size in sizes):
        raise UsageError(
            f"megatron takes tensor, data and pipeline, such as megatron:8x2x8, got {text!r}"
        )
    return tuple(map(int, sizes))


def cuts_layers(name: str) -> bool:
    """Whether a method makes stages of layers, so that options of layers say something of it.

    Raises:
        UsageError: there is no such method.
    """
    make, written = parse_method(name)
    return make is _pipeline or (make is _megatron and written.sizes[-1:] > (1,))


def default_method(cluster: Cluster) -> str:
    """A pipeline where the network is between devices, the search for one mesh elsewhere."""
    is_split = cluster.num_devices > cluster.parts[0].devices_per_domain
    return "pipeshard" if is_split else "shard"
