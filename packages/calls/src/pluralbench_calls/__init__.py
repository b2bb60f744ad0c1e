"""Recorded model calls: send requests, record each answer in a ledger, and replay it."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
