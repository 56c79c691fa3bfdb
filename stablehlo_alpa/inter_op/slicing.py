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


class CutStages:
    """The stages of a step for one assignment of its layers, each printed and merged once.

    Where there are several, each is merged in a context of its own: modules of one context, as
    those that were cut out of one, take turns.
    """

    def __init__(
        self, name: str, modules: Sequence[Module] = (), texts: Sequence[str] = ()
    ) -> None:
        """Takes the stages in order.

        Args:
            name: of the step, for errors.
            modules: as they were cut, in one context.
            texts: the same; one of both will do.
        """
        self._name, self.modules = name, tuple(modules)
        self._texts, self._merged = dict(enumerate(texts)), dict[int, Module]()
        self._count = max(len(modules), len(texts))

    def texts(self) -> tuple[str, ...]:
        """The modules as they were cut."""
        return tuple(map(self._text, range(self._count)))

    def merged(self, number: int) -> Module:
        """A stage with its operators merged, to be read and not to be changed."""
        if number not in self._merged:
            if self._count == len(self.modules) == 1:
                module = self.modules[0].clone()
            else:
                module = Module(self._text(number), f"{self._name} stage {number}")
            merge(module)
            self._merged[number] = module
        return self._merged[number]

    def _text(self, number: int) -> str:
        if number not in self._texts:
            self._texts[number] = self.modules[number].text()
        return self._texts[number]


def merge(stage: Module) -> None:
    """Merges operators of a stage, in place."""
    stage.run("alpa-stage-pipeline")


@dataclass(frozen=True, eq=False)
class LayeredStep:
    """A step with layers and phases.

    Attributes:
        name: of the step.
        num_layers: layers.
        remarks: what the compiler wants known.
        module: it, to be read and not to be changed.
        store: keeps what is made of it.
        content: what it was made of, for the store.
        inputs: what the caller calls the arguments; empty where that is not known.
        is_uncut: whether jax takes its gradients, and it is one layer.
    """

    name: str
    num_layers: int
    remarks: tuple[str, ...]
    module: Module = field(repr=False)
    store: Store = field(default=OFF, repr=False)
    content: tuple[str, ...] = field(default=(), repr=False)
    inputs: tuple[str, ...] = field(default=(), repr=False)
    is_uncut: bool = False
    # The last, with what it was asked for by.
    _cuts: dict[tuple[tuple[int, ...], bool], CutStages] = field(default_factory=dict, repr=False)

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
            return {"said": self.module.clone().run(tried)}

        return tuple(self.store.remember(kind, (self.content, tried), made)["said"])

    def slice(
        self, stage_of_layer: tuple[int, ...], last_makes_free: bool = False
    ) -> Mapping[str, Module]:
        """The modules of the stages, ``"stage_0"`` first.

        Args:
            stage_of_layer: per layer its stage, ascending.
            last_makes_free: the last stage makes what any could, instead of the first.
        """
        sliced, option = self.module.clone(), ",".join(map(str, stage_of_layer))
        free = " last-makes-free" if last_makes_free else ""
        sliced.run(f"alpa-slice-stages{{stages={option}{free}}}")
        return sliced.submodules()

    def cut(self, stage_of_layer: tuple[int, ...], last_makes_free: bool = False) -> CutStages:
        """The stages, as they were cut last where that was the same; see `slice`."""
        asked = stage_of_layer, last_makes_free
        if asked not in self._cuts:
            modules = self.slice(*asked)
            self._take(asked, CutStages(self.name, tuple(modules.values())))
        return self._cuts[asked]

    def kept_cut(self, stage_of_layer: tuple[int, ...], last_makes_free: bool = False) -> CutStages:
        """The same, from the store where it is there."""
        asked = stage_of_layer, last_makes_free
        key = self.store.key("stages", self.content, *asked)
        found = self.store.get(key) if self.store.is_on else None
        if found is None:
            self.store.put(key, {"texts": list(self.cut(*asked).texts())})
        elif asked not in self._cuts:
            self._take(asked, CutStages(self.name, texts=found["texts"]))
        return self._cuts[asked]

    def _take(self, asked: tuple[tuple[int, ...], bool], cut: CutStages) -> None:
        # Modules take memory: those of a cut that is looked at no more are let go.
        self._cuts.clear()
        self._cuts[asked] = cut


class StepForms:
    """Makes the forms of a step with layers and phases.

    What they share is made once, by one thread at a time: its operators for all numbers of
    micro-batches, a number of micro-batches for all forms.
    """

    def __init__(self, program: TracedProgram, store: Store = OFF) -> None:
        """Makes nothing yet.

        Args:
            program: the step, or what it does for one of several updates.
            store: keeps what is made of it.
        """
        self._program, self._store = program, store
        self._imported: tuple[Module, list[str]] | None = None
        # The last, with how it was cut.
        self._cut: tuple[str, Module, list[str]] | None = None

    def layered(
        self,
        num_micro_batches: int,
        reduction: str = "mean",
        form: StepForm | None = None,
        num_updates: int = 1,
    ) -> LayeredStep:
        """The step with layers and phases.

        Args:
            num_micro_batches: of it.
            reduction: how results of independent micro-batches are joined: ``"mean"``, ``"sum"``
                or the name of the result that is their weight.
            form: what is done to it besides; None for nothing.
            num_updates: of a step.

        Raises:
            CompileError: the step cannot be cut so.
            TraceError: no result has the name.
        """
        program, count = self._program, f"micro-batches={num_micro_batches}"
        # One micro-batch per update is all of a part of the batch: nothing is left to cut.
        is_part = program.num_parts > num_updates or (program.num_parts > 1 == num_micro_batches)
        indices = program.batch if is_part else program.declared_batch
        batch = ",".join(str(index) for index in sorted(indices))
        independent = f" independent={_joining(program, reduction)}" if is_part else ""
        # Which weights a second way through the batch would read, no schedule says.
        passes = " one-pass" if num_updates > 1 else ""
        cut = f"alpa-cut-pipeline{{{count} batch={batch}{independent}{passes}}}"
        mark = f"alpa-mark-pipeline{{{count} {form or ''}}}"
        found = self._kept(cut, mark) if self._store.is_on else self._marked(cut, mark)
        return replace(
            found,
            inputs=tuple(value.name for value in program.inputs),
            is_uncut=program.has_gradients_of_jax and found.num_layers == 1,
        )

    def _marked(self, cut: str, mark: str) -> LayeredStep:
        """The step with layers and phases, as it is made now."""
        if self._imported is None:
            module = Module(self._program.text, self._program.name)
            said = module.run(f"alpa-import-pipeline{{{self._program.state_option}}}")
            self._imported = module, said
        if self._cut is None or self._cut[0] != cut:
            imported, said = self._imported
            module = imported.clone()
            self._cut = cut, module, [*said, *module.run(cut)]
        _, module, said = self._cut
        module = module.clone()
        return LayeredStep.of(module, [*said, *module.run(mark)])

    def _kept(self, cut: str, mark: str) -> LayeredStep:
        """The same, as it was made before or is made now."""
        program, store = self._program, self._store
        marked: list[LayeredStep] = []

        def made() -> Record:
            found = self._marked(cut, mark)
            marked.append(found)
            text = {"text": found.module.text(), "layers": found.num_layers}
            return text | {"remarks": list(found.remarks)}

        content = digest(program.text, program.state_option, cut, mark)
        found = store.remember("layers", (content,), made)
        module = marked[0].module if marked else Module.kept(found["text"], program.name)
        remarks, count = tuple(found["remarks"]), int(found["layers"])
        return LayeredStep(program.name, count, remarks, module, store, (content, program.name))


def mark_layers(
    program: TracedProgram,
    num_micro_batches: int,
    reduction: str = "mean",
    form: StepForm | None = None,
    store: Store = OFF,
    num_updates: int = 1,
) -> LayeredStep:
    """The step with layers and phases in one form; see `StepForms`."""
    return StepForms(program, store).layered(num_micro_batches, reduction, form, num_updates)


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
