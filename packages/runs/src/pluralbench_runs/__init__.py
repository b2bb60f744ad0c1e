"""Building blocks of PluralBench commands: recipes, output directories that resume, progress bars and errors.

The names are in `__init__.pyi`. Each is imported when first used, which keeps `--help` fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
