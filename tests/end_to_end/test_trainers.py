"""What the trainers of other libraries make of releases that train reward models."""

import re
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest
from reward_models import save_classifier, save_language_model
from samples import sample

RELEASES = {
    "personalized": (("build-personalized", "training"), "everyday_questions"),
    "chinese": (("build-chinese",), "preference_pairs"),
}
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
ROLES = ("<|system|>", "<|user|>", "<|assistant|>")


def settings(out: Path) -> dict[str, Any]:
    """One step on the CPU that writes nothing but its result."""
    return {
        "output_dir": str(out),
        "max_steps": 1,
        "per_device_train_batch_size": 2,
        "use_cpu": True,
        "bf16": False,
        "report_to": "none",
        "save_strategy": "no",
        "disable_tqdm": True,
        "max_length": 1024,
        "gradient_checkpointing": False,
    }


@pytest.fixture(params=RELEASES)
def release(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """The rows to train on, as `load_dataset` gives them; its own cache would give those of an earlier build."""
    from datasets import load_dataset

    builder, config = RELEASES[request.param]
    return load_dataset(str(sample(*builder).release), config, split="train", cache_dir=str(tmp_path))


def in_order(text: str, *parts: str) -> bool:
    """Whether a text has these parts, each after the one before."""
    places = [text.find(part) for part in parts]
    return -1 not in places and places == sorted(places)


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")  # of the library
def test_trl_trains_a_reward_model_on_a_release_as_it_is(release: Any, tmp_path: Path) -> None:
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    model = save_classifier(tmp_path / "model")
    trainer: Any = RewardTrainer(model=model, args=RewardConfig(**settings(tmp_path)), train_dataset=release)
    assert len(trainer.train_dataset) == len(release)
    first, row = trainer.train_dataset[0], release[0]
    for side in ("chosen", "rejected"):
        text = trainer.processing_class.decode(first[f"{side}_ids"])
        question, answer = row["prompt"][-1]["content"], row[side][0]["content"]
        assert in_order(text, *ROLES[1:2], question, ROLES[2], answer), text
    assert trainer.train().training_loss > 0


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_the_lines_of_the_card_train_a_reward_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    release = sample(*RELEASES["personalized"][0]).release
    monkeypatch.chdir(release.parent)
    lines = "\n".join(PYTHON.findall((release / "README.md").read_text(encoding="utf-8")))
    model, out, cache = save_classifier(tmp_path / "model"), tmp_path / "out", tmp_path / "cache"
    short = f"RewardConfig({str(out)!r}, use_cpu=True, max_steps=1, "
    lines = lines.replace("MODEL", str(model)).replace("RewardConfig(", short)
    (tmp_path / "lines.py").write_text(lines.replace("split=", f"cache_dir={str(cache)!r}, split="), encoding="utf-8")
    run_path(str(tmp_path / "lines.py"))
    assert (out / "checkpoint-1" / "model.safetensors").is_file()


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_trl_trains_a_policy_on_a_release_as_it_is(release: Any, tmp_path: Path) -> None:
    from trl.trainer.dpo_config import DPOConfig
    from trl.trainer.dpo_trainer import DPOTrainer

    model = save_language_model(tmp_path / "model")
    trainer: Any = DPOTrainer(model=model, args=DPOConfig(**settings(tmp_path)), train_dataset=release)
    first, row = trainer.train_dataset[0], release[0]
    decode = trainer.processing_class.decode
    assert in_order(decode(first["prompt_ids"]), ROLES[1], row["prompt"][-1]["content"], ROLES[2])
    for side in ("chosen", "rejected"):
        assert row[side][0]["content"] in decode(first[f"{side}_ids"])
    assert trainer.train().training_loss > 0


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")
def test_trl_trains_on_an_export_with_the_user_context(tmp_path: Path) -> None:
    from datasets import load_dataset
    from pluralbench import PromptConfig, export
    from trl.trainer.reward_config import RewardConfig
    from trl.trainer.reward_trainer import RewardTrainer

    out, prompt = tmp_path / "out", PromptConfig(profile="raw", profile_size=2)
    export(out, trainer="trl", data=sample(*RELEASES["personalized"][0]).release, prompt=prompt)
    rows = load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert {split: len(part) for split, part in rows.items()} == {"train": 25, "test": 5}
    config = RewardConfig(**settings(tmp_path), eval_strategy="steps")
    model = save_classifier(tmp_path / "model")
    trainer: Any = RewardTrainer(model, config, train_dataset=rows["train"], eval_dataset=rows["test"])
    first = trainer.processing_class.decode(trainer.train_dataset[0]["chosen_ids"])
    assert in_order(first, "Posts I wrote earlier:", "My question:", ROLES[2], rows["train"][0]["chosen"][0]["content"])
    assert trainer.train().training_loss > 0
