"""Annotation studies: assignment of items, sheets and Label Studio tasks, answers, and agreement."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
