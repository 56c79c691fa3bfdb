"""The installed planner: plans for devices that are not there, runs on virtual ones, saves.

Run by `make check-wheels` in an environment that holds the wheels and what they ask for; the
argument is a folder.
"""

from __future__ import annotations

import sys
import sysconfig
from pathlib import Path

import alpa_runtime
import jax
import jax.numpy as jnp
import numpy as np

import stablehlo_alpa
from stablehlo_alpa import _core


def train(w: dict[str, jax.Array], x: jax.Array) -> tuple[dict[str, jax.Array], jax.Array]:
    def loss(w: dict[str, jax.Array]) -> jax.Array:
        return jnp.mean((jnp.tanh(x @ w["up"]) @ w["down"]) ** 2)

    value, slopes = jax.value_and_grad(loss)(w)
    return jax.tree.map(lambda p, g: p - 0.1 * g, w, slopes), value


def main(folder: Path) -> None:
    installed = Path(sysconfig.get_path("platlib"))
    for module in (stablehlo_alpa, alpa_runtime, _core):
        assert installed in Path(str(module.__file__)).parents, module.__file__
    libraries = {line.split()[-1] for line in Path("/proc/self/maps").read_text().splitlines()}
    found = [one for one in libraries if "libLLVM" in one or "libMLIR" in one]
    assert not found, found

    random = np.random.default_rng(0)
    w = {
        name: random.normal(size=shape, scale=0.1).astype("f")
        for name, shape in {"up": (64, 256), "down": (256, 64)}.items()
    }
    x = random.normal(size=(32, 64)).astype("f")
    elsewhere = stablehlo_alpa.parallelize(train, cluster="p4d.24xlarge:1").plan(w, x)
    assert elsewhere.cluster.num_devices == 8
    print(elsewhere.summary())

    assert len(jax.devices()) == 8
    step = stablehlo_alpa.parallelize(train, method=stablehlo_alpa.DataParallel())
    expected = jax.tree.leaves(jax.jit(train)(w, x))
    for one, other in zip(jax.tree.leaves(step(w, x)), expected, strict=True):
        np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-5, atol=1e-6)
    step.plan(w, x).save(folder / "step.plan")
    arrays = {f"input_{i}": leaf for i, leaf in enumerate(jax.tree.leaves((w, x)))}
    arrays |= {f"result_{i}": np.asarray(leaf) for i, leaf in enumerate(expected)}
    np.savez(folder / "step.npz", allow_pickle=False, **arrays)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
