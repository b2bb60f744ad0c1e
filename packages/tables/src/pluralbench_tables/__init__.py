"""Tables that somebody else wrote: CSV, JSON and Parquet, read exactly or refused with one sentence.

Its names are those of `__init__.pyi`, each imported when it is first used, so that `--help` waits for none of them.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
