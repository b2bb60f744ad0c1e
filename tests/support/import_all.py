"""Import every module of a package, in an environment that has only what the package declares.

    python tests/support/import_all.py PACKAGE

A module may want an extra that is not installed; anything else that is missing is an error.
"""

import re
import sys
from importlib import import_module
from importlib.metadata import distribution
from pkgutil import walk_packages

package = import_module(sys.argv[1])
name = sys.argv[1].replace("_", "-")
extras = {
    re.split(r"[^A-Za-z0-9_.-]", wanted)[0].replace("-", "_").lower()
    for wanted in distribution(name).requires or ()
    if "extra ==" in wanted
}
wanted, imported = [], 0
for module in walk_packages(package.__path__, f"{package.__name__}."):
    try:
        import_module(module.name)
        imported += 1
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in extras:
            raise
        wanted.append(f"{module.name} wants {error.name}")
sys.stdout.write(f"{imported} modules imported" + "".join(f"; {one}" for one in wanted) + "\n")
