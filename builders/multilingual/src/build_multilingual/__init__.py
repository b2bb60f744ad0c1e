"""Build M-RewardBench: an English benchmark in other languages, and pairs of better and worse translations.

Public names are listed in `__init__.pyi` and imported on first use, so that `--help` stays fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
