"""What ``replicated.py`` plans: train and sampling steps of models that are made of packages.

Half of them are networks that the packages ship. Nothing is computed but a few small states:
parameters and batches are shapes.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import equinox as eqx
import flax.linen as nn
import haiku as hk
import jax
import jax.numpy as jnp
import numpyro
import numpyro.distributions as dist
import optax
from flax import nnx
from numpyro.infer import SVI, Trace_ELBO
from numpyro.infer.autoguide import AutoMultivariateNormal, AutoNormal
from numpyro.infer.hmc_util import velocity_verlet


@dataclass(frozen=True)
class Step:
    """One step in shapes.

    Attributes:
        fun: ``fun(*args)``.
        args: pytrees of ``jax.ShapeDtypeStruct``.
    """

    fun: Callable[..., Any]
    args: tuple[Any, ...]


def _reals(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.float32)


def _integers(*shape: int) -> Any:
    return jax.ShapeDtypeStruct(shape, jnp.int32)


def _key() -> Any:
    return jax.ShapeDtypeStruct((2,), jnp.uint32)


def _suite(module: str, **sizes: Any) -> Callable[[], Step]:
    """A model of the suite, of which no array is made."""

    def make() -> Step:
        made: list[Any] = []

        def args() -> Any:
            made.append(importlib.import_module(f"models.{module}").make(**sizes))
            return made[0].args

        shapes = jax.eval_shape(args)
        return Step(made[0].step, shapes)

    return make


def _trained(loss: Callable[..., Any], params: Any, *batch: Any, optimizer: Any = None) -> Step:
    """One step of Adam (or of another optimiser) on ``loss(params, *batch)``."""
    transform = optimizer or optax.adam(1e-3)

    def step(params: Any, state: Any, *batch: Any) -> Any:
        value, gradients = jax.value_and_grad(loss)(params, *batch)
        updates, state = transform.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, value

    return Step(step, (params, jax.eval_shape(transform.init, params), *batch))


def _classified(logits: jax.Array, labels: jax.Array) -> jax.Array:
    return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()


def _haiku(fun: Callable[..., Any], *batch: Any) -> Step:
    """A haiku function that returns a loss, with whatever state it keeps."""
    model = hk.transform_with_state(fun)
    params, state = jax.eval_shape(model.init, _key(), *batch)
    transform = optax.adam(1e-3)

    def step(params: Any, state: Any, optimizer: Any, key: Any, *batch: Any) -> Any:
        def loss(params: Any) -> Any:
            return model.apply(params, state, key, *batch)

        (value, new_state), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        updates, optimizer = transform.update(gradients, optimizer, params)
        return optax.apply_updates(params, updates), new_state, optimizer, value

    return Step(step, (params, state, jax.eval_shape(transform.init, params), _key(), *batch))


def haiku_resnet() -> Step:
    """ResNet-50 of haiku."""

    def loss(images: Any, labels: Any) -> Any:
        return _classified(hk.nets.ResNet50(1000)(images, is_training=True), labels)

    return _haiku(loss, _reals(256, 224, 224, 3), _integers(256))


def haiku_mobilenet() -> Step:
    """MobileNet of haiku."""

    def loss(images: Any, labels: Any) -> Any:
        return _classified(hk.nets.MobileNetV1(num_classes=1000)(images, is_training=True), labels)

    return _haiku(loss, _reals(256, 224, 224, 3), _integers(256))


def haiku_vqvae() -> Step:
    """An autoencoder with haiku's vector quantiser: an argmin over the codes."""

    def loss(images: Any) -> Any:
        x = jax.nn.relu(hk.Conv2D(128, 4, 2)(images))
        x = hk.Conv2D(64, 4, 2)(x)
        found = hk.nets.VectorQuantizerEMA(64, 512, 0.25, 0.99)(x, is_training=True)
        y = jax.nn.relu(hk.Conv2DTranspose(128, 4, 2)(found["quantize"]))
        y = hk.Conv2DTranspose(3, 4, 2)(y)
        return jnp.mean((y - images) ** 2) + found["loss"]

    return _haiku(loss, _reals(1024, 64, 64, 3))


def haiku_conv_lstm() -> Step:
    """The convolutional LSTM of haiku over a video."""

    def loss(video: Any) -> Any:
        core = hk.Conv2DLSTM((32, 32), 32, 3)
        outputs, _ = hk.dynamic_unroll(core, video[:-1], core.initial_state(video.shape[1]))
        return jnp.mean((hk.BatchApply(hk.Conv2D(3, 1))(outputs) - video[1:]) ** 2)

    return _haiku(loss, _reals(9, 32, 32, 32, 3))


def haiku_gru() -> Step:
    """Two GRUs of haiku over text."""

    def loss(tokens: Any) -> Any:
        core = hk.DeepRNN([hk.GRU(1024), hk.GRU(1024)])
        x = hk.Embed(4096, 1024)(tokens[:, :-1])
        outputs, _ = hk.dynamic_unroll(
            core, x, core.initial_state(tokens.shape[0]), time_major=False
        )
        return _classified(hk.Linear(4096)(outputs), tokens[:, 1:])

    return _haiku(loss, _integers(2048, 65))


def _equinox(make: Callable[[Any], Any], loss: Callable[..., Any], *batch: Any) -> Step:
    """A model of equinox; ``loss(model, *batch)``."""
    model = eqx.filter_eval_shape(make, _key())
    params, static = eqx.partition(model, lambda leaf: isinstance(leaf, jax.ShapeDtypeStruct))

    def of_params(params: Any, *batch: Any) -> Any:
        return loss(eqx.combine(params, static), *batch)

    return _trained(of_params, params, *batch)


def equinox_gru() -> Step:
    """A GRU cell of equinox, scanned."""

    class Recurrent(eqx.Module):
        cell: eqx.nn.GRUCell
        out: eqx.nn.Linear

        def __init__(self, key: Any) -> None:
            self.cell = eqx.nn.GRUCell(64, 512, key=key)
            self.out = eqx.nn.Linear(512, 10, key=key)

        def __call__(self, xs: Any) -> Any:
            carry = jnp.zeros(512)
            last, _ = jax.lax.scan(lambda c, x: (self.cell(x, c), None), carry, xs)
            return self.out(last)

    def loss(model: Any, xs: Any, labels: Any) -> Any:
        return _classified(jax.vmap(model)(xs), labels)

    return _equinox(Recurrent, loss, _reals(256, 64, 64), _integers(256))


def equinox_attention() -> Step:
    """An encoder of equinox's attention, layer norm and MLP."""

    class Block(eqx.Module):
        attention: eqx.nn.MultiheadAttention
        norms: tuple[eqx.nn.LayerNorm, eqx.nn.LayerNorm]
        mlp: eqx.nn.MLP

        def __init__(self, key: Any) -> None:
            self.attention = eqx.nn.MultiheadAttention(8, 512, key=key)
            self.norms = (eqx.nn.LayerNorm(512), eqx.nn.LayerNorm(512))
            self.mlp = eqx.nn.MLP(512, 512, 2048, 1, key=key)

        def __call__(self, x: Any) -> Any:
            y = jax.vmap(self.norms[0])(x)
            x = x + self.attention(y, y, y)
            return x + jax.vmap(self.mlp)(jax.vmap(self.norms[1])(x))

    def loss(model: Any, x: Any, y: Any) -> Any:
        return jnp.mean((jax.vmap(model)(x) - y) ** 2)

    return _equinox(Block, loss, _reals(64, 128, 512), _reals(64, 128, 512))


def _nnx(make: Callable[[nnx.Rngs], Any], loss: Callable[..., Any], *batch: Any) -> Step:
    """A model of flax.nnx; ``loss(model, *batch)``."""
    model = nnx.eval_shape(lambda: make(nnx.Rngs(0)))
    graph, params, rest = nnx.split(model, nnx.Param, ...)

    def of_params(params: Any, rest: Any, *batch: Any) -> Any:
        return loss(nnx.merge(graph, params, rest), *batch)

    return _trained(of_params, params, rest, *batch)


def nnx_rnn() -> Step:
    """An LSTM of flax.nnx over sequences."""

    def make(rngs: nnx.Rngs) -> Any:
        return nnx.RNN(nnx.OptimizedLSTMCell(128, 1024, rngs=rngs))

    def loss(model: Any, x: Any, y: Any) -> Any:
        carry = (jnp.zeros((x.shape[0], 1024)), jnp.zeros((x.shape[0], 1024)))
        return jnp.mean((model(x, initial_carry=carry) - y) ** 2)

    return _nnx(make, loss, _reals(2048, 64, 128), _reals(2048, 64, 1024))


def flax_ctc() -> Step:
    """Speech: flax's GRU, optax's connectionist temporal classification."""
    model = nn.Sequential([nn.RNN(nn.GRUCell(1024)), nn.Dense(64)])
    frames = _reals(2048, 128, 80)
    params = jax.eval_shape(model.init, _key(), frames)

    def loss(params: Any, frames: Any, labels: Any) -> Any:
        logits = model.apply(params, frames)
        none = jnp.zeros(logits.shape[:2])
        return optax.ctc_loss(logits, none, labels, jnp.zeros(labels.shape)).mean()

    return _trained(loss, params, frames, _integers(2048, 32))


def optax_muon() -> Step:
    """An MLP of flax under optax's Muon: products of whole matrices."""
    model = nn.Sequential([nn.Dense(4096), nn.relu, nn.Dense(4096), nn.relu, nn.Dense(4096)])
    x = _reals(32768, 4096)
    params = jax.eval_shape(model.init, _key(), x)

    def loss(params: Any, x: Any, y: Any) -> Any:
        return jnp.mean((model.apply(params, x) - y) ** 2)

    return _trained(loss, params, x, x, optimizer=optax.contrib.muon(1e-3))


def _inferred(model: Any, guide: Any, *data: Any) -> Step:
    """One update of numpyro's variational inference."""
    inference = SVI(model, guide, numpyro.optim.Adam(1e-3), Trace_ELBO())
    state = jax.eval_shape(inference.init, _key(), *data)
    return Step(inference.update, (state, *data))


def _regression(x: Any, y: Any) -> None:
    slope = numpyro.sample("slope", dist.Normal(0.0, 1.0).expand([x.shape[1]]).to_event(1))
    numpyro.sample("y", dist.Bernoulli(logits=x @ slope), obs=y)


def numpyro_regression() -> Step:
    """Variational logistic regression."""
    return _inferred(_regression, AutoNormal(_regression), _reals(2**20, 512), _integers(2**20))


def numpyro_full_rank() -> Step:
    """The same with a full covariance."""
    guide = AutoMultivariateNormal(_regression)
    return _inferred(_regression, guide, _reals(2**20, 128), _integers(2**20))


def numpyro_mixture() -> Step:
    """A mixture of Gaussians, its components summed out."""

    def model(x: Any) -> None:
        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(64)))
        means = numpyro.sample("means", dist.Normal(0.0, 1.0).expand([64, 32]).to_event(2))
        parts = dist.Independent(dist.Normal(means, 1.0), 1)
        mixture = dist.MixtureSameFamily(dist.Categorical(weights), parts)
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("x", mixture, obs=x)

    return _inferred(model, AutoNormal(model), _reals(2**20, 32))


def numpyro_autoencoder() -> Step:
    """A variational autoencoder with haiku's MLPs."""
    decode = hk.without_apply_rng(hk.transform(lambda z: hk.nets.MLP([2048, 784])(z)))
    encode = hk.without_apply_rng(hk.transform(lambda x: hk.nets.MLP([2048, 128])(x)))

    def params_of(name: str, net: Any, x: Any) -> Any:
        shapes = jax.eval_shape(net.init, _key(), x)
        return numpyro.param(name, jax.tree.map(lambda s: jnp.zeros(s.shape, s.dtype), shapes))

    def model(x: Any) -> None:
        net = params_of("decoder", decode, _reals(1, 64))
        with numpyro.plate("rows", x.shape[0]):
            z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([64]).to_event(1))
            pixels = dist.Bernoulli(logits=decode.apply(net, z)).to_event(1)
            numpyro.sample("x", pixels, obs=x)

    def guide(x: Any) -> None:
        net = params_of("encoder", encode, _reals(1, 784))
        mean, scale = jnp.split(encode.apply(net, x), 2, -1)
        with numpyro.plate("rows", x.shape[0]):
            numpyro.sample("z", dist.Normal(mean, jnp.exp(scale)).to_event(1))

    return _inferred(model, guide, _reals(65536, 784))


def numpyro_hamiltonian() -> Step:
    """Leapfrog steps of numpyro's Hamiltonian Monte Carlo on a logistic regression."""

    def sample(x: Any, y: Any, slope: Any, key: Any) -> Any:
        def potential(slope: Any) -> Any:
            logits = x @ slope
            return jnp.sum(jax.nn.softplus(logits) - y * logits) + jnp.sum(slope**2) / 2

        def kinetic(_: Any, momentum: Any) -> Any:
            return jnp.sum(momentum**2) / 2

        init, update = velocity_verlet(potential, kinetic)
        momentum = jax.random.normal(key, slope.shape)
        first = init(slope, momentum)
        last = jax.lax.fori_loop(
            0, 16, lambda _, state: update(1e-3, jnp.ones(slope.shape[0]), state), first
        )
        return last.z, last.potential_energy

    return Step(sample, (_reals(2**20, 512), _reals(2**20), _reals(512), _key()))


def flax_valid_unet() -> Step:
    """The U-Net that pads nothing, on one large image."""

    class Unet(nn.Module):
        @nn.compact
        def __call__(self, x: Any) -> Any:
            skips = []
            for features in (64, 128):
                x = self.twice(x, features)
                skips.append(x)
                x = nn.max_pool(x, (2, 2), (2, 2))
            x = self.twice(x, 256)
            for features in (128, 64):
                x = nn.ConvTranspose(features, (2, 2), (2, 2))(x)
                skip = skips.pop()
                start = (skip.shape[1] - x.shape[1]) // 2
                middle = slice(start, start + x.shape[1])
                x = self.twice(jnp.concatenate([skip[:, middle, middle], x], -1), features)
            return nn.Conv(2, (1, 1))(x)

        def twice(self, x: Any, features: int) -> Any:
            for _ in range(2):
                x = nn.relu(nn.Conv(features, (3, 3), padding="VALID")(x))
            return x

    model, image = Unet(), _reals(1, 1024, 1024, 3)

    def step(params: Any, image: Any) -> Any:
        gradients = jax.grad(lambda params: jnp.mean(model.apply(params, image) ** 2))(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients)

    return Step(step, (jax.eval_shape(model.init, _key(), image), image))


def flax_sampler() -> Step:
    """A step of sampling: flax's decoder, the 40 likeliest words, one drawn of them."""

    class Decoder(nn.Module):
        @nn.compact
        def __call__(self, tokens: Any) -> Any:
            x = nn.Embed(32000, 1024)(tokens)
            mask = nn.make_causal_mask(tokens)
            for _ in range(2):
                x = x + nn.MultiHeadDotProductAttention(16)(nn.LayerNorm()(x), mask=mask)
                x = x + nn.Dense(1024)(nn.gelu(nn.Dense(4096)(nn.LayerNorm()(x))))
            return nn.Dense(32000)(x[:, -1])

    model, tokens = Decoder(), _integers(32, 128)
    params = jax.eval_shape(model.init, _key(), tokens)

    def sample(params: Any, tokens: Any, key: Any) -> Any:
        logits, words = jax.lax.top_k(model.apply(params, tokens), 40)
        drawn = jax.random.categorical(key, logits)
        word = jnp.take_along_axis(words, drawn[:, None], 1)
        return jnp.concatenate([tokens[:, 1:], word], 1)

    return Step(sample, (params, tokens, _key()))


STEPS: Mapping[str, Callable[[], Step]] = {
    "flax gpt": _suite("gpt", layers=2, hidden=512, heads=8, vocabulary=32000, length=128),
    "flax llama": _suite("llama", batch=16, hidden=512, inner=1408, vocabulary=32000, length=128),
    "flax encoder-decoder": _suite(
        "encoder_decoder", batch=16, hidden=512, heads=8, vocabulary=16384, length=64
    ),
    "flax mixture of experts": _suite("moe", batch=64, hidden=512, vocabulary=16384, length=256),
    "flax wide resnet": _suite("wide_resnet", batch=512, size=64, channels=128, classes=1024),
    "flax u-net": _suite("unet", batch=32, size=32, channels=(64, 128)),
    "flax u-net without padding": flax_valid_unet,
    "flax ctc": flax_ctc,
    "flax sampler": flax_sampler,
    "nnx vit": _suite("vit", batch=64, size=64, patch=8, hidden=256, heads=8),
    "nnx lstm": nnx_rnn,
    "haiku transformer": _suite(
        "transformer", batch=16, length=128, vocabulary=8192, hidden=512, heads=8
    ),
    "haiku lstm": _suite("lstm", batch=2048, length=64, hidden=1024, vocabulary=8192),
    "haiku gru": haiku_gru,
    "haiku resnet-50": haiku_resnet,
    "haiku mobilenet": haiku_mobilenet,
    "haiku vq-vae": haiku_vqvae,
    "haiku convolutional lstm": haiku_conv_lstm,
    "equinox mixer": _suite("mixer", batch=64, size=64, patch=8, hidden=256),
    "equinox gru": equinox_gru,
    "equinox attention": equinox_attention,
    "optax muon": optax_muon,
    "numpyro regression": numpyro_regression,
    "numpyro full covariance": numpyro_full_rank,
    "numpyro mixture": numpyro_mixture,
    "numpyro autoencoder": numpyro_autoencoder,
    "numpyro hamiltonian": numpyro_hamiltonian,
}
"""By package and name."""

QUICK = ("equinox gru", "flax sampler", "haiku vq-vae", "numpyro mixture")
