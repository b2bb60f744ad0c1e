"""Local reward models: load them, score with them, and train them on rankings.

Names are those of `__init__.pyi`. Each is imported on first use, so that configuration objects need no torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
