"""The parts of `bookkeeping.py`."""
