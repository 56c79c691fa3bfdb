"""Plans that were written to a file, with what they cost and why."""

from __future__ import annotations

import io
import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import alpa_runtime
import numpy as np
from alpa_runtime.errors import ProgramError
from alpa_runtime.plain_data import decode, encode
from alpa_runtime.plan_file import load_members

from stablehlo_alpa.cluster.file import format_cluster, parse_cluster
from stablehlo_alpa.cost.strategy_graph import Int
from stablehlo_alpa.intra_op import StrategyTable
from stablehlo_alpa.planning.account import (
    Account,
    program_account,
    stage_account,
    stage_layers,
)
from stablehlo_alpa.planning.ordering import make_schedule
from stablehlo_alpa.planning.own_schedule import read_order, write_order
from stablehlo_alpa.planning.prediction import Predicted
from stablehlo_alpa.planning.schedules import Schedule, ScheduleName, single
from stablehlo_alpa.planning.stage import CostedProgram, StageBody

if TYPE_CHECKING:
    from stablehlo_alpa.planning.plan import Plan

ACCOUNT_VERSION = 6
# Schedules that are made again from their sizes; "none" has nothing to order.
_NAMES = (*ScheduleName, "none")

_ACCOUNT, _OPERATORS = "account.json", "operators.npz"
_TEXTS = ("name", "op", "label")
_ARRAYS = (
    *("offset", "choice", "compute_s", "communication_s", "reshard_s", "memory_bytes"),
    *("allowed", "operand_reshard_s"),
)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class SavedPlan(Predicted):
    """A plan without its modules on the way: what runs, what it costs, and what was chosen from.

    Attributes:
        account: what it says of itself.
        tables: per stage the strategies of its operators, and what each costs.
        layers: per stage int64[N] the layer of each operator, -1 for none.
    """

    account: Account
    tables: tuple[StrategyTable, ...]
    layers: tuple[Int, ...]

    @classmethod
    def of(cls, plan: Plan) -> SavedPlan:
        """What a file of a plan holds."""
        layers = tuple(map(stage_layers, plan.stages))
        schedule, donated = plan.schedule, plan.program.aliases
        account = Account(
            cluster=format_cluster(plan.cluster),
            schedule=str(schedule.name),
            stage_meshes=tuple(map(schedule.mesh_of, range(len(plan.stages)))),
            order=() if schedule.name in _NAMES else write_order(schedule),
            micro_batches_per_update=schedule.micro_batches_per_update,
            delay=schedule.delay,
            recomputed=plan.recomputed,
            bracket=plan.bracket,
            donated=tuple((i, donated[i]) for i in sorted(plan.program.donated) if i in donated),
            programs=tuple(map(program_account, plan.costs)),
            stages=tuple(
                stage_account(number, stage, own, plan.runtime, plan.program.batch)
                for number, (stage, own) in enumerate(zip(plan.stages, layers, strict=True))
            ),
            tried=plan.tried,
            remarks=plan.remarks,
        )
        tables = tuple(StrategyTable.of(stage.priced, stage.solution) for stage in plan.stages)
        return cls(
            cluster=plan.cluster,
            runtime=plan.runtime,
            costs=plan.costs,
            bracket=plan.bracket,
            account=account,
            tables=tables,
            layers=layers,
        )

    @property
    def stages(self) -> tuple[StageBody, ...]:
        """The stages as they run."""
        return tuple(
            stage.body(self.cluster, self.runtime.programs, self.costs)
            for stage in self.account.stages
        )

    @cached_property
    def schedule(self) -> Schedule:
        """The order in which stages work on micro-batches."""
        if self.runtime.sole_program is not None:
            return single()
        name, meshes = self.account.schedule, self.account.stage_meshes
        count = self.runtime.num_micro_batches
        if self.account.order:
            per_update, delay = self.account.micro_batches_per_update, self.account.delay
            return read_order(name, self.account.order, meshes, count, per_update, delay)
        return make_schedule(name, meshes, count)

    def save(self, path: str | os.PathLike[str], more: Mapping[str, bytes] | None = None) -> None:
        """Writes the file that `read_plan` makes the same of, and ``alpa_runtime.load`` runs.

        Args:
            path: of the file.
            more: what else it is to hold, by name.
        """
        described = {"version": ACCOUNT_VERSION, "account": encode(self.account)}
        described["texts"] = [_texts(table) for table in self.tables]
        members = {_ACCOUNT: json.dumps(described).encode(), _OPERATORS: self._arrays()}
        members |= more or {}
        alpa_runtime.save(self.runtime, path, members)

    def _arrays(self) -> bytes:
        arrays: dict[str, Any] = {}
        for number, (table, layers) in enumerate(zip(self.tables, self.layers, strict=True)):
            arrays |= {f"{number}/{key}": getattr(table, key) for key in _ARRAYS}
            arrays[f"{number}/layer"] = layers
        content = io.BytesIO()
        # The archive that it goes into compresses.
        np.savez(content, **arrays)
        return content.getvalue()


def is_explained(path: str | os.PathLike[str]) -> bool:
    """Whether a plan's file says what the plan costs, and not only how it is run.

    Args:
        path: the file; one that is no archive says neither.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            return _ACCOUNT in archive.namelist()
    except zipfile.BadZipFile:
        return False


def read_plan(path: str | os.PathLike[str]) -> SavedPlan:
    """Reads a plan that `Plan.save` has written, and proves that it can run.

    Args:
        path: the file.

    Raises:
        ProgramError: the file is no plan, of another version, damaged, contradicts itself, or says
            only how the plan is run.
    """
    name = os.fspath(path)
    runtime, members = load_members(path, (_ACCOUNT, _OPERATORS))
    if _ACCOUNT not in members or _OPERATORS not in members:
        raise ProgramError(
            f"{name} says how {runtime.name} is run, not what it costs: Plan.save and "
            "`stablehlo-alpa plan -o` write both, alpa_runtime.save the first alone"
        )
    try:
        data = json.loads(members[_ACCOUNT])
        version = data.get("version") if isinstance(data, dict) else None
        if version != ACCOUNT_VERSION:
            raise ProgramError(
                f"{name} explains itself in version {version!r}, this is version "
                f"{ACCOUNT_VERSION}: plan again, or run it by alpa_runtime.load"
            )
        account: Account = decode(Account, data.get("account"), "account")
        tables, layers = _tables(members[_OPERATORS], data["texts"], len(account.stages))
    except ProgramError:
        raise
    except (ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise ProgramError(f"{name} is damaged, what it says of its costs: {error}") from error
    return _saved(name, runtime, account, tables, layers)


def _saved(
    name: str,
    runtime: alpa_runtime.Plan,
    account: Account,
    tables: tuple[StrategyTable, ...],
    layers: tuple[Int, ...],
) -> SavedPlan:
    """A plan of what was read.

    Raises:
        ProgramError: what it says of itself is not of what is run.
    """
    counts = {"programs": (len(account.programs), len(runtime.programs))}
    counts["meshes"] = (len(set(account.stage_meshes)), len(runtime.meshes))
    for what, (told, there) in counts.items():
        if told != there:
            raise ProgramError(f"{name} runs {there} {what} and says what {told} cost")
    costs = tuple(
        CostedProgram(program, one.time_s, one.inside_bytes, one.compute_s, one.collectives)
        for program, one in zip(runtime.programs, account.programs, strict=True)
    )
    return SavedPlan(
        cluster=parse_cluster(account.cluster, name),
        runtime=runtime,
        costs=costs,
        bracket=account.bracket,
        account=account,
        tables=tables,
        layers=layers,
    )


def _texts(table: StrategyTable) -> dict[str, Any]:
    """Names, kinds and labels; of equal ones the text once."""
    found: dict[str, Any] = {}
    for key in _TEXTS:
        numbers: dict[str, int] = {}
        order = [numbers.setdefault(text, len(numbers)) for text in getattr(table, key)]
        found[key] = {"texts": list(numbers), "order": order}
    return found


def _tables(
    content: bytes, texts: Sequence[Mapping[str, Any]], num_stages: int
) -> tuple[tuple[StrategyTable, ...], tuple[Int, ...]]:
    tables, layers = [], []
    with np.load(io.BytesIO(content), allow_pickle=False) as arrays:
        for number in range(num_stages):
            own = texts[number]
            named: dict[str, Any] = {
                key: tuple(own[key]["texts"][at] for at in own[key]["order"]) for key in _TEXTS
            }
            named |= {key: arrays[f"{number}/{key}"] for key in _ARRAYS}
            table = StrategyTable(**named)
            _check_table(table, arrays[f"{number}/layer"])
            tables.append(table)
            layers.append(arrays[f"{number}/layer"])
    return tuple(tables), tuple(layers)


def _check_table(table: StrategyTable, layers: Int) -> None:
    """Refuses arrays that do not fit each other, as a ``ValueError``."""
    nodes, count = len(table.name), len(table.label)
    of_node = (table.op, table.choice, table.operand_reshard_s, layers)
    of_strategy = (
        *(table.compute_s, table.communication_s, table.reshard_s),
        *(table.memory_bytes, table.allowed),
    )
    sizes = np.diff(table.offset)
    fits = len(table.offset) == nodes + 1 and int(table.offset[-1]) == count
    fits = fits and all(len(one) == nodes for one in of_node)
    fits = fits and all(len(one) == count for one in of_strategy)
    if not fits or (sizes < 1).any() or (table.choice >= sizes).any() or (table.choice < 0).any():
        raise ValueError(f"the strategies of {nodes} operators do not fit each other")
