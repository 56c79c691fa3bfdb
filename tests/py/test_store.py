"""What is kept on disk by content: whole or not there, bounded, and never of something else."""

from __future__ import annotations

import dataclasses
import enum
import json
import logging
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stablehlo_alpa.cluster import ClusterSpec
from stablehlo_alpa.store import OFF, Store, as_store, default_folder, digest
from stablehlo_alpa.store import store as store_module
from stablehlo_alpa.store.entry import DamagedError, pack, unpack

PLAIN = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
NUMBERS = st.lists(st.floats(allow_nan=False), max_size=5).map(lambda one: np.array(one, "f8"))
WHOLE = st.lists(st.integers(-128, 127), max_size=5).map(lambda one: np.array(one, "i1"))
RECORDS = st.dictionaries(st.text(), PLAIN | NUMBERS | WHOLE, max_size=4)
SETTINGS = settings(max_examples=60, deadline=None, derandomize=True)

# Writes and reads entries as fast as it can, and says so.
WRITER = """
import sys
from pathlib import Path
import numpy as np
from stablehlo_alpa.store import Store
store = Store(Path(sys.argv[1]), worth_s=0.0)
number = 0
while True:
    key = store.key("entry", number % 7)
    found = store.get(key)
    assert found is None or (found["array"] == number % 7).all(), found
    store.put(key, {"array": np.full(100_000, number % 7), "text": "x" * 1000})
    number += 1
    print(number, flush=True)
"""


# Says what version it is of, before and after another one is installed in its place.
UPGRADED = """
from pathlib import Path
import stablehlo_alpa.store.version as version
with Path(version.__file__).with_name("content.py").open("a") as upgraded:
    print("NEW = True", file=upgraded)
print(version.own_version())
"""


class Colour(enum.Enum):
    """One of its kind."""

    RED = 1


@dataclasses.dataclass
class Pair:
    """Two values."""

    one: Any
    two: Any


@dataclasses.dataclass
class OtherPair:
    """Two values of another kind."""

    one: Any
    two: Any


def equal(one: Any, two: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == two.dtype and one.shape == two.shape and bool((one == two).all())
    return bool(one == two)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return Store(tmp_path / "store", worth_s=0.0)


def entries(store: Store) -> list[Path]:
    assert store.folder is not None
    return sorted(store.folder.rglob("*.entry"))


@SETTINGS
@given(RECORDS)
def test_records_come_back_as_they_were(record: dict[str, Any]) -> None:
    found = unpack("key", pack("key", record))
    assert set(found) == set(record)
    assert all(equal(record[name], found[name]) for name in record)


@pytest.mark.parametrize("character", ["a", "\n", '"', "\u00e9", "\U0001f600", "\ud800"])
def test_long_texts_come_back_as_they_were(character: str) -> None:
    record = {"texts": {"one": 5000 * character, "short": character}, "list": [4000 * character]}
    assert unpack("key", pack("key", record)) == record


@SETTINGS
@given(RECORDS, st.integers(min_value=0), st.integers(1, 255))
def test_a_changed_byte_is_damage(record: dict[str, Any], at: int, change: int) -> None:
    content = bytearray(pack("key", record))
    content[at % len(content)] ^= change
    with pytest.raises(DamagedError):
        unpack("key", bytes(content))


@SETTINGS
@given(RECORDS, st.integers(min_value=0))
def test_an_entry_that_is_cut_short_is_damage(record: dict[str, Any], at: int) -> None:
    content = pack("key", record)
    with pytest.raises(DamagedError):
        unpack("key", content[: at % len(content)])


def test_an_entry_of_another_key_is_damage() -> None:
    with pytest.raises(DamagedError, match="another key"):
        unpack("other", pack("key", {}))


@pytest.mark.parametrize("value", [np.array([object()]), np.array(["text"]), {1: 2}, object()])
def test_only_plain_data_is_packed(value: Any) -> None:
    with pytest.raises(TypeError):
        pack("key", {"value": value})


def test_different_content_has_different_digests() -> None:
    different: list[Any] = [
        *(None, True, 1, 1.0, "1", b"1", 0.0, -0.0, (), [], {}, frozenset()),
        *((1, 2), (12,), ("1", "2"), ("12",), ((1,), 2), (1, (2,)), [1, 2], {1: 2}, {2: 1}),
        *(np.array([1, 2]), np.array([[1, 2]]), np.array([1.0, 2.0]), np.array([1, 2], "i4")),
        *(Colour.RED, Pair(1, 2), OtherPair(1, 2), Pair(2, 1), float("inf"), float("nan")),
    ]
    assert len({digest(one) for one in different}) == len(different)
    assert digest("a", "b") != digest("ab")


def test_equal_content_has_equal_digests() -> None:
    whole = np.arange(12).reshape(3, 4)
    assert digest(whole[:, ::2]) == digest(whole[:, ::2].copy())
    assert digest({"a": 1, "b": 2}) == digest({"b": 2, "a": 1})
    preset = ClusterSpec.preset("p3.16xlarge:2")
    assert digest(preset) == digest(ClusterSpec.preset("p3.16xlarge:2"))
    assert digest(preset) != digest(ClusterSpec.preset("p3.16xlarge:4"))


@pytest.mark.parametrize("value", [object(), digest, np.array([None]), (1, [object()])])
def test_content_that_is_not_plain_is_refused(value: Any) -> None:
    with pytest.raises(TypeError):
        digest(value)


def test_what_was_made_is_remembered(store: Store) -> None:
    made = []

    def make() -> dict[str, Any]:
        made.append(0)
        return {"array": np.arange(3), "text": "x"}

    for _ in range(2):
        again = dataclasses.replace(store, _state=store_module._State())
        found = again.remember("it", (1, "content"), make)
        assert (found["array"] == np.arange(3)).all()
    assert len(made) == 1
    store.remember("it", (2, "content"), make)
    store.remember("other", (1, "content"), make)
    assert len(made) == 3


def test_what_is_quick_is_not_kept(tmp_path: Path) -> None:
    kept = Store(tmp_path, worth_s=100.0)
    kept.remember("it", (), dict)
    assert entries(kept) == []


def test_a_damaged_entry_is_said_once_and_made_anew(
    store: Store, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(2):
        store.remember("it", (number,), lambda: {"text": "x" * 1000})
    for path in entries(store):
        path.write_bytes(path.read_bytes()[:-3])
    with caplog.at_level(logging.WARNING):
        found = [store.remember("it", (number,), lambda: {"text": "y"}) for number in range(2)]
    assert found == [{"text": "y"}] * 2
    assert [one.message.count("are damaged") for one in caplog.records] == [1]
    assert store.remember("it", (0,), lambda: {"text": "z"}) == {"text": "y"}


def test_a_store_of_another_version_is_said_once_and_filled_anew(
    store: Store, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.remember("it", (), lambda: {"made": "before"})
    monkeypatch.setattr(store_module, "own_version", lambda: "f" * 64)
    with caplog.at_level(logging.WARNING):
        for number in range(3):
            store.remember("it", (), lambda: {"made": "now"})
            store.remember("it", (number,), dict)
    assert [one.message.count("of another version") for one in caplog.records] == [1]
    assert store.remember("it", (), dict) == {"made": "now"}
    caplog.clear()
    with caplog.at_level(logging.WARNING):
        Store(store.folder).get(store.key("nothing"))
    assert caplog.records == []


@pytest.mark.slow
def test_an_upgrade_while_a_process_runs_is_another_version(tmp_path: Path) -> None:
    package = Path(store_module.__file__).parents[1]
    shutil.copytree(
        package, tmp_path / package.name, ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}

    def say(program: str) -> str:
        command = [sys.executable, "-c", program]
        return subprocess.check_output(command, env=environment, text=True, cwd=tmp_path)

    asked = "from stablehlo_alpa.store.version import own_version; print(own_version())"
    before = say(asked)
    assert say(UPGRADED) == before
    assert say(asked) != before


def test_beyond_its_size_the_oldest_go(tmp_path: Path) -> None:
    one = np.random.default_rng(0).integers(0, 255, 10_000, np.uint8)
    kept = Store(tmp_path, max_bytes=55_000, worth_s=0.0)
    for number in range(5):
        kept.put(kept.key(str(number)), {"array": one})
    for age, path in enumerate(entries(kept)):
        os.utime(path, (age, age))
    oldest, newest = entries(kept)[:2], entries(kept)[2:]
    # What is asked for is no longer old.
    used = kept.get(oldest[0].stem)
    assert used is not None
    assert (used["array"] == one).all()
    kept.put(kept.key("more"), {"array": one})
    assert oldest[0].exists()
    assert not oldest[1].exists()
    assert newest[-1].exists()
    assert sum(path.stat().st_size for path in entries(kept)) <= 55_000


def test_files_that_are_not_entries_are_left_alone(tmp_path: Path) -> None:
    for name in ("mine", "a/b/c.entry", f"{'0' * 16}/00/mine.txt"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("mine")
    kept = Store(tmp_path, max_bytes=0, worth_s=0.0)
    kept.put(kept.key("it"), {})
    assert entries(kept) == [tmp_path / "a/b/c.entry"]
    assert (tmp_path / "mine").exists()
    assert (tmp_path / f"{'0' * 16}/00/mine.txt").exists()


def test_what_was_begun_and_abandoned_is_removed(store: Store) -> None:
    store.put(store.key("it"), {})
    begun = entries(store)[0].parent / "begun.part"
    begun.write_bytes(b"x")
    os.utime(begun, (0, 0))
    fresh = begun.with_name("fresh.part")
    fresh.write_bytes(b"x")
    Store(store.folder, worth_s=0.0).put(store.key("it"), {})
    assert not begun.exists()
    assert fresh.exists()


def test_a_folder_that_cannot_be_written_is_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").write_text("")
    kept = Store(tmp_path / "file" / "store", worth_s=0.0)
    with caplog.at_level(logging.WARNING):
        found = [kept.remember("it", (number,), lambda: {"made": 1}) for number in range(2)]
    assert found == [{"made": 1}] * 2
    assert {one.message.split(":")[0] for one in caplog.records} <= {
        f"nothing is kept in the store {kept.folder}",
        f"entries of the store {kept.folder} are damaged and made anew",
    }
    assert len(caplog.records) <= 2


def test_switched_off_nothing_is_kept_or_asked_for() -> None:
    assert OFF.remember("it", (object(),), lambda: {"made": 1}) == {"made": 1}
    assert not OFF.is_on
    assert OFF.key("it", object()) == ""
    assert OFF.get("") is None


def test_the_environment_names_the_store_of_a_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STABLEHLO_ALPA_STORE", "off")
    assert as_store(True) is OFF
    monkeypatch.setenv("STABLEHLO_ALPA_STORE", str(tmp_path))
    assert as_store(True).folder == tmp_path
    assert as_store(False) is OFF
    assert as_store(str(tmp_path / "other")).folder == tmp_path / "other"
    monkeypatch.delenv("STABLEHLO_ALPA_STORE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(sys, "platform", "linux")
    assert default_folder() == tmp_path / "stablehlo_alpa"
    with pytest.raises(TypeError, match="store must be"):
        as_store(3)  # type: ignore[arg-type]


def writer(folder: Path) -> subprocess.Popen[str]:
    root = Path(__file__).resolve().parents[2]
    environment = os.environ | {"PYTHONPATH": f"{root}:{root / 'runtime'}"}
    command = [sys.executable, "-c", WRITER, str(folder)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment)


@pytest.mark.slow
def test_processes_share_a_store_and_may_be_killed_while_they_write(store: Store) -> None:
    assert store.folder is not None
    processes = [writer(store.folder) for _ in range(2)]
    try:
        for process in processes:
            assert process.stdout is not None
            # It has written, and reads what the other writes.
            while int(process.stdout.readline()) < 20:
                pass
        time.sleep(0.05)
    finally:
        for process in processes:
            process.send_signal(signal.SIGKILL)
            process.wait()
    for process in processes:
        assert process.returncode == -signal.SIGKILL
    assert len(entries(store)) == 7
    for number in range(7):
        found = store.get(store.key("entry", number))
        assert found is not None
        assert (found["array"] == number).all()


def test_an_entry_is_data_alone(store: Store) -> None:
    """Nothing in a file is code: what reads it is JSON and arrays of numbers."""
    content = pack("key", {"text": "x"})
    assert b"pickle" not in content
    hostile = {"key": "key", "values": {"array": 7}, "arrays": [["|O", [1]]]}
    with pytest.raises(DamagedError):
        unpack("key", rebuilt(json.dumps(hostile).encode()))


def rebuilt(head: bytes) -> bytes:
    """An entry with a checksum that is right and a content that is not."""
    import hashlib
    import struct
    import zlib

    from stablehlo_alpa.store.entry import MAGIC

    body = zlib.compress(struct.pack("<Q", len(head)) + head)
    return MAGIC + hashlib.sha256(body).digest() + body
