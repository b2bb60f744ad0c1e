"""A classifier that was taught nothing: its head is drawn by the seed, and it scores as any other."""

from pathlib import Path
from typing import Any

import pytest
import torch
from pluralbench_local import LocalModel, load, untrained
from reward_models import classifier_alone, make_groups, make_tokenizer, save_language_model
from transformers import AutoModelForSequenceClassification


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> str:
    return save_language_model(tmp_path_factory.mktemp("base") / "lm", num_hidden_layers=1, pad_token_id=None)


def head(folder: Path) -> "torch.Tensor":
    auto: Any = AutoModelForSequenceClassification
    weight: torch.Tensor = auto.from_pretrained(folder).score.weight
    return weight


def test_it_is_a_classifier_of_one_logit_that_scores(base: str, tmp_path: Path) -> None:
    folder = untrained(base, tmp_path / "rm", seed=1, device="cpu")
    assert folder == tmp_path / "rm"
    groups = make_groups(0, 4, longest=12)
    model = load(str(folder), device="cpu")
    assert model.record().kind == "classifier"
    found = model.score(groups).scores
    expected = classifier_alone(str(folder), groups)
    for ours, theirs in zip(found, expected, strict=True):
        assert ours == pytest.approx(theirs, abs=1e-4)
    assert len({value for row in found for value in row or ()}) > 4
    assert [path.name for path in tmp_path.iterdir()] == ["rm"]
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {folder.stat().st_mode & 0o666}


def test_the_same_seed_draws_the_same_head_and_the_body_is_the_bases(base: str, tmp_path: Path) -> None:
    runs = {"one": 5, "same": 5, "other": 6}
    one, same, other = (untrained(base, tmp_path / name, seed=seed, device="cpu") for name, seed in runs.items())
    assert torch.equal(head(one), head(same))
    assert not torch.equal(head(one), head(other))
    assert (one / "model.safetensors").read_bytes() == (same / "model.safetensors").read_bytes()
    bodies = [AutoModelForSequenceClassification.from_pretrained(folder).state_dict() for folder in (one, other)]
    assert all(torch.equal(bodies[0][name], value) for name, value in bodies[1].items() if name != "score.weight")


def test_a_pad_token_is_set_that_ends_no_conversation(base: str, tmp_path: Path) -> None:
    tokenizer = make_tokenizer(pad=None)
    bare = save_language_model(tmp_path / "bare", num_hidden_layers=1, tokenizer=tokenizer, pad_token_id=None)
    for number, start in enumerate((base, bare)):
        folder = untrained(start, tmp_path / f"rm{number}", device="cpu")
        auto: Any = AutoModelForSequenceClassification
        config = auto.from_pretrained(folder).config
        assert config.pad_token_id is not None
        assert config.num_labels == 1
        ids = tokenizer.apply_chat_template([{"role": "user", "content": "Why?"}], tokenize=True, return_dict=True)
        assert config.pad_token_id != ids["input_ids"][-1]


def test_what_is_there_stays_and_what_was_half_written_does_not(base: str, tmp_path: Path) -> None:
    (tmp_path / "rm.new").mkdir()
    (tmp_path / "rm.new" / "half").write_text("half", encoding="utf-8")
    folder = untrained(LocalModel(name=base, device="cpu"), tmp_path / "rm", seed=1)
    assert not (folder / "half").exists()
    before = {path.name: path.stat().st_mtime_ns for path in folder.iterdir()}
    assert untrained(base, tmp_path / "rm", seed=2, device="cpu") == folder
    assert {path.name: path.stat().st_mtime_ns for path in folder.iterdir()} == before
