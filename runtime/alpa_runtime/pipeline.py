"""Runs a pipeline plan in one process, on submeshes of its devices."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding

from alpa_runtime.cpu_pool import require_cpu_pool
from alpa_runtime.errors import InputError, RuntimeMeshError
from alpa_runtime.executable import Executable
from alpa_runtime.order import issue_order
from alpa_runtime.plan import Free, Instruction, PipelinePlan, PlanInput, Recv, Run, Send
from alpa_runtime.program import ValueSpec, numpy_dtype
from alpa_runtime.resharding import Resharding
from alpa_runtime.tracing import Event, Tracer, write_trace
from alpa_runtime.transfer import Lander, Packer

# Launches of a mesh that may be in flight. XLA's CPU client lets 32 be and can deadlock when more
# wait (measured: 24 pass, 40 abort).
IN_FLIGHT = 24

# Of a transfer: its resharding, the source, what is sent or filled, the target.
_TransferKey: TypeAlias = tuple[int, int, int, int]


@dataclasses.dataclass(frozen=True)
class RuntimeOptions:
    """How a plan is run.

    Attributes:
        trace: whether every call is timed and written to ``trace_path``. The call then waits for
            its results, and intermediate buffers are not donated.
        trace_path: a file that Perfetto reads; the last call's trace replaces earlier ones.
    """

    trace: bool = False
    trace_path: str = "alpa_trace.json"


class PipelineExecutable:
    """A plan on its devices. Call it with one array per flat input, in order.

    Making one raises ``RuntimeMeshError`` when there are not as many devices as the plan is for, or
    when they are virtual CPU devices of a client on which programs of several meshes can deadlock.

    Attributes:
        plan: what is run.
        meshes: the submeshes.
        in_shardings: per flat input the sharding on the mesh that keeps it.
        out_shardings: per flat output.
        events: of the last call, when it was traced.
    """

    def __init__(
        self,
        plan: PipelinePlan,
        devices: Sequence[jax.Device],
        options: RuntimeOptions = RuntimeOptions(),
    ):
        if len(devices) != plan.num_devices:
            raise RuntimeMeshError(
                f"{plan.name} runs on {plan.num_devices} devices, got {len(devices)}"
            )
        if devices[0].platform == "cpu" and any(len(mesh.devices) > 1 for mesh in plan.meshes):
            require_cpu_pool(len(jax.devices("cpu")))
        self.plan = plan
        self.options = options
        self.events: list[Event] = []
        self.meshes = tuple(_mesh(mesh.axes, mesh.devices, devices) for mesh in plan.meshes)
        self._shardings = tuple(
            tuple(
                NamedSharding(mesh, plan.values[value].logical_spec)
                for value in plan.buffers[index]
            )
            for index, mesh in enumerate(self.meshes)
        )
        self.in_shardings = tuple(self._input_sharding(value) for value in plan.inputs)
        self.out_shardings = tuple(self._shardings[o.mesh][o.buffer] for o in plan.outputs)
        self._executables: list[dict[int, Executable]] = [{} for _ in plan.meshes]
        self._moves: dict[_TransferKey, Callable[[jax.Array], Any]] = {}
        self._lands: dict[_TransferKey, Callable[[Any], jax.Array]] = {}
        # Per transfer the buffer that it fills.
        self._filled = {
            instruction.transfer: instruction.buffer
            for own in plan.instructions
            for instruction in own
            if isinstance(instruction, Recv)
        }
        self._order = [
            (mesh, instruction, self._prepare(mesh, instruction))
            for mesh, position in issue_order(plan.instructions)
            for instruction in (plan.instructions[mesh][position],)
        ]
        self._avals = [_aval(value) for value in plan.inputs]
        self._splitters: dict[int, Any] = {}

    def compile(self) -> None:
        """Compiles all programs now; the first call does so otherwise."""
        for executables in self._executables:
            for executable in executables.values():
                executable.compile()

    def __call__(self, *args: Any) -> tuple[jax.Array, ...]:
        """Runs a step.

        Args:
            *args: one array-like per flat input; a batch whole.

        Returns:
            one global array per flat output, each on the mesh that makes it.

        Raises:
            InputError: count, shape or dtype of the arguments is wrong, or one was donated before.
        """
        self._check(args)
        buffers: list[dict[int, Any]] = [{} for _ in self.meshes]
        for index, arg in enumerate(args):
            self._place(index, arg, buffers)
        in_flight: list[deque[Any]] = [deque() for _ in self.meshes]
        sent: dict[int, Any] = {}
        tracer = Tracer(len(self.meshes)) if self.options.trace else None
        for mesh, instruction, perform in self._order:
            own = buffers[mesh]
            match instruction:
                case Run(_, inputs, outputs, label):
                    results = perform(*[own[i] for i in inputs])
                    own.update(zip(outputs, results, strict=True))
                    if results:
                        self._wait(in_flight[mesh], results)
                    if tracer:
                        tracer.note(mesh, label, results)
                case Send(buffer, _, transfer, _):
                    sent[transfer] = perform(own[buffer])
                case Recv(buffer, _, transfer, _):
                    own[buffer] = perform(sent.pop(transfer))
                case Free(freed):
                    for buffer in freed:
                        del own[buffer]
        if tracer:
            self.events = tracer.finish()
            write_trace(self.events, self.options.trace_path)
        return tuple(buffers[o.mesh][o.buffer] for o in self.plan.outputs)

    def _prepare(self, mesh: int, instruction: Instruction) -> Any:
        """What performs an instruction."""
        plan = self.plan
        match instruction:
            case Run(number):
                if number not in self._executables[mesh]:
                    program = plan.programs[number]
                    if self.options.trace:
                        program = dataclasses.replace(program, donated=())
                    self._executables[mesh][number] = Executable(program, self.meshes[mesh])
                return self._executables[mesh][number]
            case Send(buffer, target, transfer, number):
                filled = self._filled[transfer]
                key = (number, mesh, plan.buffers[mesh][buffer], target)
                if key not in self._moves:
                    self._moves[key] = self._move(key, self._shardings[target][filled])
                return self._moves[key]
            case Recv(buffer, source, _, number):
                key = (number, source, plan.buffers[mesh][buffer], mesh)
                if key not in self._lands:
                    self._lands[key] = self._land(key, self._shardings[mesh][buffer])
                return self._lands[key]
        return None

    def _move(self, key: _TransferKey, arriving: NamedSharding) -> Callable[[jax.Array], Any]:
        """Copies what is sent at once: the sender may give its buffer away behind the send."""
        number, source, value, target = key
        resharding = self.plan.reshardings[number]
        shape = self.plan.values[value].local_shape(self.plan.sizes(source))
        if self._keeps_shards(resharding, shape, source, target):
            return lambda array: jax.device_put(array, arriving)
        pack = Packer(resharding, shape)
        devices = list(self.meshes[target].devices.flat)
        receivers = [devices[piece.target] for piece in resharding.pieces]
        return lambda array: jax.device_put(pack(array), receivers)

    def _land(self, key: _TransferKey, sharding: NamedSharding) -> Callable[[Any], jax.Array]:
        number, source, index, target = key
        resharding, value = self.plan.reshardings[number], self.plan.values[index]
        shape = value.local_shape(self.plan.sizes(target))
        if self._keeps_shards(resharding, shape, source, target):
            return lambda array: array
        return Lander(resharding, value.shape, value.dtype, sharding)

    def _keeps_shards(
        self, resharding: Resharding, shape: tuple[int, ...], source: int, target: int
    ) -> bool:
        size = self.meshes[source].size
        return self.meshes[target].size == size and resharding.keeps_shards(shape, size)

    @staticmethod
    def _wait(queue: deque[Any], results: Sequence[Any]) -> None:
        """Lets only so many launches of a mesh be in flight."""
        queue.append(results[-1])
        if len(queue) >= IN_FLIGHT:
            oldest = queue.popleft()
            if not oldest.is_deleted():
                oldest.block_until_ready()

    def _place(self, index: int, arg: Any, buffers: list[dict[int, Any]]) -> None:
        """Puts an input on the meshes that need it."""
        for placement in self.plan.inputs[index].placements:
            shardings = self._shardings[placement.mesh]
            if not self.plan.inputs[index].is_batch:
                (buffer,) = placement.buffers
                buffers[placement.mesh][buffer] = _put(arg, shardings[buffer])
                continue
            parts = self._split(index, arg)
            for buffer, part in zip(placement.buffers, parts, strict=True):
                buffers[placement.mesh][buffer] = _put(part, shardings[buffer])

    def _split(self, index: int, arg: Any) -> Sequence[Any]:
        """The micro-batches of a batch."""
        count = self.plan.num_micro_batches
        if count == 1:
            return [arg]
        if not isinstance(arg, jax.Array):
            return np.split(np.asarray(arg), count)
        if index not in self._splitters:
            self._splitters[index] = jax.jit(lambda x: jax.numpy.split(x, count))
        parts: Sequence[Any] = self._splitters[index](arg)
        return parts

    def _input_sharding(self, value: PlanInput) -> NamedSharding:
        if not value.placements:
            return NamedSharding(self.meshes[0], jax.sharding.PartitionSpec())
        first = value.placements[0]
        return self._shardings[first.mesh][first.buffers[0]]

    def _check(self, args: Sequence[Any]) -> None:
        if len(args) != len(self._avals):
            raise InputError(f"{self.plan.name} takes {len(self._avals)} arrays, got {len(args)}")
        for arg, aval, value in zip(args, self._avals, self.plan.inputs, strict=True):
            name = value.value.name or "an input"
            found = jax.typeof(arg)
            if found.shape != aval.shape or found.dtype != aval.dtype:
                raise InputError(
                    f"{name} of {self.plan.name} is {aval.dtype}{list(aval.shape)}, "
                    f"got {found.dtype}{list(found.shape)}"
                )
            if isinstance(arg, jax.Array) and arg.is_deleted():
                raise InputError(
                    f"{name} of {self.plan.name} was deleted: an earlier call that donates it has "
                    "taken its buffers; pass what that call returned"
                )


def _put(array: Any, sharding: NamedSharding) -> jax.Array:
    """An array on a mesh, itself if it is there already."""
    if isinstance(array, jax.Array) and array.sharding == sharding:
        return array
    return jax.device_put(array, sharding)


def _mesh(
    axes: tuple[tuple[str, int], ...], positions: Sequence[int], devices: Sequence[jax.Device]
) -> Mesh:
    # np.array would try to iterate over the devices.
    flat = np.empty(len(positions), dtype=object)
    flat[:] = [devices[position] for position in positions]
    return Mesh(flat.reshape([size for _, size in axes]), [name for name, _ in axes])


def _aval(value: PlanInput) -> jax.ShapeDtypeStruct:
    spec: ValueSpec = value.value
    if spec.key_impl is None:
        return jax.ShapeDtypeStruct(spec.shape, numpy_dtype(spec.dtype))
    key = jax.eval_shape(lambda: jax.random.key(0, impl=spec.key_impl))
    return jax.ShapeDtypeStruct(spec.logical_shape, key.dtype)
