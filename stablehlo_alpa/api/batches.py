"""Which inputs hold a batch, where the user has not said it.

A guess that decides over speed alone: what is split and what is whole computes the same.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from stablehlo_alpa.frontend import TracedProgram, TracedValue

_INTEGERS = ("int", "uint", "bool")


def batch_inputs(program: TracedProgram) -> tuple[frozenset[int], dict[int, str]]:
    """Which inputs that may hold a batch do, and why the others are taken for none.

    The examples of a step have one number. Arguments of one size on dimension 0 say which: that of
    most of them, among equals that of integers (indices and labels, which parameters are not), then
    that of results. Where nothing decides, all of them are batches.

    Returns:
        flat inputs that hold a batch, arrays of that many keys among them, and per input that is
        taken for none the remark.
    """
    maybe = {i: program.inputs[i] for i in sorted(program.batch) if program.inputs[i].shape}
    sizes = _likely_sizes(program, maybe.values())
    batch = {i for i, value in maybe.items() if not sizes or value.shape[0] in sizes}
    for index, value in enumerate(program.inputs):
        if is_key(value) and len(value.shape) > 1 and value.shape[0] in sizes:
            batch.add(index)
    listed = " or ".join(map(str, sorted(sizes)))
    remark = (
        f"it is taken for no batch, those have {listed} on dimension 0; batch_argnums= names those "
        "that are"
    )
    return frozenset(batch), dict.fromkeys(maybe.keys() - batch, remark)


def is_key(value: TracedValue) -> bool:
    """Whether a value is a PRNG key or an array of typed ones."""
    return value.key_impl is not None or (value.dtype == "uint32" and value.shape in ((2,), (4,)))


def _likely_sizes(program: TracedProgram, values: Iterable[TracedValue]) -> set[int]:
    """Sizes of dimension 0 that batches have; more than one where nothing decides."""
    arguments: dict[str, list[TracedValue]] = {}
    for value in values:
        arguments.setdefault(re.split(r"[.\[]", value.name, maxsplit=1)[0], []).append(value)
    votes = [one for one in arguments.values() if len({value.shape[0] for value in one}) == 1]
    counts = Counter(one[0].shape[0] for one in votes)
    most = {size for size, count in counts.items() if count == max(counts.values())}
    integers = {one[0].shape[0] for one in votes if any(v.dtype.startswith(_INTEGERS) for v in one)}
    state = set(program.aliases.values())
    results = {
        value.shape[0]
        for index, value in enumerate(program.outputs)
        if value.shape and index not in state
    }
    for evidence in (integers, results):
        most = (most & evidence) or most
    return most
