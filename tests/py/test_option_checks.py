"""Options of the wrong type or value are refused where they are given, by name, with the value."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

pytest.importorskip("stablehlo_alpa._core")

import stablehlo_alpa as sa
from stablehlo_alpa.errors import OptionError
from stablehlo_alpa.option_checks import restated

pytestmark = pytest.mark.whole

NAN, HUGE = float("nan"), 10**30
NO_INTEGERS: tuple[Any, ...] = (
    2.5,
    2.0,
    "2",
    b"2",
    True,
    np.True_,
    NAN,
    [2],
    (2,),
    {},
    1j,
    np.array([2, 4]),
    HUGE,
)
NO_COUNTS = (*NO_INTEGERS, 0, -1, np.int64(0))
NO_NUMBERS: tuple[Any, ...] = (
    "2",
    b"2",
    True,
    NAN,
    [2.0],
    {},
    1j,
    np.array([1.0, 2.0]),
    -1,
    -np.inf,
    10**400,
)
NO_FLAGS: tuple[Any, ...] = (0, 1, "yes", "", 2.5, [], {}, np.array([True, False]))
NO_TEXTS: tuple[Any, ...] = (3, 2.5, True, [], {}, b"mean", "")
NO_CHOICES = (*NO_TEXTS, "other", np.array([1, 2]), ["alpa"])
NO_SEQUENCES = (3, 2.5, True, "xy", b"xy", {"x": "y"}, {"x"}, print)
NO_MESHES = (*NO_SEQUENCES[1:], (2, 2.5), (2.0,), ("2",), (True,), (0,), (2, -1), ())
NO_METHODS = (3, "data", sa.DataParallel, ("data", "data"), (sa.DataParallel(), None))
NOTHING = (None,)


@dataclass(frozen=True)
class Wrong:
    """A value that is refused, where the message has another one.

    Attributes:
        value: that is given.
        shown: what the message has.
    """

    value: Any
    shown: str


PATTERNS = (
    *(Wrong([one], repr(one)) for one in (3, None, ("a", "b", "c"), ("a",))),
    *(Wrong([(one, P())], repr(one)) for one in (3, "(", b"a", None)),
    Wrong([("a", "x")], "'x'"),
)
SPLITS = (
    *(Wrong([one], repr(one)) for one in (3, None, ("a", "b", "c"), ("a", ["row"]), ("a", "x"))),
    *(Wrong([(one, "row")], repr(one)) for one in (3, "(", b"a", None)),
)
NO_LAYERS = (3, "auto", sa.AutoLayers, sa.UniformStages(2), [sa.AutoLayers()])
NO_STAGES = (3, "auto", sa.AutoStages, sa.AutoLayers(), [sa.AutoStages()])

METHOD: dict[str, tuple[Any, ...]] = {
    "mesh_shape": (*NO_MESHES, 8, np.int64(8)),
    "memory_budget": (*NO_NUMBERS[1:], 0, "", "much", "-1GiB", "1.2.3GiB", "nan"),
    "device": (3, 2.5, True, [], {}, b"cpu", "", "h1000", sa.DeviceSpec),
    "time_limit_s": (*NO_NUMBERS, *NOTHING, 0),
    "backend": (*NO_CHOICES, *NOTHING),
    "num_micro_batches": NO_COUNTS,
    "micro_batches": (*NO_CHOICES, *NOTHING),
    "reduction": (*NO_TEXTS, *NOTHING),
    "keys": (*NO_CHOICES, *NOTHING),
    "attention_keys": NO_COUNTS,
}
LAYERS: dict[str, tuple[Any, ...]] = {
    "remat": (0, 1, "all", "", [], np.array([True, False]), *NOTHING)
}
OWN: dict[type[Any], tuple[dict[str, Any], dict[str, tuple[Any, ...]]]] = {
    sa.ShardParallel: ({}, {"pad": (*NO_FLAGS, *NOTHING)}),
    sa.DataParallel: ({}, {}),
    sa.Zero2Parallel: ({}, {}),
    sa.Zero3Parallel: ({}, {}),
    sa.FollowParallel: ({}, {"names": NO_SEQUENCES}),
    sa.ManualSharding: (
        {"mesh_shape": (2, 4)},
        {
            "in_specs": (
                *(3, "x", [P()], P(), *NOTHING),
                *(Wrong({key: P()}, repr(key)) for key in (1.5, True, -1, (0,))),
                *(Wrong({0: one}, repr(one)) for one in ("x", 3, jnp.float32)),
                *(Wrong({"x": one}, repr(one)) for one in ("x", None, {"a": P()})),
            ),
            "names": (
                *NO_SEQUENCES,
                *(Wrong(("a", one), repr(one)) for one in (3, None, "", "b c", "b:c", "é", "b\\")),
                *(("a", "a"), ("a",), ("a", "b", "c")),
            ),
            "rules": (
                *(*NO_SEQUENCES, *NOTHING),
                *(Wrong([one], repr(one)) for one in (3, ("a",), ("a", 3), (3, "a"), "a")),
            ),
            "patterns": (*NO_SEQUENCES, *NOTHING, *PATTERNS),
        },
    ),
    sa.ExpertParallel: (
        {},
        {
            "expert": NO_COUNTS,
            "patterns": (
                *(3, 2.5, {}, b"x", *NOTHING),
                *(Wrong([one], repr(one)) for one in (3, None, "(", b"a")),
            ),
            "zero": (*NO_INTEGERS, *NOTHING, 2, -1, 4),
        },
    ),
    sa.MegatronParallel: (
        {},
        {
            "tensor": (*NO_COUNTS, *NOTHING),
            "data": NO_COUNTS,
            "pipeline": (*NO_COUNTS, *NOTHING),
            "micro_batch": NO_COUNTS,
            "interleave": (*NO_COUNTS, *NOTHING, 2),
            "sequence_parallel": (*NO_FLAGS, *NOTHING),
            "zero_1": (*NO_FLAGS, *NOTHING),
            "recompute": (*NO_CHOICES, *NOTHING),
            "layers": NO_LAYERS,
            "patterns": (*NO_SEQUENCES, *NOTHING, *SPLITS),
        },
    ),
    sa.PipeshardParallel: (
        {},
        {
            "layers": (*NO_LAYERS, *NOTHING),
            "stages": (*NO_STAGES, *NOTHING),
            "schedule": (3, True, [], "fast", "", np.array([1, 2]), sa.OwnSchedule),
            "num_chunks": (*NO_COUNTS, *NOTHING, 2, 1 << 40),
            "runtime": (3, True, {}, sa.RuntimeOptions, *NOTHING),
            "pad": (*NO_FLAGS, *NOTHING),
        },
    ),
    sa.AutoLayers: (
        {},
        {
            "num_layers": (*NO_COUNTS, *NOTHING),
            "tolerance": (*NO_NUMBERS, *NOTHING),
        },
    ),
    sa.ManualLayers: ({}, {}),
    sa.FollowModuleLayers: ({}, {"pattern": (3, b"x", "(", [], *NOTHING)}),
    sa.AutoStages: ({}, {}),
    sa.ProfiledStages: (
        {},
        {"num_cuts": (*NO_COUNTS, *NOTHING), "store": (3, True, [], b"x")},
    ),
    sa.UniformStages: (
        {"num_stages": 2},
        {
            "num_stages": (*NO_COUNTS, *NOTHING, 1 << 40),
            "mesh_shape": (*NO_MESHES, 8),
            "methods": (
                *(3, sa.DataParallel),
                *(Wrong(one, repr(one[0])) for one in ("data", ("data", "data"))),
                Wrong((sa.DataParallel(), None), "None"),
                Wrong((sa.DataParallel(),), "1"),
            ),
        },
    ),
    sa.ManualStages: (
        {"layers": (1, 1), "submeshes": ((1, 4), (1, 4))},
        {
            "layers": (*NO_SEQUENCES, *NOTHING, (1, 1.0), (1, "1"), (0, 1), (True, 1), ()),
            "submeshes": (
                *(*NO_SEQUENCES, *NOTHING),
                *(Wrong(((1, 4), one), repr(one)) for one in ((4,), (1, 2.0), (0, 4), "14", 4)),
                Wrong(((1, 4),), "1"),
            ),
            "mesh_shapes": (
                *NO_SEQUENCES,
                *(Wrong((None, one), repr(one)) for one in (4, (2.0, 2), (3,), "22", ())),
                Wrong((None,), "1"),
            ),
            "methods": (3, Wrong(("data", "data"), "'data'"), Wrong((), "0")),
            "meshes": (*NO_SEQUENCES, (0,), (0, 2), (0, 1.0), (), Wrong((0, -1), "-1")),
            "parts": (*NO_SEQUENCES, (0,), (0, 1.0), (True, 0), Wrong((0, -1), "-1")),
        },
    ),
}
# Filled in from the arrays of a call.
FILLED_IN = {"flat_specs", "devices", "meshes", "flat_meshes"}

DEVICES = jax.devices()
PARALLELIZE: dict[str, tuple[Any, ...]] = {
    "fun": (3, "f", sa.ShardParallel(), [print]),
    "method": (3, "shard", sa.ShardParallel, [sa.ShardParallel()], *NOTHING),
    "devices": (
        *NO_SEQUENCES,
        *(Wrong([one], repr(one)) for one in (0, "cpu", None, DEVICES)),
        Wrong(np.arange(4), "0"),
        Wrong([], ""),
        Wrong([DEVICES[0]] * 2, str(DEVICES[0])),
        Wrong([*DEVICES, DEVICES[1]], str(DEVICES[1])),
    ),
    "cluster": (3, True, [], {}, b"x", "", Wrong("nowhere:4", "nowhere"), sa.ClusterSpec),
    **{
        name: (
            *(2.5, "x", b"x", True, {"x": 1}, {0}, {}),
            *((0, 1.0), ("x",), (None,), np.array([0.5])),
            *(Wrong(one, str(one)) for one in (7, -7, (0, 7), HUGE)),
        )
        for name in ("donate_argnums", "static_argnums")
    },
    **{
        name: (
            *(2.5, 0, b"x", True, {"x": 1}),
            *(Wrong([one], repr(one)) for one in (0, None, "", "z", b"x")),
        )
        for name in ("donate_argnames", "static_argnames")
    },
    "batch_argnums": (
        *(2.5, True, *NOTHING, Wrong({2.5: True}, "2.5")),
        *(Wrong([one], repr(one)) for one in (2.5, None, "z", 7)),
        Wrong([True, 2.5], "2.5"),
        Wrong({0: 1}, "1"),
    ),
    "rules": (3, "x", {}, *NOTHING, *(Wrong([one], repr(one)) for one in (3, "x", None))),
    "reuse_gap": (*NO_NUMBERS, 1, 1.5, np.inf),
    "trip_count_hint": (*NO_COUNTS[:-3], 0, -1),
    "store": (3, 2.5, [], b"x", *NOTHING),
}


def wrong_options() -> Iterator[Any]:
    """A class, other options of it, the name of one, and what is given for it."""
    for cls, (others, own) in OWN.items():
        shared = METHOD if cls is sa.ShardParallel else LAYERS if cls is sa.AutoLayers else {}
        for name, values in {**shared, **own}.items():
            yield pytest.param(cls, others, name, values, id=f"{cls.__name__}.{name}")


def refusal(name: str, value: Any, given: Any) -> sa.StablehloAlpaError:
    """The error that a call with an option ends in, which has its name and its value."""
    shown = repr(value)
    if isinstance(value, Wrong):
        value, shown = value.value, value.shown
    with pytest.raises(sa.StablehloAlpaError) as refused:
        given(**{name: value})
    message = str(refused.value)
    assert re.search(rf"\b{name}\b", message), message
    assert shown in message or str(value) in message, message
    return refused.value


@pytest.mark.parametrize(("cls", "others", "name", "values"), [*wrong_options()])
def test_options_of_classes_are_refused_by_name(
    cls: Any, others: dict[str, Any], name: str, values: tuple[Any, ...]
) -> None:
    for value in values:
        error = refusal(name, value, lambda **one: cls(**{**others, **one}))
        assert isinstance(error, TypeError | ValueError)


@pytest.mark.parametrize("cls", [one for one in OWN if one is not sa.ShardParallel])
def test_every_method_and_layer_checks_what_all_have(cls: Any) -> None:
    has_method, has_layer = issubclass(cls, sa.Method), hasattr(cls, "remat")
    shared = {"time_limit_s": 0} if has_method else {"remat": "all"} if has_layer else {}
    for name, value in shared.items():
        refusal(name, value, lambda cls=cls, **one: cls(**{**OWN[cls][0], **one}))


@pytest.mark.parametrize("cls", OWN)
def test_every_option_is_in_the_table(cls: Any) -> None:
    names = {one.name for one in dataclasses.fields(cls)} - FILLED_IN
    shared = {*METHOD} if issubclass(cls, sa.Method) else {*LAYERS} if "remat" in names else set()
    own = set(OWN[cls][1]) - ({"meshes"} if cls is sa.ManualStages else set())
    assert names == shared | own


def add(x: Any, y: Any) -> Any:
    return x + y


@pytest.mark.parametrize("name", PARALLELIZE)
def test_options_of_parallelize_are_refused_by_name(name: str) -> None:
    for value in PARALLELIZE[name]:
        refusal(name, value, lambda **one: sa.parallelize(**{"fun": add, **one}))


def test_stages_that_are_given_fit_the_meshes() -> None:
    for stages in (sa.UniformStages(3), sa.ManualStages((1,) * 3, ((1, 1),) * 3)):
        with pytest.raises(OptionError, match="num_chunks=2 does not divide 3 stages"):
            sa.PipeshardParallel(stages=stages, schedule="interleaved", num_chunks=2)


# What is meant well.


def test_integers_of_numpy_are_integers() -> None:
    two: Any = np.int64(2)
    method = sa.ShardParallel(
        mesh_shape=np.array([2, 4]),  # type: ignore[arg-type]
        num_micro_batches=two,
        attention_keys=np.uint8(3),  # type: ignore[arg-type]
        time_limit_s=np.float32(3),  # type: ignore[arg-type]
        memory_budget=np.float64(1e9),
        pad=np.True_,  # type: ignore[arg-type]
    )
    plain = sa.ShardParallel(
        mesh_shape=(2, 4),
        num_micro_batches=2,
        attention_keys=3,
        time_limit_s=3.0,
        memory_budget=1e9,
    )
    assert method == plain
    # As text, which passes are told.
    assert method.brief() == plain.brief()
    assert sa.UniformStages(two, np.prod([2, 2, 1], keepdims=True)) == sa.UniformStages(2, (4,))
    assert sa.AutoLayers(num_layers=two) == sa.AutoLayers(num_layers=2)
    assert sa.ManualStages([two], np.array([[1, 8]])) == sa.ManualStages((2,), ((1, 8),))  # type: ignore[arg-type]
    assert sa.MegatronParallel(tensor=two) == sa.MegatronParallel(tensor=2)
    assert sa.ExpertParallel(expert=two) == sa.ExpertParallel(expert=2)


def test_numbers_of_numpy_name_arguments() -> None:
    one: Any = np.int64(1)
    for given in (one, np.array([1]), [one], {one: True}):
        step = sa.parallelize(add, method=sa.DataParallel(), batch_argnums=given)
        assert step.plan(jnp.ones((16, 4)), jnp.ones((16, 4))).program.batch == {1}
    numbers: Any = np.array([0])
    step = sa.parallelize(add, donate_argnums=numbers, static_argnums=one)
    assert step.plan(jnp.ones((16, 4)), 2).program.donated == (0,)


def test_devices_are_taken_one_by_one_or_as_an_array() -> None:
    x = jnp.ones((8, 16))

    def devices_of(given: Any) -> list[Any]:
        step = sa.parallelize(add, method=sa.DataParallel(), devices=given)
        return list(step.compile(x, x).mesh.devices.flat)

    grid = np.array(DEVICES[:4]).reshape(2, 2)
    assert devices_of(grid) == devices_of(iter(DEVICES[:4])) == DEVICES[:4]
    assert devices_of(DEVICES[1]) == [DEVICES[1]]


def test_names_of_axes_that_xla_cannot_read_are_refused_where_inputs_bring_them() -> None:
    mesh = jax.sharding.Mesh(np.array(DEVICES), ("dé",))
    x = jax.ShapeDtypeStruct((8, 8), "f", sharding=jax.sharding.NamedSharding(mesh, P()))
    with pytest.raises(sa.MeshError, match=r"names\[0\] must be a name of ASCII .*, got 'dé'"):
        sa.parallelize(add, method=sa.FollowParallel()).plan(x, x)


# Methods of what `parallelize` returns, and of plans.


@pytest.mark.parametrize(
    ("name", "value"),
    [
        *(("batch", one) for one in (3, {"x": 1}, "xy", jnp.ones(3), np.ones(3))),
        *(("kwargs", one) for one in (3, [1], "xy")),
        *(("argnum", one) for one in (1.0, None, True, [0])),
        ("init_fn", 3),
    ],
)
def test_what_makes_no_state_is_refused(name: str, value: Any) -> None:
    given = {"init_fn": lambda: jnp.ones(3), **({name: value} if name == "init_fn" else {})}
    options = {} if name == "init_fn" else {name: value}
    for step in (sa.parallelize(add), Holder().add):
        with pytest.raises(OptionError, match=rf"^{name} must be"):
            step.create_state(*given.values(), **options)


class Holder:
    """Has a parallelised method."""

    @sa.parallelize(static_argnums=0)
    def add(self, x: Any, y: Any) -> Any:
        """The sum."""
        return x + y


def test_shardings_are_those_of_a_number_or_a_name() -> None:
    compiled = sa.parallelize(add, method=sa.DataParallel()).compile(jnp.ones(8), jnp.ones(8))
    one: Any = np.int64(1)
    assert compiled.argument_shardings(one) == compiled.argument_shardings("y")
    for argnum in (1.0, None, True, [1]):
        refusal("argnum", argnum, compiled.argument_shardings)


def test_what_is_no_folder_is_refused() -> None:
    for path in (3, None, b"x"):
        with pytest.raises(OptionError, match=rf"^path must be .*, got {path!r}$"):
            sa.save_checkpoint(path, jnp.ones(3))  # type: ignore[arg-type]
        with pytest.raises(OptionError, match=rf"^path must be .*, got {path!r}$"):
            sa.parallelize(add).restore_state(path, jnp.ones(3))  # type: ignore[arg-type]
    with pytest.raises(OptionError, match=r"^wait must be True or False, got 'no'$"):
        sa.save_checkpoint("x", jnp.ones(3), wait="no")  # type: ignore[arg-type]


def test_what_is_no_plan_or_no_number_of_rows_is_refused() -> None:
    plan = sa.parallelize(lambda x: jnp.tanh(x @ x) + x).plan(jnp.ones((8, 8)))
    others: tuple[Any, ...] = (None, 3, "plan", sa.Plan)
    for other in others:
        with pytest.raises(
            OptionError, match=rf"^other must be a Plan, got {re.escape(repr(other))}"
        ):
            plan.diff(other)
    for limit in (-1, 2.0, "2", True, [1]):
        refusal("limit", limit, lambda **one: plan.table("operators", **one))
    for kind in (None, 3, "rows"):
        with pytest.raises(OptionError, match=f"table is {kind!r}, must be one of parameters"):
            plan.table(kind)  # type: ignore[arg-type]
    for methods in (3, "data", [sa.DataParallel]):
        refusal("methods", Wrong(methods, re.sub(r"[][]", "", repr(methods))), plan.baselines)
    rows = len(plan.table().rows)
    two: Any = np.int64(2)
    assert [len(plan.table(limit=one).rows) for one in (None, 0, two)] == [rows, 0, 2]


def test_errors_of_the_package_are_not_restated() -> None:
    with pytest.raises(sa.MeshError, match=r"^own$"), restated("x: "):
        raise sa.MeshError("own")
    with pytest.raises(OptionError, match=r"^x: foreign$"), restated("x: "):
        raise ValueError("foreign")
