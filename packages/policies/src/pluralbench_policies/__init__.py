"""Language models as policies: sample from them, and optimize them against a reward model.

`__init__.pyi` lists the public names. Each is imported on first use, so that a policy can be described without torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
