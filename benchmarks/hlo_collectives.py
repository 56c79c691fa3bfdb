"""Counts the collectives of an optimised HLO module and the bytes they move."""

import math
import re
from dataclasses import dataclass

# Bytes of one element.
ELEMENT_BYTES = {
    **dict.fromkeys(("pred", "s8", "u8", "f8e4m3fn", "f8e5m2"), 1.0),
    **dict.fromkeys(("s16", "u16", "f16", "bf16"), 2.0),
    **dict.fromkeys(("s32", "u32", "f32"), 4.0),
    **dict.fromkeys(("s64", "u64", "f64", "c64"), 8.0),
    **dict.fromkeys(("s4", "u4"), 0.5),
    "c128": 16.0,
}

KINDS = ("all-reduce", "all-gather", "reduce-scatter", "all-to-all", "collective-permute")

COMPUTATION = re.compile(r"^(?P<entry>ENTRY )?%?(?P<name>[\w.-]+) .*\{\s*$")
INSTRUCTION = re.compile(
    r"^\s+(?:ROOT )?%?(?P<name>[\w.-]+) = (?P<type>\(.*?\)|\S+) (?P<op>[\w-]+)\((?P<rest>.*)$"
)
ARRAY = re.compile(r"\b([a-z]\w*)\[([\d,]*)\]")
CALLS = {
    "call": re.compile(r"to_apply=%?([\w.-]+)"),
    "while": re.compile(r"body=%?([\w.-]+)"),
    "fusion": re.compile(r"calls=%?([\w.-]+)"),
    "async-start": re.compile(r"calls=%?([\w.-]+)"),
    "conditional": re.compile(
        r"(?:branch_computations=\{(.*?)\}|true_computation=%?([\w.-]+), "
        r"false_computation=%?([\w.-]+))"
    ),
}
TRIP_COUNT = re.compile(r'"known_trip_count":\{"n":"(\d+)"\}')


@dataclass(frozen=True)
class Collective:
    """One collective instruction.

    Attributes:
        kind: ``all_reduce``, ``all_gather``, ``reduce_scatter``, ``all_to_all`` or
            ``collective_permute``.
        group_size: devices that take part together; 2 for a permutation.
        payload_bytes: per device and execution: the local operand, of all_gather the local result.
        count: executions per call of the module (trip counts of loops).
    """

    kind: str
    group_size: int
    payload_bytes: float
    count: int

    @property
    def total_bytes(self) -> float:
        """Payload of all executions."""
        return self.payload_bytes * self.count

    @property
    def wire_bytes(self) -> float:
        """Bytes that one device sends with the bandwidth-optimal (ring) algorithm."""
        if self.kind == "collective_permute":
            return self.total_bytes
        share = (self.group_size - 1) / self.group_size
        return self.total_bytes * share * (2 if self.kind == "all_reduce" else 1)


def type_bytes(text: str) -> float:
    """Bytes of an HLO type, a tuple's elements added up."""
    total = 0.0
    for element, dims in ARRAY.findall(text):
        if element not in ELEMENT_BYTES:
            if element == "token":
                continue
            raise ValueError(f"element type is '{element}', which has no known size, in '{text}'")
        total += ELEMENT_BYTES[element] * math.prod(int(d) for d in dims.split(",") if d)
    return total


def group_size(rest: str, num_devices: int) -> int:
    """Size of the replica groups named by an instruction's attributes."""
    if match := re.search(r"replica_groups=\[(\d+),(\d+)\]<=", rest):
        return int(match.group(2))
    if match := re.search(r"replica_groups=\{\{([\d,]*)\}", rest):
        return len(match.group(1).split(","))
    if match := re.search(r"replica_groups=mesh\[(.*?)\][^{]*\{(.*?)\}", rest):
        sizes = dict(re.findall(r"('\w+')=(\d+)", match.group(1)))
        # An axis may be split: 'a':(before)size takes a part of it.
        axes = re.findall(r"('\w+')(?::\(\d+\)(\d+))?", match.group(2))
        return math.prod(int(part or sizes[axis]) for axis, part in axes)
    if "replica_groups={}" in rest:
        return num_devices
    raise ValueError(f"replica groups are not understood: '{rest}'")


def collectives(hlo: str, num_devices: int) -> list[Collective]:
    """The collectives one call of an optimised HLO module executes.

    Args:
        hlo: text of the module, e.g. of ``jax.stages.Compiled.as_text()``.
        num_devices: devices it runs on.

    Returns:
        One entry per instruction that some device communicates in. Of a conditional the branch
        that moves most bytes counts.

    Raises:
        ValueError: an attribute, type or loop whose volume cannot be told.
    """
    bodies: dict[str, list[re.Match[str]]] = {}
    entry = name = None
    for line in hlo.splitlines():
        if match := COMPUTATION.match(line):
            name = match.group("name")
            bodies[name] = []
            entry = name if match.group("entry") else entry
        elif name is not None and (match := INSTRUCTION.match(line)):
            bodies[name].append(match)
    if entry is None:
        raise ValueError("the text has no ENTRY computation")

    def walk(computation: str, count: int) -> list[Collective]:
        types = {match.group("name"): match.group("type") for match in bodies[computation]}
        found: list[Collective] = []
        for match in bodies[computation]:
            op, rest = match.group("op"), match.group("rest")
            kind = op.removesuffix("-start")
            if kind in KINDS:
                found += one(kind, match, types, count)
            elif op in CALLS and (called := CALLS[op].search(rest)):
                names = [n.strip(" %") for g in called.groups() if g for n in g.split(",")]
                trips = 1
                if op == "while":
                    trip_count = TRIP_COUNT.search(rest)
                    trips = int(trip_count.group(1)) if trip_count else -1
                inner = [walk(n, count * trips) for n in names]
                if trips < 0 and any(inner):
                    raise ValueError(f"loop {match.group('name')} has no known trip count")
                found += max(inner, key=lambda c: sum(x.wire_bytes for x in c), default=[])
        return found

    def one(kind: str, match: re.Match[str], types: dict[str, str], count: int) -> list[Collective]:
        rest = match.group("rest")
        if kind == "collective-permute":
            pairs = re.search(r"source_target_pairs=\{(.*?)\}\}", rest)
            moves = re.findall(r"(\d+),(\d+)", pairs.group(1) if pairs else "")
            size = 2 if any(source != target for source, target in moves) else 1
        else:
            size = group_size(rest, num_devices)
        if size == 1:
            return []
        operands = re.findall(r"%([\w.-]+)", rest.split(")")[0])
        payload = sum(type_bytes(types[operand]) for operand in operands)
        if kind == "all-gather":
            payload *= size
        return [Collective(kind.replace("-", "_"), size, payload, count)]

    return walk(entry, 1)
