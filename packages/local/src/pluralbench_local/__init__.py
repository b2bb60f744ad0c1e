"""Reward models in this process: described, loaded, scored with, and trained on rankings.

Its names are those of `__init__.pyi`, each imported when it is first used, so that a description needs no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
