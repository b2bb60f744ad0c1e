"""Pairs in the formats of other libraries' trainers; `tests/end_to_end/test_trainers.py` trains with one of them."""

import json
import re
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, get_args

import polars as pl
import pytest
from members import ROOT
from pluralbench import DataConfig, PromptConfig, export, score
from pluralbench.errors import DataError
from pluralbench.evaluation.trainers import TRAINERS, TrainerName
from pluralbench_rewards import FunctionModel, Group
from pluralbench_runs import UserError
from samples import sample
from written_tables import write

Row = dict[str, Any]
Run = Callable[..., tuple[int, str, str]]
Pair = tuple[str, list[tuple[str, str]], str, str]
"""What a row says: the system message, the turns with their roles, the better and the worse response."""

RAW = PromptConfig(profile="raw", profile_size=2)
ROLES = {"human": "user", "gpt": "assistant"}


def training() -> Path:
    return sample("build-personalized", "training").release


def rows(folder: Path, split: str) -> list[Row]:
    [path] = folder.glob(f"{split}.*")
    if path.suffix == ".parquet":
        return pl.read_parquet(path).to_dicts()
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def told(messages: Sequence[Row], better: str, worse: str, system: str = "") -> Pair:
    turns = [(message["role"], message["content"]) for message in messages]
    if turns[0][0] == "system":
        (_, system), *turns = turns
    return system, turns, better, worse


READ: dict[TrainerName, Callable[[Row], Pair]] = {
    "trl": lambda row: told(row["prompt"], row["chosen"][0]["content"], row["rejected"][0]["content"]),
    "openrlhf": lambda row: told(row["chosen"][:-1], row["chosen"][-1]["content"], row["rejected"][-1]["content"]),
    "nemo-rl": lambda row: told(row["context"], *(entry["completion"][0]["content"] for entry in row["completions"])),
    "llama-factory": lambda row: told(
        [{"role": ROLES[turn["from"]], "content": turn["value"]} for turn in row["conversations"]],
        row["chosen"]["value"],
        row["rejected"]["value"],
        row["system"],
    ),
    "axolotl": lambda row: told([{"role": "user", "content": row["input"]}], row["chosen"], row["rejected"]),
    "verl": lambda row: told(row["prompt"], row["extra_info"]["chosen"], row["extra_info"]["rejected"]),
}
each_trainer = pytest.mark.parametrize("trainer", get_args(TrainerName))


def scored_prompts(location: Path, split: str) -> dict[str, str]:
    """What `score` shows a reward model of each item: the last message by the item's id."""
    seen: dict[str, str] = {}

    def remember(groups: Sequence[Group]) -> list[list[float]]:
        seen.update({group.id: group.messages[-1]["content"] for group in groups})
        return [[0.0] * len(group.responses) for group in groups]

    data = DataConfig(location=str(location), split=split)
    score(FunctionModel(remember), data=data, prompt=RAW, out=location.parent / f"scored-{split}")
    return seen


@pytest.fixture(scope="module")
def prompts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """The prompts of the training split, as `score` with posts shows them."""
    folder = tmp_path_factory.mktemp("scored") / "release"
    folder.symlink_to(training())
    return scored_prompts(folder, "train")


@each_trainer
def test_rows_have_the_prompts_of_score_and_both_answers(
    trainer: TrainerName, prompts: dict[str, str], tmp_path: Path
) -> None:
    done = export(tmp_path / "out", trainer=trainer, data=training(), prompt=RAW)
    source = pl.read_parquet(training() / "data/everyday_questions/train.parquet").to_dicts()
    expected = sorted(
        told(
            [{"role": "user", "content": prompts[row["id"]]}],
            row["chosen"][0]["content"],
            row["rejected"][0]["content"],
        )
        for row in source
    )
    written = {split: rows(tmp_path / "out", split) for split in ("train", "test")}
    assert done.rows == {split: len(found) for split, found in written.items()} == {"train": 25, "test": 5}
    assert sorted(READ[trainer](row) for found in written.values() for row in found) == expected
    assert "Posts I wrote earlier:\n[Post 1]" in expected[0][1][0][1]
    user_of = {prompts[row["id"]]: row["user_id"] for row in source}
    users = [{user_of[READ[trainer](row)[1][-1][1]] for row in found} for found in written.values()]
    assert not users[0] & users[1]
    record = json.loads((tmp_path / "out/export.json").read_text(encoding="utf-8"))
    assert (record["command"], record["rows"]) == (done.command, done.rows)
    assert str(tmp_path / "out") in done.command
    assert {path.name for path in (tmp_path / "out").iterdir()} - set(TRAINERS[trainer].files) == {
        "export.json",
        f"train{TRAINERS[trainer].suffix}",
        f"test{TRAINERS[trainer].suffix}",
    }


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("share", [0.2, 0.5])
def test_a_share_of_the_users_is_the_test_set(share: float, seed: int, tmp_path: Path) -> None:
    table = [
        {"id": f"{user}-{number}", "user_id": f"u{user}", "prompt": f"Question {number} of {user}?"}
        | {"chosen": f"a{number}", "rejected": "b"}
        for user in range(20)
        for number in range(user % 3 + 1)
    ]
    path = write(tmp_path / "train.jsonl", table)

    def users(out: str) -> list[list[str]]:
        export(tmp_path / out, trainer="trl", benchmark="personalized-training", data=path, held_out=share, seed=seed)
        read = [rows(tmp_path / out, split) for split in ("train", "test")]
        assert sum(map(len, read)) == len(table)
        return [sorted({row["prompt"][0]["content"].rsplit(" ", 1)[1] for row in part}) for part in read]

    train, test = users("one")
    assert len(test) == round(share * 20)
    assert not {*train} & {*test}
    assert users("two") == [train, test]


def test_a_split_of_the_data_can_be_the_test_set(tmp_path: Path) -> None:
    done = export(tmp_path / "out", trainer="trl", data=training(), test_split="validation")
    assert done.rows == {"train": 30, "test": 15}
    with pytest.raises(DataError, match="6 values of the column `user_id` of the split 'train' are"):
        export(tmp_path / "same", trainer="trl", data=training(), test_split="train")
    with pytest.raises(DataError, match="exclude each other"):
        export(tmp_path / "both", trainer="trl", data=training(), test_split="validation", held_out=0.1)
    assert not (tmp_path / "same").exists()


def test_without_users_the_splits_share_no_prompt(tmp_path: Path) -> None:
    answers = {"chosen": "a", "rejected": "b"}
    for split, numbers in (("train", (1, 2)), ("test", (3, 4)), ("more", (2, 5))):
        write(tmp_path / "pairs/all" / f"{split}.jsonl", [{"prompt": f"Question {n}?"} | answers for n in numbers])
    data = DataConfig(location=str(tmp_path / "pairs"), split="train")
    done = export(tmp_path / "out", trainer="trl", benchmark="pairs", data=data, test_split="test")
    assert done.rows == {"train": 2, "test": 2}
    with pytest.raises(DataError, match="1 prompts of the split 'more' are also in the training split"):
        export(tmp_path / "no", trainer="trl", benchmark="pairs", data=data, test_split="more")


def conversation(*texts: str, system: str = "") -> list[Row]:
    roles = ["user", "assistant"] * len(texts)
    turns = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
    return [{"role": "system", "content": system}] * bool(system) + turns


@each_trainer
def test_what_a_format_cannot_hold_is_left_out_and_counted(trainer: TrainerName, tmp_path: Path) -> None:
    prompts = [
        conversation("Tea?"),
        conversation("Tea?", "Yes.", "Which?"),
        conversation("Tee?", system="Kurz."),
        [*conversation("Hello."), *conversation("Anybody?")],
        *([{"role": "user", "content": f"Filler {number}?"}] for number in range(4)),
    ]
    answers: Row = {"chosen": "中文 🍵", "rejected": "Any."}
    path = write(tmp_path / "pairs.jsonl", [{"id": str(n), "prompt": one} | answers for n, one in enumerate(prompts)])
    done = export(tmp_path / "out", trainer=trainer, benchmark="pairs", data=path, held_out=0.25)
    left_out = {"axolotl": 3, "llama-factory": 1}.get(trainer, 0)
    assert sum(done.rows.values()) == len(prompts) - left_out
    assert done.left_out == ({TRAINERS[trainer].limits: left_out} if left_out else {})
    read = [READ[trainer](row) for split in ("train", "test") for row in rows(tmp_path / "out", split)]
    expected = [told(prompt, *answers.values()) for prompt in prompts]
    assert all(one in expected for one in read)
    if trainer == "llama-factory":  # it would drop other rows with a warning
        assert all(len(turns) % 2 and all(a[0] != b[0] for a, b in pairwise(turns)) for _, turns, *_ in read)


def test_rankings_are_exported_as_the_pairs_that_train_learns(tmp_path: Path) -> None:
    location = sample("build-chinese").release
    data = DataConfig(location=str(location), configs=("preference",))
    export(tmp_path / "out", trainer="trl", data=data)
    read = [READ["trl"](row) for split in ("train", "test") for row in rows(tmp_path / "out", split)]
    pairs = pl.read_parquet(location / "data/preference_pairs/train.parquet").to_dicts()
    expected = [told(row["prompt"], row["chosen"][0]["content"], row["rejected"][0]["content"]) for row in pairs]
    assert sorted(read) == sorted(expected)


def test_a_config_of_another_shape_is_named_with_the_one_to_choose(run: Run, tmp_path: Path) -> None:
    words = ["export", "--for", "trl", "--data", sample("build-chinese").release, "--out", tmp_path / "out"]
    status, _, errors = run(*words)
    assert status == 2
    assert "preference_pairs/train.parquet has no column `input`" in errors
    assert errors.endswith("To leave this config out, name the others with `--config preference`.\n"), errors
    assert run(*words, "--config", "preference")[0] == 0


def test_items_without_a_pair_are_counted_and_verl_gets_each_prompt_once(tmp_path: Path) -> None:
    table = [
        {"prompt": f"Question {number}?", "responses": ["a", "b", "c"], "rank": ranks}
        for number, ranks in enumerate([[1, 1, 1], [2, 1, 3], [3, 2, 1], [1, 2, 2]])
    ]
    path = write(tmp_path / "ranked.jsonl", table)
    done = {name: export(tmp_path / name, trainer=name, benchmark="rankings", data=path, held_out=0.5) for name in READ}
    assert {name: (sum(one.rows.values()), one.left_out) for name, one in done.items()} == {
        name: (3 if name == "verl" else 8, {"no pair of a better and a worse response": 1}) for name in READ
    }
    best = {
        row["prompt"][0]["content"]: row["reward_model"]["ground_truth"] for row in rows(tmp_path / "verl", "train")
    }
    assert best.items() <= {"Question 1?": "b", "Question 2?": "c", "Question 3?": "a"}.items()


def test_the_command_prints_the_line_to_train_with_and_repeats(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "my data"
    words = ["export", "--for", "axolotl", "--benchmark", "personalized-training", "--data", "sample", "--out", out]
    for _ in range(2):
        status, printed, errors = run(*words)
        assert status == 0, errors
        assert f"{out}: 25 rows in train and 5 rows in test." in printed
        assert f"  cd '{out}' && axolotl train axolotl.yaml --base-model MODEL\n" in printed
    before = (out / "train.jsonl").read_bytes()
    status, _, errors = run(*words[:2], "trl", *words[3:])
    assert (status, "--fresh" in errors) == (2, True), errors
    assert (out / "train.jsonl").read_bytes() == before
    assert run(*words[:2], "trl", *words[3:], "--fresh")[0] == 0
    assert not (out / "axolotl.yaml").exists()


def test_data_without_a_row_for_the_trainer_is_refused(tmp_path: Path) -> None:
    table = [{"prompt": conversation(f"Tea {n}?", "Yes.", "Which?"), "chosen": "a", "rejected": "b"} for n in range(4)]
    path = write(tmp_path / "pairs.jsonl", table)
    with pytest.raises(UserError, match="No row is left for train: 4 items have a system message or several turns"):
        export(tmp_path / "out", trainer="axolotl", benchmark="pairs", data=path, held_out=0.5)
    assert not (tmp_path / "out").exists()


def test_the_page_has_a_row_for_each_trainer() -> None:
    page = (ROOT / "docs/how-to/export.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| `([a-z][a-z-]+)` \|", page, re.MULTILINE) == list(get_args(TrainerName)) == list(TRAINERS)
