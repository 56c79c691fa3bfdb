"""From a step to the modules of its stages."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from stablehlo_alpa.compiler import Module
from stablehlo_alpa.errors import TraceError
from stablehlo_alpa.frontend import TracedProgram
from stablehlo_alpa.store import OFF, Record, Store, digest

_LAYER = re.compile(r"alpa\.layer = (\d+)")


@dataclass(frozen=True)
class Padding:
    """What sizes of products may be padded to.

    Attributes:
        multiple: padded sizes are multiples of it.
        most_added: what may be added to a size, as a part of it.
    """

    multiple: int
    most_added: float


@dataclass(frozen=True)
class StepForm:
    """What is done to a step before it is planned, beside layers and phases.

    Attributes:
        padding: of sizes of a micro-batch; None leaves them as they are.
        attention_keys: attention over that many keys and more becomes one operator; None for none.
    """

    padding: Padding | None = None
    attention_keys: int | None = None

    def __str__(self) -> str:
        options = []
        if self.padding is not None:
            options.append(f"pad-to={self.padding.multiple} most-added={self.padding.most_added}")
        if self.attention_keys is not None:
            options.append(f"attention-keys={self.attention_keys}")
        return " ".join(options)


@dataclass(frozen=True, eq=False)
class LayeredStep:
    """A step with layers and phases.

    Attributes:
        name: of the step.
        num_layers: layers.
        remarks: what the compiler wants known.
        store: keeps what is made of it.
        content: what it was made of, for the store.
        inputs: what the caller calls the arguments; empty where that is not known.
    """

    name: str
    num_layers: int
    remarks: tuple[str, ...]
    _module: Module = field(repr=False)
    store: Store = field(default=OFF, repr=False)
    content: tuple[str, ...] = field(default=(), repr=False)
    inputs: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, module: Module, remarks: Sequence[str] = ()) -> LayeredStep:
        """That of a module whose operators have layers and phases."""
        layers = map(int, _LAYER.findall(module.text(locations=False)))
        return cls(module.name, 1 + max(layers, default=0), tuple(remarks), module)

    def padded_by(self, padding: Padding) -> tuple[str, ...]:
        """What would be padded."""
        option = f"multiple={padding.multiple} most-added={padding.most_added}"
        return self._said_by("padded", f"alpa-pad-dimensions{{{option}}}")

    def outlined_by(self, attention_keys: int) -> tuple[str, ...]:
        """The attention that would be one operator, over that many keys and more."""
        return self._said_by("outlined", f"alpa-outline-attention{{keys={attention_keys}}}")

    def _said_by(self, kind: str, tried: str) -> tuple[str, ...]:
        """The remarks of a pass that is tried."""

        def made() -> Record:
            return {"said": self._module.clone().run(tried)}

        return tuple(self.store.remember(kind, (self.content, tried), made)["said"])

    def slice(
        self, stage_of_layer: tuple[int, ...], last_makes_free: bool = False
    ) -> Mapping[str, Module]:
        """The modules of the stages, ``"stage_0"`` first.

        Args:
            stage_of_layer: per layer its stage, ascending.
            last_makes_free: the last stage makes what any could, instead of the first.
        """
        sliced, option = self._module.clone(), ",".join(map(str, stage_of_layer))
        free = " last-makes-free" if last_makes_free else ""
        sliced.run(f"alpa-slice-stages{{stages={option}{free}}}")
        return sliced.submodules()

    def slice_texts(
        self, stage_of_layer: tuple[int, ...], last_makes_free: bool = False
    ) -> tuple[str, ...]:
        """The modules of the stages as text; see `slice`."""

        def made() -> Record:
            modules = self.slice(stage_of_layer, last_makes_free)
            return {"texts": [one.text() for one in modules.values()]}

        content = (self.content, stage_of_layer, *(("last",) if last_makes_free else ()))
        found = self.store.remember("stages", content, made)
        return tuple(found["texts"])


def mark_layers(
    program: TracedProgram,
    num_micro_batches: int,
    reduction: str = "mean",
    form: StepForm | None = None,
    store: Store = OFF,
    num_updates: int = 1,
) -> LayeredStep:
    """The step with layers and phases.

    Args:
        program: the step, or what it does for one of several updates.
        num_micro_batches: of it.
        reduction: how results of independent micro-batches are joined: ``"mean"``, ``"sum"`` or
            the name of the result that is their weight.
        form: what is done to it besides; None for nothing.
        store: keeps it, and what is made of it.
        num_updates: of a step.

    Raises:
        CompileError: the step cannot be cut so.
        TraceError: no result has the name.
    """
    # One micro-batch per update is all of a part of the batch: nothing is left to cut.
    is_part = program.num_parts > num_updates or (program.num_parts > 1 == num_micro_batches)
    indices = program.batch if is_part else program.declared_batch
    batch = ",".join(str(index) for index in sorted(indices))
    independent = f" independent={_joining(program, reduction)}" if is_part else ""
    marking = (
        f"alpa-layers-pipeline{{{program.state_option} batch={batch} "
        f"micro-batches={num_micro_batches}{independent} {form or ''}}}"
    )
    if store.is_on:
        found = _kept_layers(program, marking, store)
    else:
        module = Module(program.text, program.name)
        found = LayeredStep.of(module, module.run(marking))
    return replace(found, inputs=tuple(value.name for value in program.inputs))


def _kept_layers(program: TracedProgram, marking: str, store: Store) -> LayeredStep:
    """The step with layers and phases, as it was made before or is made now."""
    parsed: list[Module] = []

    def made() -> Record:
        module = Module(program.text, program.name)
        found = LayeredStep.of(module, module.run(marking))
        parsed.append(module)
        text = {"text": module.text(), "layers": found.num_layers}
        return text | {"remarks": list(found.remarks)}

    content = digest(program.text, marking)
    found = store.remember("layers", (content,), made)
    module = parsed[0] if parsed else Module.kept(found["text"], program.name)
    remarks, count = tuple(found["remarks"]), int(found["layers"])
    return LayeredStep(program.name, count, remarks, module, store, (content, program.name))


def _joining(program: TracedProgram, reduction: str) -> str:
    """As the compiler takes it."""
    if reduction in ("mean", "sum"):
        return reduction
    names = [value.name for value in program.outputs]
    if reduction not in names:
        raise TraceError(
            f'reduction is {reduction!r}, must be "mean", "sum" or the name of the result of '
            f"{program.name} that is the weight of a micro-batch: "
            + ", ".join(names[:8])
            + (", ..." if len(names) > 8 else "")
        )
    return str(names.index(reduction))
