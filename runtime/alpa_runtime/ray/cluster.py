"""The Ray cluster that a plan runs on."""

from __future__ import annotations

import dataclasses
import os
import threading
import warnings
import weakref
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol, TypeVar

import ray

from alpa_runtime.allocator import memory_limit
from alpa_runtime.errors import RuntimeMeshError
from alpa_runtime.transport import LINKS

OWN_VARIABLES = frozenset({"JAX_PLATFORMS", "PJRT_NPROC"})
"""Environment variables that are set for every process on CPU."""

DEVICE_COUNT_FLAG = "--xla_force_host_platform_device_count"
"""Of ``XLA_FLAGS``: how many devices a process on CPU has."""


@dataclasses.dataclass(frozen=True)
class RayCluster:
    """Devices that Ray hands out.

    Attributes:
        address: of a running cluster, ``"auto"`` for the one of this machine; None starts Ray here
            when it is not running yet.
        num_hosts: hosts to use; by default all nodes that have enough devices (on CPU, those that
            Ray may use a CPU of).
        devices_per_host: devices of each; by default the GPUs of a node, or on CPU as many as
            this process sees.
        platform: ``"cpu"`` or ``"gpu"``; by default ``"gpu"`` when the cluster has some.
        bind: address at which the processes of a host listen for others. The default reaches no
            further than the machine; ``"node"`` is the address by which Ray knows each host.
        transport: between processes: ``"tcp"``, ``"jax"`` (``jax.experimental.transfer``),
            ``"nccl"`` (between GPUs, with nccl4py), or ``"auto"``, which is TCP between CPU devices
            and otherwise NCCL where it is installed, else jax's.
        deadline_s: seconds that a step, or the beginning of a checkpoint, may take before the
            cluster counts as stuck. The first of each gets ``compile_deadline_s`` more.
        on_failure: ``"raise"``, or ``"restart"``: lost processes are replaced by new ones, which
            start from the last snapshot and do again what was done since. Needs
            ``snapshot_folder``, and keeps the batches since the last snapshot in Ray's object
            store.
        snapshot_folder: where snapshots are written; every host has to see it.
        snapshot_steps: a snapshot is begun every so many steps.
        max_restarts: in a row, without a snapshot in between.
        compile_deadline_s: seconds in which all programs have to be compiled.
        runtime_env: of the processes, as Ray takes it (``working_dir``, ``pip``, ``env_vars`` ...).
            Variables that say which devices a process has are added; ``XLA_FLAGS`` are those of the
            driver where none are given.
    """

    address: str | None = None
    num_hosts: int | None = None
    devices_per_host: int | None = None
    platform: str | None = None
    bind: str = "127.0.0.1"
    transport: str = "auto"
    deadline_s: float = 300.0
    on_failure: str = "raise"
    snapshot_folder: str = ""
    snapshot_steps: int = 100
    max_restarts: int = 3
    compile_deadline_s: float = 1800.0
    runtime_env: Mapping[str, Any] = dataclasses.field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        if self.on_failure not in ("raise", "restart"):
            raise RuntimeMeshError(f"on_failure must be raise or restart, got {self.on_failure!r}")
        if self.on_failure == "restart" and not self.snapshot_folder:
            raise RuntimeMeshError(
                "on_failure='restart' needs snapshot_folder, where snapshots are kept"
            )
        for name in ("num_hosts", "devices_per_host", "snapshot_steps", "max_restarts"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise RuntimeMeshError(f"{name} must be >= 1, got {value}")
        if self.transport not in ("auto", *LINKS):
            raise RuntimeMeshError(
                f"transport must be one of auto, {', '.join(LINKS)}, got {self.transport!r}"
            )
        if self.platform not in (None, "cpu", "gpu"):
            raise RuntimeMeshError(f"platform must be cpu or gpu, got {self.platform!r}")
        variables = self.runtime_env.get("env_vars", {})
        taken = sorted(OWN_VARIABLES & set(variables))
        if DEVICE_COUNT_FLAG in variables.get("XLA_FLAGS", ""):
            taken.append(DEVICE_COUNT_FLAG)
        if taken:
            raise RuntimeMeshError(
                f"runtime_env sets {', '.join(taken)}, by which processes are given their devices"
            )
        for name in ("deadline_s", "compile_deadline_s"):
            if not getattr(self, name) > 0:
                raise RuntimeMeshError(f"{name} must be > 0 seconds, got {getattr(self, name)}")


@dataclasses.dataclass(frozen=True)
class Hosts:
    """What a cluster turned out to have.

    Attributes:
        num_hosts, devices_per_host, platform: as in `RayCluster`.
        nodes: per host the address by which Ray knows it; empty where hosts share a node.
    """

    num_hosts: int
    devices_per_host: int
    platform: str
    nodes: tuple[str, ...] = ()


def device_kind(hosts: Hosts) -> tuple[str, int | None]:
    """What jax calls the devices of a cluster, and `memory_limit` of one."""
    if hosts.platform == "cpu":
        return "cpu", None

    def ask() -> tuple[str, int | None]:
        import jax

        device = jax.devices()[0]
        return str(device.device_kind), memory_limit(device)

    found: tuple[str, int | None] = ray.get(ray.remote(num_gpus=1)(ask).remote())
    return found


class _Session(Protocol):
    @property
    def is_over(self) -> bool: ...

    def close(self) -> None: ...


# Ray's connection is one for the process, and so is what is known of it. A session lives as long as
# something that runs on it, or is kept there.
_lock = threading.Lock()
_sessions: weakref.WeakValueDictionary[Any, Any] = weakref.WeakValueDictionary()
_has_started_ray = False


def init(cluster: RayCluster = RayCluster()) -> None:
    """Connects to Ray, or starts it; what is connected already is used as it is."""
    global _has_started_ray
    with _lock:
        if ray.is_initialized():
            return
        options: dict[str, Any] = {"log_to_driver": False}
        if cluster.address is None:
            # Virtual devices need processes, not cores: an actor waits most of the time.
            options |= {
                "address": "local",
                "include_dashboard": False,
                "num_cpus": max(64, os.cpu_count() or 1),
            }
        else:
            options["address"] = cluster.address
        with warnings.catch_warnings():
            # Ray forks to start its daemons and executes them at once: no lock of jax is touched.
            warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)
            ray.init(**options)
        _has_started_ray = True


def shutdown() -> None:
    """Ends every process that plans run in, and Ray if `init` has started or joined it."""
    global _has_started_ray
    for session in list(_sessions.values()):
        session.close()
    with _lock:
        if _has_started_ray and ray.is_initialized():
            ray.shutdown()
        _has_started_ray = False


Session = TypeVar("Session", bound=_Session)


def shared_session(cluster: RayCluster, hosts: Hosts, make: Callable[[], Session]) -> Session:
    """The session of a cluster, which `shutdown` closes.

    Args:
        cluster: equal ones share a session.
        hosts: what it has.
        make: makes a session where there is none, or it is over.
    """
    with _lock:
        session = _sessions.get((cluster, hosts))
        if session is None or session.is_over:
            session = _sessions[cluster, hosts] = make()
        return session


def alive_nodes() -> list[Mapping[str, Any]]:
    """What Ray says of the nodes that it has."""
    return [node for node in ray.nodes() if node["Alive"]]


def addresses_of(nodes: Iterable[Mapping[str, Any]]) -> list[str]:
    """By which Ray knows nodes, in order."""
    return sorted(str(node["NodeManagerAddress"]) for node in nodes)


def able_nodes(nodes: Iterable[Mapping[str, Any]], platform: str, devices: int) -> list[str]:
    """Addresses of the nodes that can be a host with so many devices, in order."""
    # A head node often has no CPU (`ray start --head --num-cpus=0`): no process fits there.
    kind, count = ("CPU", 1) if platform == "cpu" else ("GPU", max(1, devices))
    return addresses_of(node for node in nodes if node["Resources"].get(kind, 0) >= count)


def find_hosts(cluster: RayCluster, local_devices: int) -> Hosts:
    """Looks at what Ray has; where a session is running, at what it had when that began.

    Args:
        cluster: what is wanted.
        local_devices: CPU devices that this process sees, virtual ones included.

    Raises:
        RuntimeMeshError: there are not as many hosts, or devices on them.
    """
    init(cluster)
    with _lock:
        for (known, hosts), session in _sessions.items():
            devices = cluster.devices_per_host or local_devices
            is_alike = hosts.platform == "gpu" or hosts.devices_per_host == devices
            if known == cluster and is_alike and not session.is_over:
                return hosts
    nodes = alive_nodes()
    gpus = [int(node["Resources"].get("GPU", 0)) for node in nodes]
    platform = cluster.platform or ("gpu" if any(gpus) else "cpu")
    if platform == "cpu":
        devices = cluster.devices_per_host or local_devices
        addresses = able_nodes(nodes, platform, devices)
        if not addresses:
            cpus = [node["Resources"].get("CPU", 0) for node in nodes]
            raise RuntimeMeshError(f"a node with a CPU is wanted, Ray has nodes with {cpus} CPUs")
        count = cluster.num_hosts or len(addresses)
        # More hosts than nodes: virtual ones, wherever there is room.
        is_virtual = count > len(addresses)
        return Hosts(count, devices, platform, () if is_virtual else tuple(addresses[:count]))
    devices = cluster.devices_per_host or max(gpus)
    able = able_nodes(nodes, platform, devices)
    hosts = cluster.num_hosts or len(able)
    if not 0 < hosts <= len(able):
        raise RuntimeMeshError(
            f"{hosts} hosts with {devices} GPUs are wanted, Ray has nodes with {gpus} GPUs"
        )
    return Hosts(hosts, devices, platform, tuple(able[:hosts]))
