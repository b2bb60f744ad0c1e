import pytest
from pluralbench_rewards import model_commit


@pytest.mark.parametrize("name", ["pluralbench/nothing-in-the-cache", "./model"])
def test_a_hub_that_cannot_be_reached_and_a_path_name_no_commit(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr("huggingface_hub.constants.ENDPOINT", "http://127.0.0.1:9")
    assert model_commit(name) is None
