"""What XLA said of programs, kept on disk by content."""

from __future__ import annotations

import dataclasses
import gzip
import hashlib
import json
from collections.abc import Sequence
from pathlib import Path

from alpa_runtime import MemoryStats, SpmdProgram
from alpa_runtime.analysis import ProgramReport

from stablehlo_alpa.compiler import without_locations
from stablehlo_alpa.witness.job import Options
from stablehlo_alpa.witness.targets import Target


@dataclasses.dataclass(frozen=True)
class ReportCache:
    """Reports by program, target and versions of the compiler.

    Attributes:
        folder: where they lie; made when it is first written.
    """

    folder: Path

    def get(
        self, program: SpmdProgram, target: Target, tried: Sequence[Options]
    ) -> ProgramReport | None:
        """What was kept of a program that was compiled so; None when it is not there."""
        path = self._path(program, target, tried)
        if not path.exists():
            return None
        found = json.loads(gzip.decompress(path.read_bytes()))
        return ProgramReport(**(found | {"memory": MemoryStats(**found["memory"])}))

    def put(
        self,
        program: SpmdProgram,
        target: Target,
        tried: Sequence[Options],
        report: ProgramReport,
    ) -> None:
        """Keeps what is said of a program."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self._path(program, target, tried)
        # Others may read at the same time.
        part = path.with_suffix(".part")
        part.write_bytes(gzip.compress(json.dumps(dataclasses.asdict(report)).encode()))
        part.rename(path)

    def _path(self, program: SpmdProgram, target: Target, tried: Sequence[Options]) -> Path:
        # Where a function was written is no part of what is compiled.
        text = without_locations(program.text)
        digest = dataclasses.replace(program, text=text).digest
        described = sorted(target.topology(program.num_devices).items())
        ways = [sorted(options.items()) for options in tried]
        content = repr((digest, target.name, target.versions, described, ways))
        return self.folder / f"{hashlib.sha256(content.encode()).hexdigest()}.json.gz"
