"""The steps that ``accelerators.py`` has compiled: the suite's models and those of the examples."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import report

import stablehlo_alpa

sys.path.insert(0, str(report.ROOT / "examples"))


@dataclass(frozen=True)
class Step:
    """One step.

    Attributes:
        fun: ``fun(*args)``.
        args: pytrees of arrays or of ``jax.ShapeDtypeStruct``; static ones are plain values.
        static: positions of static arguments.
        donated: positions of arguments that a step writes over.
        has_layers: whether its gradients are this library's, so that it makes a pipeline.
        has_statistics: whether rows of a batch meet each other, as in batch normalisation.
        has_forms: whether jax lowers it otherwise for the target than for the devices at hand.
        has_rival: whether Shardy has a program for its plan: in none of its do blocks go around.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]
    static: Sequence[int] = ()
    donated: Sequence[int] = ()
    has_layers: bool = False
    has_statistics: bool = False
    has_forms: bool = False
    has_rival: bool = True

    def plan(
        self, method: stablehlo_alpa.Method, cluster: stablehlo_alpa.ClusterSpec
    ) -> stablehlo_alpa.Plan:
        """The plan of the step.

        Args:
            method: how to plan.
            cluster: for what.
        """
        parallel = stablehlo_alpa.parallelize(
            self.fun,
            method=method,
            cluster=cluster,
            static_argnums=self.static,
            donate_argnums=self.donated,
            # A cluster of as many devices as there are would be taken for those.
            devices=jax.devices()[:1] if self.has_forms else None,
        )
        return parallel.plan(*self.args)


def _suite(model: str) -> Step:
    case = importlib.import_module(f"models.{model}").make()
    has_statistics = model == "wide_resnet"
    return Step(case.step, case.args, donated=(0,), has_layers=True, has_statistics=has_statistics)


def _sampler() -> Step:
    """A word drawn from a vocabulary."""
    import sampler

    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    tokens = jax.ShapeDtypeStruct((sampler.BATCH, sampler.LENGTH), jnp.int32)
    params = jax.eval_shape(sampler.Decoder().init, key, tokens)
    return Step(sampler.draw, (params, tokens, key, 40), static=(3,))


def _unet_space() -> Step:
    """One image, so that rows and columns are split."""
    import unet_space

    shape = (unet_space.BATCH, 128, 128)
    key = jax.ShapeDtypeStruct((2,), jnp.uint32)
    image = jax.ShapeDtypeStruct((*shape, 3), jnp.float32)
    labels = jax.ShapeDtypeStruct(shape, jnp.int32)
    params = jax.eval_shape(unet_space.UNet().init, key, image)
    state = jax.eval_shape(unet_space.OPTIMIZER.init, params)
    return Step(unet_space.train_step, (params, state, image, labels), donated=(0, 1))


def _pallas_norm() -> Step:
    """Norms by a kernel of Pallas, which is made anew for the rows of a device."""
    import pallas_norm

    x = jax.ShapeDtypeStruct(
        (pallas_norm.BATCH, pallas_norm.LENGTH, pallas_norm.HIDDEN), jnp.float32
    )
    params = jax.eval_shape(pallas_norm.Model().init, jax.ShapeDtypeStruct((2,), jnp.uint32), x)
    state = jax.eval_shape(pallas_norm.OPTIMIZER.init, params)
    step = pallas_norm.train_step
    return Step(step, (params, state, x, x), donated=(0, 1), has_forms=True)


def _ragged_experts() -> Step:
    """Experts with as many tokens as they happen to get."""
    import ragged_experts

    shape = (ragged_experts.BATCH, ragged_experts.LENGTH, ragged_experts.HIDDEN)
    x = jax.ShapeDtypeStruct(shape, jnp.float32)
    params = jax.eval_shape(ragged_experts.Model().init, jax.ShapeDtypeStruct((2,), jnp.uint32), x)
    state = jax.eval_shape(ragged_experts.OPTIMIZER.init, params)
    step = ragged_experts.train_step
    return Step(step, (params, state, x, x), donated=(0, 1), has_forms=True)


def _long_context() -> Step:
    """Attention over 131072 tokens, whose scores no device has as a whole."""
    import long_context

    arguments = long_context.shapes(131072)
    return Step(long_context.train_step, arguments, donated=(0, 1), has_rival=False)


_EXAMPLES: dict[str, Callable[[], Step]] = {
    "sampler": _sampler,
    "unet_space": _unet_space,
    "pallas_norm": _pallas_norm,
    "ragged_experts": _ragged_experts,
    "long_context": _long_context,
}

QUICK_MODELS = ("mlp", "gpt")
MODELS = (
    *QUICK_MODELS,
    "llama",
    "moe",
    "vit",
    "wide_resnet",
    "unet",
    "encoder_decoder",
    "lstm",
    "mixer",
    *_EXAMPLES,
)


def step_of(model: str) -> Step:
    """The step of a model.

    Args:
        model: one of ``MODELS``.
    """
    return _EXAMPLES[model]() if model in _EXAMPLES else _suite(model)
