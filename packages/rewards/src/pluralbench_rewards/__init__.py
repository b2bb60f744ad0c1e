"""The interface of reward models, and judges and functions that implement it, without torch.

The names are listed in `__init__.pyi`; each is imported at its first use to keep `--help` fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
