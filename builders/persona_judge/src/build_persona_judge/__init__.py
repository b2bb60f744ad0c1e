"""Builder of the persona judge dataset: which of two options belongs to a person described only by a persona.

`__init__.pyi` lists the public names. Each is imported on first use, which keeps `--help` fast.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
