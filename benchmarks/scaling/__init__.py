"""The parts of `scale.py`."""
