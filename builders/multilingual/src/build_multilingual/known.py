"""The names of the translators, known without importing one."""

import pkgutil
from pathlib import Path


def known_translators() -> list[str]:
    """The names of the modules in `build_multilingual.translators`, each of which is a translator."""
    folder = Path(__file__).parent / "translators"
    return sorted(module.name for module in pkgutil.iter_modules([str(folder)]) if not module.name.startswith("_"))
