"""What is known of cells that are far from the paper's."""

from __future__ import annotations

from collections.abc import Mapping

_PRODUCTS = (
    "Products and convolutions are priced by what others measured on a V100 with CUDA 10.1 and "
    "cuDNN 7.6, by the fastest algorithm; which ones the paper's XLA chose it does not say."
)
_NO_DETAILS = (
    "Micro-batches are not smaller here; the paper, which tuned their number for every system, "
    "does not say what it ran."
)
_OPEN = (
    "Only inputs are prescribed in ours: products may be split otherwise, and are where the search "
    "finds that faster."
)
_PROPAGATED = (
    "What the inputs leave open is searched for in ours; the paper's propagates shardings without "
    "looking at what they cost."
)
_NEAR = (
    "Of the 15.8 GiB of a V100 CUDA, cuDNN and NCCL take a part, and an allocator leaves gaps: "
    "neither is in our account."
)
_BLOCKS = (
    "Blocks of a model have as many operators each, so that layers of equal operators are nearly "
    "blocks; what the paper counts as an operator it does not say."
)
_LITTLE_GATHERED = (
    "The paper's third stage holds all of what arrives on all of its devices; ours splits it along "
    "batch and input channels, so that few devices hold the same."
)

REMARKS: Mapping[tuple[str, str, str, int], str] = {
    ("7", "Wide-ResNet", "alpa", 1): _PRODUCTS,
    **{
        ("7", family, system, n): _NO_DETAILS
        for family in ("GPT", "MoE", "Wide-ResNet")
        for system in ("inter", "rival")
        for n in (4, 8, 16, 32, 64)
    },
    **{("8", family, "ilp", 1): _PRODUCTS for family in ("GPT", "MoE", "Wide-ResNet")},
    **{
        ("8", family, way, 1): "As on one device all ways are: see ilp."
        for family in ("GPT", "MoE", "Wide-ResNet")
        for way in ("data", "zero-2", "zero-3", "heuristic")
    },
    **{
        ("8", family, way, n): said
        for family in ("GPT", "MoE", "Wide-ResNet")
        for way, said in (("zero-3", _OPEN), ("heuristic", _PROPAGATED))
        for n in (2, 4, 8)
    },
    ("8", "GPT", "data", 2): _NEAR,
    **{("8", "MoE", "data", n): _NEAR for n in (2, 4)},
    **{("8", "Wide-ResNet", way, n): _NEAR for way, n in (("data", 4), ("zero-2", 8))},
    ("cut", "MoE", "", 32): (
        "The search prices what a stage receives as if it came over the network from another host "
        "(a heuristic); of stages on half a host every second border lies within one, as the "
        "simulation knows: stages that small are dearer in the search than they are."
    ),
    **{("9", "Wide-ResNet", "equal operator", n): _BLOCKS for n in (8, 16, 32)},
    ("9", "GPT", "equal operator", 16): _BLOCKS,
    ("9", "Wide-ResNet", "equal layer", 8): (
        "Ours has two stages of four devices, the cut that the authors' search has published for "
        "dp; the paper's equal layers are slower than its equal operators."
    ),
    ("11", "Wide-ResNet", "without all-gather", 16): _LITTLE_GATHERED,
    ("11", "Wide-ResNet", "without all-gather", 32): (
        "In ours three of the four stages split the batch: only at the last border anything is "
        "gathered."
    ),
}
"""Figure (or "cut"), family, system, devices -> a sentence; what has none is not explained."""
