"""What its files import late."""

from late_imports import pytest_runtest_setup  # noqa: F401
