"""The kernels of a planned program: their authors' functions for blocks, linked into its text.

before:

    %1 = custom_call @alpa_kernel(%0) {backend_config = {index = 0, name = "norm",
      operands = [[array<i64: 0>, array<i64>]], results = ..., rule = ...}}

after: ``%1 = func.call @norm(%0)``, a function that jax lowered from what the partition callback of
kernel 0 answered for an argument and a result that axis 0 splits along their rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from alpa_runtime.device_mesh import Axes, abstract_mesh
from alpa_runtime.platforms import lowered_platform
from jax._src.core import extend_axis_env_nd
from jax._src.interpreters.mlir import build_mlir_module_helper
from jax.extend.core import jaxpr_as_fun
from jax.extend.mlir import ir
from jax.extend.mlir.dialects import func
from jax.interpreters import mlir
from jax.sharding import AbstractMesh, NamedSharding, PartitionSpec

from stablehlo_alpa.errors import ShardingError, TraceError
from stablehlo_alpa.frontend.kernel_calls import KERNEL_TARGET, Kernel
from stablehlo_alpa.units import format_bytes

Dims = tuple[tuple[str, ...], ...]
"""Per dimension the mesh axes that split it, major to minor."""


def link_kernels(
    text: str, kernels: Sequence[Kernel], axes: Axes, platform: str
) -> tuple[str, list[str]]:
    """Puts the functions that authors give for blocks in the places of the calls of kernels.

    Args:
        text: the program of a device, or of the whole arrays, in which kernels are what they are
            made of.
        kernels: by number.
        axes: of the mesh.
        platform: what jax lowers them for; empty for the default device of this process.

    Returns:
        the text, and a remark for each kernel that has its blocks split otherwise than planned.

    Raises:
        ShardingError: a partition callback answers what cannot be run, or the text calls kernels
            that are not there.
        TraceError: jax cannot lower a kernel for the platform.
    """
    if KERNEL_TARGET not in text:
        return text, []
    context = mlir.make_ir_context()
    context.allow_unregistered_dialects = True
    with context, ir.Location.unknown():
        module = ir.Module.parse(text)
        linking = _Linking(module, kernels, axes, platform)
        for op in _calls(module):
            linking.link(op)
        asm = module.operation.get_asm(
            print_generic_op_form=True, enable_debug_info=True, assume_verified=True
        )
    return str(asm), list(dict.fromkeys(linking.remarks))


@dataclass(frozen=True)
class _Tensor:
    """A tensor of a call: its block, and the axes that split the whole.

    Attributes:
        shape: of the block.
        dtype: numpy's.
        dims: of the whole.
    """

    shape: tuple[int, ...]
    dtype: Any
    dims: Dims

    def whole(self, mesh: AbstractMesh) -> jax.ShapeDtypeStruct:
        """The whole tensor as callbacks take it."""
        pairs = zip(self.shape, self.dims, strict=True)
        sizes = [size * _parts(mesh, axes) for size, axes in pairs]
        entries = [axes[0] if len(axes) == 1 else axes or None for axes in self.dims]
        sharding = NamedSharding(mesh, PartitionSpec(*entries))
        return jax.ShapeDtypeStruct(tuple(sizes), self.dtype, sharding=sharding)


class _Linking:
    """One module whose calls are replaced.

    Attributes:
        remarks: of the calls so far.
    """

    def __init__(self, module: Any, kernels: Sequence[Kernel], axes: Axes, platform: str) -> None:
        self.remarks: list[str] = []
        self._module, self._kernels, self._platform = module, kernels, platform
        self._mesh = abstract_mesh(axes)
        self._symbols = ir.SymbolTable(module.operation)
        self._names: dict[Any, str] = {}

    def link(self, op: Any) -> None:
        """Makes a call of a kernel one of a function."""
        config = ir.DictAttr(op.attributes["backend_config"])
        number = ir.IntegerAttr(config["index"]).value
        if number >= len(self._kernels):
            raise ShardingError(
                f"the program calls the kernel {ir.StringAttr(config['name']).value}, which is not "
                "there: kernels are made for their blocks in the process that traced them"
            )
        kernel = self._kernels[number]
        operands = self._tensors(config, "operands", op.operands, kernel.whole.in_avals)
        results = self._tensors(config, "results", op.results, kernel.whole.out_avals)
        is_whole = "operands" not in config
        key = (number, is_whole, operands, results)
        if key not in self._names:
            self._names[key] = self._made(kernel, is_whole, operands, results)
        types = [result.type for result in op.results]
        with ir.InsertionPoint(op), op.location:
            callee = ir.FlatSymbolRefAttr.get(self._names[key])
            made = func.CallOp(types, callee, list(op.operands))
        for old, new in zip(op.results, made.results, strict=True):
            old.replace_all_uses_with(new)
        op.erase()

    def _tensors(
        self, config: Any, side: str, values: Any, avals: Sequence[Any]
    ) -> tuple[_Tensor, ...]:
        names = self._mesh.axis_names
        found = []
        for index, (value, aval) in enumerate(zip(values, avals, strict=True)):
            shape = tuple(value.type.shape)
            dims: Dims = ((),) * len(shape)
            if side in config:
                entry = ir.ArrayAttr(ir.ArrayAttr(config[side])[index])
                dims = tuple(tuple(names[i] for i in ir.DenseI64ArrayAttr(dim)) for dim in entry)
            found.append(_Tensor(shape, np.dtype(aval.dtype), dims))
        return tuple(found)

    def _made(
        self,
        kernel: Kernel,
        is_whole: bool,
        operands: tuple[_Tensor, ...],
        results: tuple[_Tensor, ...],
    ) -> str:
        """The name of the function for blocks."""
        if is_whole:
            block: Any = jaxpr_as_fun(kernel.whole)
        else:
            block, moved = _block(kernel, self._mesh, operands, results)
            if moved:
                self.remarks.append(
                    f"kernel {kernel.name}: its author has its tensors split otherwise than "
                    f"planned, every device moves {format_bytes(moved)} around it, which the "
                    "plan does not count; a sharding rule with fewer factors says so"
                )
        lowered = _lowered(kernel, block, self._mesh, operands, self._platform)
        source = ir.Module.parse(lowered)
        name: str = mlir.merge_mlir_modules(
            self._module, kernel.name, source, dst_symtab=self._symbols
        )
        return name


def _calls(module: Any) -> list[Any]:
    found: list[Any] = []

    def visit(op: Any) -> Any:
        is_call = op.name == "stablehlo.custom_call"
        if is_call and ir.StringAttr(op.attributes["call_target_name"]).value == KERNEL_TARGET:
            found.append(op)
        return ir.WalkResult.ADVANCE

    module.operation.walk(visit)
    return found


def _lowered(
    kernel: Kernel, block: Any, mesh: AbstractMesh, operands: Sequence[_Tensor], platform: str
) -> str:
    """The module of a function of blocks, as jax's own partitioning lowers it."""
    avals = [jax.ShapeDtypeStruct(one.shape, one.dtype) for one in operands]
    closed = jax.make_jaxpr(block, axis_env=list(mesh.shape.items()))(*avals)
    # Positions and sizes are all that lowering reads of it.
    around: Any = mesh
    context = mlir.SPMDAxisContext(around, frozenset(mesh.axis_names))
    with extend_axis_env_nd(mesh.shape.items()):
        try:
            module = build_mlir_module_helper(
                closed,
                name=kernel.name,
                platforms=(lowered_platform(platform),),
                # Kernels ask it what the devices are, where it is the platform's.
                backend=jax.devices()[0].client,
                axis_context=context,
            )
        except NotImplementedError as error:
            raise TraceError(f"jax cannot lower the kernel {kernel.name}: {error}") from error
    text = module.operation.get_asm(print_generic_op_form=True, enable_debug_info=True)
    return str(text)


def _block(
    kernel: Kernel,
    mesh: AbstractMesh,
    operands: Sequence[_Tensor],
    results: Sequence[_Tensor],
) -> tuple[Any, float]:
    """What a device computes, as a function of flat blocks, and the bytes moved around it."""
    arguments = kernel.in_tree.unflatten([one.whole(mesh) for one in operands])
    asked = kernel.out_tree.unflatten([one.whole(mesh) for one in results])
    try:
        answer = kernel.partition(mesh, arguments, asked)
    except Exception as error:
        error.add_note(
            f"in the partition callback of kernel {kernel.name}, asked for arguments "
            f"{[one.dims for one in operands]} and results {[one.dims for one in results]}"
        )
        raise
    _, lower_fn, out_shardings, in_shardings = answer
    given = _dims(kernel, mesh, "argument", kernel.in_tree, in_shardings, operands)
    made = _dims(kernel, mesh, "result", kernel.out_tree, out_shardings, results)

    def block(*values: Any) -> list[Any]:
        blocks = [
            _moved(value, mesh, one.dims, dims)
            for value, one, dims in zip(values, operands, given, strict=True)
        ]
        returned = kernel.out_tree.flatten_up_to(lower_fn(*kernel.in_tree.unflatten(blocks)))
        for index, (value, one, dims) in enumerate(zip(returned, results, made, strict=True)):
            _check_block(kernel, mesh, index, value, one, dims)
        return [
            _moved(value, mesh, dims, one.dims)
            for value, one, dims in zip(returned, results, made, strict=True)
        ]

    moved = 0.0
    for tensors, answered in ((operands, given), (results, made)):
        for one, dims in zip(tensors, answered, strict=True):
            if dims != one.dims:
                moved += float(np.prod(one.whole(mesh).shape)) * one.dtype.itemsize
    return block, moved


def _dims(
    kernel: Kernel,
    mesh: AbstractMesh,
    side: str,
    tree: Any,
    shardings: Any,
    tensors: Sequence[_Tensor],
) -> list[Dims]:
    """What a partition callback answers for one side."""
    found = []
    for index, (sharding, one) in enumerate(
        zip(tree.flatten_up_to(shardings), tensors, strict=True)
    ):
        where = f"kernel {kernel.name} answers for {side} {index}"
        if not isinstance(sharding, NamedSharding) or sharding.mesh.shape != mesh.shape:
            raise ShardingError(
                f"{where} the sharding {sharding}, it is asked for one of the mesh "
                f"{dict(mesh.shape)}: return jax.sharding.NamedSharding(mesh, spec)"
            )
        entries = (*sharding.spec, *[None] * (len(one.shape) - len(sharding.spec)))
        dims = tuple(_axes(entry) for entry in entries)
        for size, axes in zip(one.whole(mesh).shape, dims, strict=True):
            if size % _parts(mesh, axes):
                raise ShardingError(
                    f"{where} {sharding.spec}, which cuts a dimension of size {size} into "
                    f"{_parts(mesh, axes)} parts: sizes must divide"
                )
        found.append(dims)
    return found


def _axes(entry: Any) -> tuple[str, ...]:
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return (entry,) if isinstance(entry, str) else tuple(entry)


def _parts(mesh: AbstractMesh, axes: Sequence[str]) -> int:
    return int(np.prod([mesh.shape[axis] for axis in axes], dtype=np.int64))


def _check_block(
    kernel: Kernel, mesh: AbstractMesh, index: int, value: Any, one: _Tensor, dims: Dims
) -> None:
    whole = one.whole(mesh).shape
    expected = tuple(s // _parts(mesh, axes) for s, axes in zip(whole, dims, strict=True))
    if (tuple(value.shape), np.dtype(value.dtype)) != (expected, one.dtype):
        raise ShardingError(
            f"kernel {kernel.name}: result {index} of its function of blocks is "
            f"{np.dtype(value.dtype).name}{list(value.shape)}, a block of its sharding is "
            f"{one.dtype.name}{list(expected)}"
        )


def _moved(value: Any, mesh: AbstractMesh, source: Dims, target: Dims) -> Any:
    """A block of one sharding as a block of another, under a trace with the mesh's axes."""
    kept = [
        from_ if from_ == to[: len(from_)] else () for from_, to in zip(source, target, strict=True)
    ]
    for dimension, (axes, own) in enumerate(zip(source, kept, strict=True)):
        for axis in reversed(axes[len(own) :]):
            value = jax.lax.all_gather(value, axis, axis=dimension, tiled=True)
    for dimension, (axes, own) in enumerate(zip(target, kept, strict=True)):
        for axis in axes[len(own) :]:
            size = value.shape[dimension] // mesh.shape[axis]
            start = jax.lax.axis_index(axis) * size
            value = jax.lax.dynamic_slice_in_dim(value, start, size, dimension)
    return value
