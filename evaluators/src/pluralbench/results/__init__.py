"""Results of runs: items, metrics and provenance, typed and versioned.

The package is also a function: `pluralbench.results(folder)` reads the numbers of all runs in a directory.
"""

import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import lazy_loader

if TYPE_CHECKING:
    import polars as pl

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)


class _Results(ModuleType):
    """Lets the package be called, since `pluralbench.results` names it as well as the function."""

    def __call__(self, folder: str | Path) -> "pl.DataFrame":
        from pluralbench.results.finding import results

        return results(folder)

    __call__.__doc__ = "See `pluralbench.results.finding.results`."


sys.modules[__name__].__class__ = _Results
