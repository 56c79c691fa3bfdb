"""Names as people read them: paths of values, modules of operators, ends of what is too long."""

from __future__ import annotations

import re
from collections.abc import Sequence

# Behind the name of a part of a stack.
_ROWS = re.compile(r"\[(:, )*\d+:\d+\]$")
# A part of a key path: the argument, an attribute, a key or an index.
_PART = re.compile(
    r"^(?P<root>[^.\[]+)"
    r"|\.(?P<attribute>\w+)"
    r"|\[(?:'(?P<single>[^']*)'|\"(?P<double>[^\"]*)\""
    r"|<flat index (?P<flat>\d+)>|(?P<other>[^\]]*))\]"
)
# Transformations of jax around a scope: transpose(jvp(GPT)).
_WRAPPED = re.compile(r"^(?P<wrapper>\w+)\((?P<inside>.*)\)$")
_LAYER = re.compile(r"^alpa_layer_\d+$")
_CALLS = frozenset({"jit", "pjit", "xla_call", "custom_jvp", "custom_vjp"})
# Scopes that jax makes itself, for control flow and recomputation.
_STRUCTURE = frozenset(
    "while body cond closed_call checkpoint remat rematted_computation core_call scan "
    "custom_jvp_call custom_vjp_call shard_map ~".split()
)


def stages_text(numbers: Sequence[int]) -> str:
    """``stage 3``, or ``stages 0, 4``."""
    return f"stage{'s' if len(numbers) > 1 else ''} {', '.join(map(str, numbers))}"


def path_of(name: str) -> str:
    """``state/params/layer_3/kernel`` of a key path ``state.params['layer_3']['kernel']``."""
    parts = [next(g for g in match.groups() if g is not None) for match in _PART.finditer(name)]
    return "/".join(parts) if parts else name


def leaf_path_of(name: str) -> str:
    """The same of the leaf that the caller has, where the plan has rows of it, ``kernel[0:4]``."""
    return path_of(_ROWS.sub("", name))


def module_of(name: str) -> tuple[str, ...]:
    """The modules around an operator, outermost first, ``("GPT", "layer_0", "up")``.

    Args:
        name: scopes and kind, ``jit(step)/transpose(jvp(GPT))/layer_0/up/dot_general#2``. What
            jax puts there itself (transformations, inner functions, loops) is left out. Behind a
            ``jax.checkpoint`` the modules stand again, from the first:
            ``transpose(jvp(GPT))/blocks/jvp(GPT)/blocks/checkpoint/layer_0/add``.
    """
    modules: list[str] = []
    for scope in _scopes(name)[:-1]:
        inside = _unwrapped(scope)
        # A method of a module, embed.attend, or a class of a package, eqx.nn.Linear.
        module, *rest = inside.split(".")
        inside = module if len(rest) < 2 else rest[-1]
        # An einsum is named after its subscripts.
        if inside and inside not in _STRUCTURE and "->" not in scope:
            if modules and inside == modules[0] and _WRAPPED.match(scope):
                modules.clear()
            modules.append(inside)
    # Layers that were marked for a pipeline say less than the modules in them.
    return tuple(m for m in modules if not _LAYER.match(m)) or tuple(modules)


def _scopes(name: str) -> list[str]:
    """Parts between slashes, those inside of parentheses apart."""
    parts, depth = [""], 0
    for letter in name:
        depth += (letter == "(") - (letter == ")")
        if letter == "/" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts


def _unwrapped(scope: str) -> str:
    """The module inside of transformations; nothing where it is a function."""
    while match := _WRAPPED.match(scope):
        if match["wrapper"] in _CALLS:
            return ""
        scope = match["inside"]
    return scope


def cut_left(text: str, width: int) -> str:
    """The end of a text that is too long, from a slash where there is one near."""
    if len(text) <= width:
        return text
    kept = text[len(text) - width + 1 :]
    slash = kept.find("/")
    # A shorter whole part reads better than a longer torn one.
    return "…" + (kept[slash:] if 0 <= slash <= width // 2 else kept)
