"""The commands that `export` prints, against the options of the trainers.

TRL's parser reads its command. Of the other libraries, which have environments of their own, `trainer_options.toml` has
the names of the options.
"""

import json
import re
import runpy
import shlex
import tomllib
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench import export
from pluralbench.evaluation.export import _batch_size
from pluralbench.evaluation.trainers import TrainerName
from written_tables import write

TABLE = tomllib.loads((Path(__file__).parents[1] / "support/trainer_options.toml").read_text(encoding="utf-8"))
NAMES = {trainer: set(entry["names"].split()) for trainer, entry in TABLE.items()}
ROWS = 20


def words_of(trainer: TrainerName, folder: Path) -> list[str]:
    """The words of the command, as a shell reads them."""
    rows = [{"prompt": f"Question {n}?", "chosen": "a", "rejected": "b"} for n in range(ROWS)]
    data = write(folder / "pairs.jsonl", rows)
    return shlex.split(export(folder / "my data", trainer=trainer, benchmark="pairs", data=data).command)


def options_of(words: Sequence[str]) -> dict[str, str]:
    """The options of a command with their values; "" for a flag."""
    pairs = zip(words, [*words[1:], "--"], strict=True)
    return {word[2:]: "" if value.startswith("--") else value for word, value in pairs if word.startswith("--")}


def overrides_of(words: Sequence[str], names: set[str]) -> dict[str, str]:
    """Hydra's overrides. A key that exists is set, and one that does not is added by a plus sign to one that does."""
    found = {}
    for word in words:
        match = re.fullmatch(r"(\+?)([\w.]+)=(.*)", word)
        if match is not None:
            plus, key, value = match.groups()
            parent = key.rpartition(".")[0]
            assert (key in names) is not bool(plus), word
            assert any(name.startswith(f"{parent}.") for name in names), word
            found[key] = value
    return found


@pytest.mark.heavy
@pytest.mark.filterwarnings("ignore")  # of the library
def test_trl_reads_its_command(tmp_path: Path) -> None:
    from trl.scripts.reward import make_parser

    program, verb, *words = words_of("trl", tmp_path)
    assert (program, verb) == ("trl", "reward")
    parsed: Any = make_parser().parse_args_and_config([*words, "--use_cpu", "--bf16", "false"])
    script, training, model, *_ = parsed
    assert script.dataset_name == str(tmp_path / "my data")
    assert (training.max_length, str(training.eval_strategy.value), training.output_dir) == (
        4096,
        "epoch",
        "reward-model",
    )
    assert model.model_name_or_path == "MODEL"


def test_openrlhf_knows_the_options(tmp_path: Path) -> None:
    options = options_of(words_of("openrlhf", tmp_path))
    assert options.pop("module") == "openrlhf.cli.train_rm"  # of deepspeed
    assert options.keys() <= NAMES["openrlhf"]
    assert (options["data.max_len"], options["data.apply_chat_template"]) == ("4096", "")
    assert int(options["train.batch_size"]) <= ROWS  # of which it would make no step
    assert {options["data.dataset"], options["eval.dataset"]} == {
        str(tmp_path / "my data" / f"{split}.jsonl") for split in ("train", "test")
    }


def test_llama_factory_knows_the_options(tmp_path: Path) -> None:
    from transformers import TrainingArguments

    options = options_of(words_of("llama-factory", tmp_path))
    assert options.keys() <= NAMES["llama-factory"] | {field.name for field in fields(TrainingArguments)}
    assert (options["cutoff_len"], options["do_eval"], options["eval_dataset"]) == ("4096", "true", "test")


def test_axolotl_knows_the_keys(tmp_path: Path) -> None:
    words = words_of("axolotl", tmp_path)
    assert options_of(words).keys() == {"base-model"}
    settings = json.loads((tmp_path / "my data/axolotl.yaml").read_text(encoding="utf-8"))
    keys = {*settings, *(key for name in ("datasets", "test_datasets") for entry in settings[name] for key in entry)}
    assert keys <= NAMES["axolotl"]
    assert settings["eval_strategy"] == "epoch"  # without it the test set is not read


def test_nemo_rl_takes_the_overrides(tmp_path: Path) -> None:
    values = overrides_of(words_of("nemo-rl", tmp_path), NAMES["nemo-rl"])
    for split, table in (("train", "train"), ("validation", "test")):
        assert values[f"data.{split}.dataset_name"] == "PreferenceDataset"
        assert values[f"data.{split}.data_path"] == str(tmp_path / "my data" / f"{table}.jsonl")
    assert values["data.validation.split"] == "train"  # what `datasets` calls the rows of a file
    assert values["policy.tokenizer.chat_template"] == "default"
    assert int(values["policy.train_global_batch_size"]) <= ROWS


def test_verl_takes_the_overrides(tmp_path: Path) -> None:
    values = overrides_of(words_of("verl", tmp_path), NAMES["verl"])
    assert (values["data.max_prompt_length"], values["data.filter_overlong_prompts"]) == ("4096", "True")
    batch = int(values["data.train_batch_size"])
    assert int(values["actor_rollout_ref.actor.ppo_mini_batch_size"]) <= batch <= ROWS
    reward = tmp_path / "my data" / "reward.py"
    assert values["reward.custom_reward_function.path"] == str(reward)
    assert runpy.run_path(str(reward))["compute_score"].format == "verl"


@given(st.integers(1, 10_000))
def test_a_step_has_fewer_rows_than_there_are(rows: int) -> None:
    batch = _batch_size(rows)
    assert 1 <= batch <= min(128, max(rows // 2, 1))
    assert batch.bit_count() == 1
