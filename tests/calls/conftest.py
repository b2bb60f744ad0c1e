"""A clock that nobody has to wait for."""

import pytest
from skipping_clock import Clock, skip_sleep


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the event loops of this test, which they skip."""
    return skip_sleep(monkeypatch)
