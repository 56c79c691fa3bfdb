"""Programs of linear algebra on batches of matrices, and matrices for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

Program = Callable[[Any], Any]
SIZE = 5


def _symmetric(a: Any) -> Any:
    return a + a.swapaxes(-1, -2).conj()


def _positive(a: Any) -> Any:
    return a @ a.swapaxes(-1, -2).conj() + SIZE * jnp.eye(SIZE, dtype=a.dtype)


def _dominant(a: Any) -> Any:
    return a + 4 * SIZE * jnp.eye(SIZE, dtype=a.dtype)


def _tridiagonal_solve(a: Any, **options: Any) -> Any:
    lower, upper = a[..., 0].at[..., 0].set(0), a[..., 1].at[..., -1].set(0)
    return lax.linalg.tridiagonal_solve(lower, 4 * SIZE + a[..., 2], upper, a, **options)


def _reflectors(a: Any) -> tuple[Any, Any]:
    raw, factors = jnp.linalg.qr(a, mode="raw")
    return raw.swapaxes(-1, -2), factors


def _multiply_by_reflectors(a: Any) -> Any:
    reflectors, factors = _reflectors(a)
    return [
        lax.linalg.ormqr(reflectors, factors, a, left=left, transpose=transpose)
        for left in (True, False)
        for transpose in (True, False)
    ]


def _solve_all_ways(a: Any) -> Any:
    factor = jnp.linalg.cholesky(_positive(a))
    return [
        lax.linalg.triangular_solve(
            factor, a, left_side=left, lower=True, transpose_a=transpose, unit_diagonal=unit
        )
        for left in (True, False)
        for transpose in (True, False)
        for unit in (True, False)
    ]


# Name of LAPACK's routine without the letter of its type -> programs that JAX lowers to it.
PROGRAMS: Mapping[str, tuple[str, Program]] = MappingProxyType(
    {
        "cholesky": ("potrf", lambda a: jnp.linalg.cholesky(_positive(a))),
        "qr": ("geqrf", lambda a: jnp.linalg.qr(a)),
        "complete qr": ("orgqr", lambda a: jnp.linalg.qr(a[..., :3], mode="complete")),
        "pivoted qr": ("geqp3", lambda a: jax.scipy.linalg.qr(a, pivoting=True)),
        "householder product": (
            "orgqr",
            lambda a: lax.linalg.householder_product(*_reflectors(a)),
        ),
        "reflectors": ("ormqr", _multiply_by_reflectors),
        "eigh": ("syevd", lambda a: jnp.linalg.eigh(_symmetric(a))),
        "eigvalsh": ("syevd", lambda a: jnp.linalg.eigvalsh(_symmetric(a))),
        "eig": ("geev", lambda a: lax.linalg.eig(a)),
        "eigvals": ("geev", lambda a: jnp.linalg.eigvals(a)),
        "svd": ("gesdd", lambda a: jnp.linalg.svd(a[..., :3])),
        "thin svd": ("gesdd", lambda a: jnp.linalg.svd(a[..., :3], full_matrices=False)),
        "singular values": ("gesdd", lambda a: jnp.linalg.svd(a, compute_uv=False)),
        "svd by qr": (
            "gesvd",
            lambda a: lax.linalg.svd(a, algorithm=lax.linalg.SvdAlgorithm.QR),
        ),
        "pinv": ("gesdd", lambda a: jnp.linalg.pinv(_dominant(a))),
        "lu": ("getrf", lambda a: lax.linalg.lu(a)),
        "solve": ("getrf", lambda a: jnp.linalg.solve(_dominant(a), a)),
        "inv": ("getrf", lambda a: jnp.linalg.inv(_dominant(a))),
        "det": ("getrf", lambda a: jnp.linalg.det(a)),
        "slogdet": ("getrf", lambda a: jnp.linalg.slogdet(a)),
        "triangular solve": ("trsm", _solve_all_ways),
        "cholesky solve": (
            "trsm",
            lambda a: jax.scipy.linalg.cho_solve(
                (jnp.linalg.cholesky(_positive(a)), True), a[..., :2]
            ),
        ),
        "tridiagonal": ("sytrd", lambda a: lax.linalg.tridiagonal(_symmetric(a))),
        "tridiagonal solve": ("gtsv", _tridiagonal_solve),
        "perturbed tridiagonal solve": (
            "tridiagonal_solve_perturbed",
            lambda a: _tridiagonal_solve(a, perturb_singular=True),
        ),
        "hessenberg": ("gehrd", lambda a: lax.linalg.hessenberg(a)),
        "schur": ("gees", lambda a: lax.linalg.schur(a)),
        "expm": ("getrf", lambda a: jax.scipy.linalg.expm(a / 8)),
    }
)

# Those of which jax has derivatives that are functions of the matrices: eigenvectors and factors of
# orthogonal matrices have one up to signs, which is the same in both programs.
DIFFERENTIABLE = (
    *("cholesky", "qr", "eigh", "eigvalsh", "eigvals", "thin svd", "singular values", "solve"),
    *("inv", "det", "slogdet", "triangular solve", "cholesky solve", "expm", "lu", "pinv"),
    "tridiagonal solve",
)


def gradient(program: Program) -> Program:
    """The derivative of a sum of all results, weighted so that none cancels."""

    def loss(a: Any) -> Any:
        leaves = [x for x in jax.tree.leaves(program(a)) if jnp.issubdtype(x.dtype, jnp.inexact)]
        weights = [jnp.linspace(1, 2, max(1, x[0].size)).reshape(x.shape[1:]) for x in leaves]
        return sum((jnp.abs(x) ** 2 * w).sum() for x, w in zip(leaves, weights, strict=True))

    return jax.grad(loss)


def matrices(count: int, dtype: Any = np.float32) -> np.ndarray:
    """``[count, SIZE, SIZE]``, well away from each other's eigenvalues."""
    random = np.random.default_rng(count)
    made = random.normal(size=(count, SIZE, SIZE)) + np.diag(3.0 * np.arange(SIZE))
    if np.issubdtype(dtype, np.complexfloating):
        made = made + 1j * random.normal(size=made.shape)
    return made.astype(dtype)
