"""Import every module of a package, in an environment that has only what the package declares.

    MODULE=PACKAGE pytest tests/support/import_all.py

`.ci/run` gives it to pytest beside the package's own tests, since a process of its own would import for as long again.
A module may want an extra that is not installed; anything else that is missing is an error.
"""

import os
import re
from importlib import import_module
from importlib.metadata import distribution
from pkgutil import walk_packages

import pytest


@pytest.mark.smoke
@pytest.mark.filterwarnings("ignore")
def test_every_module_is_imported() -> None:
    name = os.environ["MODULE"]
    package = import_module(name)
    extras = {
        re.split(r"[^A-Za-z0-9_.-]", wanted)[0].replace("-", "_").lower()
        for wanted in distribution(name.replace("_", "-")).requires or ()
        if "extra ==" in wanted
    }
    imported = 0
    for module in walk_packages(package.__path__, f"{name}."):
        try:
            import_module(module.name)
            imported += 1
        except ModuleNotFoundError as error:
            if (error.name or "").split(".")[0] not in extras:
                raise
    assert imported
