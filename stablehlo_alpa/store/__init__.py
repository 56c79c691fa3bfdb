"""What was computed before, kept on disk by content."""

from stablehlo_alpa.store.content import digest
from stablehlo_alpa.store.entry import Record
from stablehlo_alpa.store.place import StoreOption, as_store, default_folder
from stablehlo_alpa.store.recipe import recipe_of, with_recipe
from stablehlo_alpa.store.store import OFF, Store
from stablehlo_alpa.store.version import own_version

__all__ = [
    "OFF",
    "Record",
    "Store",
    "StoreOption",
    "as_store",
    "default_folder",
    "digest",
    "own_version",
    "recipe_of",
    "with_recipe",
]
