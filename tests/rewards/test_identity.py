import pytest
from pluralbench_rewards import model_commit


def test_a_hub_that_cannot_be_reached_names_no_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert model_commit("pluralbench/nothing-in-the-cache") is None
