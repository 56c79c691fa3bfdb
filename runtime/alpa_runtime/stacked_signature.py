"""What a caller passes to a plan that has stacks of layers in parts."""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Sequence

from alpa_runtime.errors import ProgramError
from alpa_runtime.plain_data import decode, encode
from alpa_runtime.plan import Plan
from alpa_runtime.plan_file import read_member
from alpa_runtime.stacks import Stack

STACKS_MEMBER = "stacks.json"
"""What the archive of a plan calls it."""


@dataclasses.dataclass(frozen=True)
class StackedSignature:
    """Flat inputs and outputs of a function, as a plan of it has them.

    Attributes:
        inputs, outputs: of the function, in order.
        names: of its inputs.
    """

    inputs: tuple[Stack, ...]
    outputs: tuple[Stack, ...]
    names: tuple[str, ...]

    def dump(self) -> bytes:
        """What `read` makes the same of."""
        return json.dumps(encode(self)).encode()

    @classmethod
    def read(cls, path: str | os.PathLike[str], plan: Plan) -> StackedSignature | None:
        """That of the file of a plan; None where the plan has everything as the function has.

        Raises:
            ProgramError: the file is damaged, or of another plan.
        """
        content = read_member(path, STACKS_MEMBER)
        if content is None:
            return None
        where = f"{STACKS_MEMBER} of {os.fspath(path)}"
        try:
            data = json.loads(content)
        except ValueError as error:
            raise ProgramError(f"{where} is damaged: {error}") from error
        found: StackedSignature = decode(cls, data, where)
        _check(found.inputs, len(plan.inputs), f"inputs of {where}")
        _check(found.outputs, len(plan.outputs), f"outputs of {where}")
        if len(found.names) != len(found.inputs):
            raise ProgramError(
                f"{where} has {len(found.names)} names of {len(found.inputs)} inputs"
            )
        return found


def _check(stacks: Sequence[Stack], count: int, where: str) -> None:
    numbers = [number for stack in stacks for number in stack.numbers]
    if sorted(numbers) != list(range(count)):
        raise ProgramError(f"{where} are {numbers}, must be each of the plan's {count} once")
    for stack in stacks:
        if len(stack.numbers) != (1 if stack.is_whole else len(stack.sizes)):
            raise ProgramError(f"{where} have {len(stack.numbers)} parts of sizes {stack.sizes}")
