"""Language models as policies: sample from them, and optimise them against a reward model.

Its names are those of `__init__.pyi`, each imported when it is first used, so that a policy can be described without
torch.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
