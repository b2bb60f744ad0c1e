"""For the tests of calls: no deadline for a property, and a clock that nobody has to wait for."""

import pytest
from hypothesis import settings
from skipping_clock import Clock, skip_sleep

settings.register_profile("calls")
settings.load_profile("calls")


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """The time of the event loops of this test, which they skip."""
    return skip_sleep(monkeypatch)
