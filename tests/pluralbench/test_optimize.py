"""`pluralbench optimize`: a policy is optimised against a reward model, and judged before and after."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pluralbench import check_submission, load_run
from pluralbench.downstream.rollout import rollout
from pluralbench.downstream.score_series import read_series
from pluralbench.results import Downstream
from small_world import people, people_file
from some_words import WORDS
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
BY_PPO = ["--algorithm", "ppo", "--batch-size", "4", "--mini-batch-size", "4", "--max-tokens", "12"]
BY_PPO += ["--learning-rate", "1e-2"]
JUDGED = ["--judge", "rubric-overlap", "--sample-max-tokens", "16", "--profile", "none", "--device", "cpu"]


@pytest.fixture(scope="session")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return people_file(tmp_path_factory.mktemp("people") / "people.jsonl", 6)


@pytest.fixture(scope="session")
def words(talker: str, model: str, data: Path) -> list[Any]:
    """A command of two steps, without its `--out`."""
    given = ["--policy", talker, "--reward", f"a judge={model}", "--data", data, "--max-steps", "2"]
    return ["optimize", *given, *BY_PPO, *JUDGED]


@pytest.fixture
def scored(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One more for each step whose completions are scored."""
    from pluralbench_policies.scorer import Scorer

    call, steps = Scorer.__call__, list[int]()

    def counted(self: Scorer, *given: Any) -> list[float]:
        steps.append(1)
        return call(self, *given)

    monkeypatch.setattr(Scorer, "__call__", counted)
    return steps


def said(text: str) -> str:
    return " ".join(text.split())


def test_levels_and_gain_are_those_of_its_tables(
    run: Command, words: list[Any], talker: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    status, told, error = run(*words, "--out", out)
    assert status == 0, error
    found = load_run(out)
    levels = {name: found.frame(name).sort("id") for name in ("outcomes", "outcomes_start")}
    aspects = {row["id"]: [one["aspect"].split() for one in row["rubric_aspects"]] for row in people(6)}
    for name, judged in levels.items():
        answers = found.frame(name.replace("outcomes", "candidates")).sort("id")
        assert answers["id"].to_list() == judged["id"].to_list() == sorted(aspects)
        for answer, row in zip(answers["text"], judged.iter_rows(named=True), strict=True):
            there = [sum(has(answer, word) for word in wanted) / 4 for wanted in aspects[row["id"]]]
            assert row["value"] == pytest.approx(sum(there) / len(there) * 2)
    end, start = (judged["value"].mean() for judged in levels.values())
    assert isinstance(end, float)
    assert isinstance(start, float)
    assert end != start
    level, gain = found.estimate("outcome"), found.estimate("outcome_gain")
    assert level.value == pytest.approx(end)
    assert gain.value == pytest.approx(end - start)
    before = found.metrics.filter(pl.col("policy") == "start", pl.col("config").is_null())
    assert before["value"].to_list() == pytest.approx([start])
    assert None not in {gain.low, gain.high, level.low}
    assert (
        f"Optimized against a judge: from {start:.3f} to {end:.3f} ({end - start:+.3f} [{gain.low:+.3f}, "
        f"{gain.high:+.3f}]) in 2 steps of PPO. It was judged on the prompts that it was optimized on."
    ) in said(told)
    assert check_submission(found).state == "consistent", "its numbers follow from its tables"
    check_record(found, talker, data)


@pytest.mark.heavy
def test_a_policy_that_was_trained_elsewhere_is_judged_as_one_that_was_trained_here(
    run: Command, words: list[Any], data: Path, tmp_path: Path, scored: list[int]
) -> None:
    assert run(*words, "--out", tmp_path / "here")[0] == 0
    here, steps = load_run(tmp_path / "here"), len(scored)
    asked = [*words[: words.index("--max-steps")], *JUDGED, "--trained", here.path / "policy"]
    out = tmp_path / "elsewhere"
    status, told, error = run(*asked, "--out", out)
    assert (status, len(scored)) == (0, steps), error
    found = load_run(out)
    assert found.metrics.equals(here.metrics)
    for name in ("candidates", "candidates_start", "outcomes", "outcomes_start"):
        assert found.frame(name).equals(here.frame(name))
    assert not (out / "policy").exists()
    assert said(told).endswith(".parquet"), "the files of the run, of which a policy is none"
    assert "in a training elsewhere. The prompts that it was trained on are not known." in said(told)
    assert check_submission(found).state == "consistent"
    sides = [read_series(one.path) for one in (here, found)]
    assert sides[0].scores.tolist() == sides[1].scores.tolist()
    assert list(sides[0].names) == list(sides[1].names) == ["a judge"]
    status, table, _ = run("report", here.path, out)
    assert status == 0
    assert "PPO of" in table
    assert "training elsewhere of" in table
    # What it was trained on can be said; a second training in its folder is another run.
    assert run(*asked, "--train-data", data, "--out", tmp_path / "known")[0] == 0
    assert load_run(tmp_path / "known").result.optimization == {"judged_on_the_same_prompts": True}
    status, _, error = run(*asked, "--trained", asked[asked.index("--policy") + 1], "--out", out)
    assert (status, "was made with other settings (trained" in said(error)) == (2, True), error


def has(answer: str, word: str) -> bool:
    """Whether the answer has the word, as far as the words of tests go: no other begins as one of them does."""
    from pluralbench_rewards.rubric import stems

    return stems(word) <= stems(answer)


def check_record(found: Downstream, talker: str, data: Path) -> None:
    """Whether the folder and its record say what was done."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    config, result = found.config, found.result
    assert list(result.rewards) == ["a judge"]
    assert result.rewards["a judge"].model.kind == "classifier"
    assert (found.verb, result.policy.name, config.data.location) == ("optimize", talker, str(data))
    assert result.optimization is not None
    assert result.optimization["tasks"] == {"given": 6, "too_long": 0}
    assert result.optimization["judged_on_the_same_prompts"] is True
    auto, tokenizers = AutoModelForCausalLM, AutoTokenizer
    policy: Any = auto.from_pretrained(found.path / "policy")
    base: Any = auto.from_pretrained(talker)
    assert any((a != b).any() for a, b in zip(policy.parameters(), base.parameters(), strict=True))
    tokenizer: Any = tokenizers.from_pretrained(found.path / "policy")
    asked = tokenizer.apply_chat_template([{"role": "user", "content": WORDS[0]}], return_tensors="pt")
    assert policy.generate(**asked, max_new_tokens=3, do_sample=False).shape[1] == asked["input_ids"].shape[1] + 3
    names = {path.name for path in found.path.iterdir()}
    assert {"policy", "run.json", "metrics.json", "ledger.parquet"} <= names
    assert {"curves.png", "log.jsonl", "optimization.json"} <= {path.name for path in (found.path / "policy").iterdir()}
    assert not found.path.with_name("out.work").exists()


@pytest.mark.heavy
def test_stopped_while_it_is_judged_it_is_not_optimised_again(
    run: Command, words: list[Any], tmp_path: Path, scored: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    whole, out = tmp_path / "whole", tmp_path / "out"
    assert run(*words, "--out", whole)[0] == 0
    assert len(scored) == 2
    for left in (0, 1):  # walks that it may take: that of the policy at the start, and that of the optimised one
        allowed = left

        def stopping(*given: Any) -> Any:
            nonlocal allowed
            if not allowed:
                raise KeyboardInterrupt
            allowed -= 1
            return rollout(*given)

        with monkeypatch.context() as patch:
            patch.setattr("pluralbench.downstream.optimization.rollout", stopping)
            assert run(*words, "--out", out)[0] == 130
        assert not out.exists()
    assert len(scored) == 4
    assert run(*words, "--out", out)[0] == 0
    assert len(scored) == 4, "it is optimised once"
    ours, theirs = load_run(out), load_run(whole)
    assert ours.metrics.equals(theirs.metrics)
    assert ours.frame("candidates").equals(theirs.frame("candidates"))
    weights = [(found.path / "policy" / "model.safetensors").read_bytes() for found in (ours, theirs)]
    assert weights[0] == weights[1]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert run(*words, "--out", out)[0] == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    status, _, error = run(*words, "--max-steps", "3", "--out", out)
    assert (status, said(error)) == (
        2,
        f"Error: {out} was made with other settings (max_steps 2, now 3); use the same settings to resume, choose "
        "another output directory, or start over with `--fresh`.",
    )


@pytest.mark.heavy
def test_other_prompts_to_optimise_on(run: Command, words: list[Any], tmp_path: Path) -> None:
    other = people_file(tmp_path / "other.jsonl", 4, seed=5)
    one_step = [*words, "--max-steps", "1"]
    assert run(*one_step, "--train-data", other, "--out", tmp_path / "a")[0] == 0
    folder = tmp_path / "release"
    for split, number, seed in (("train", 5, 6), ("test", 4, 7)):
        people_file(folder / "art" / f"{split}.jsonl", number, seed=seed)
    status, told, _ = run(*one_step, "--data", folder, "--train-split", "train", "--out", tmp_path / "b")
    assert status == 0
    assert "It was judged on the prompts" not in told
    for name, given, judged in (("a", 4, {"p0"}), ("b", 5, {"p7"})):
        found = load_run(tmp_path / name)
        assert found.result.optimization is not None
        assert found.result.optimization["tasks"]["given"] == given
        assert found.result.optimization["judged_on_the_same_prompts"] is False
        assert {one.partition("-")[0] for one in found.frame("candidates")["id"]} == judged


@pytest.mark.heavy
def test_without_a_judge_and_with_rewards_that_are_all_alike_it_says_so(
    run: Command, words: list[Any], constant: str, tmp_path: Path
) -> None:
    place = words.index("--judge")
    plain = [*words[:place], *words[place + 2 :], "--reward", f"flat={constant}", "--max-steps", "1", "--sample-n", "3"]
    status, told, _ = run(*plain, "--out", tmp_path / "out")
    assert status == 0
    assert (
        "Optimized against flat: 1 step of PPO; the policy's answers were not judged. In 1 of 1 steps all "
        "completions got the same score, so there was nothing to learn."
    ) in said(told)
    assert "own estimates" not in told
    found = load_run(tmp_path / "out")
    assert found.metrics.is_empty()
    assert found.frame("candidates").group_by("id").len()["len"].to_list() == [3] * 6
    assert found.result.outcome is None


def refused(run: Command, out: Path, *words: Any) -> str:
    """The error of a command that leaves nothing."""
    status, _, error = run(*words, "--out", out)
    assert status == 2, error
    assert error.strip().count("\n") == 0
    assert not out.exists()
    assert not out.with_name(f"{out.name}.work").exists()
    return said(error).removeprefix("Error: ")


@pytest.mark.parametrize("option", ["--policy", "--reward"])
def test_a_model_that_is_not_there_is_named(run: Command, words: list[Any], tmp_path: Path, option: str) -> None:
    assert "nothing" in refused(run, tmp_path / "out", *words, option, "./nothing")


def test_items_that_cannot_be_judged_are_refused_before_anything_is_optimised(
    run: Command, words: list[Any], tmp_path: Path, scored: list[int]
) -> None:
    rows = people(5)
    rows[3]["rubric_aspects"] = []
    data = write(tmp_path / "people.jsonl", rows)
    assert refused(run, tmp_path / "out", *words, "--data", data) == (
        "The item of id p0-3 has no rubric aspects to judge by; choose `--measure rating` or `--measure win`."
    )
    assert scored == []


def test_a_judge_that_cannot_be_called_is_noticed_before_anything_is_optimised(
    run: Command, words: list[Any], tmp_path: Path, scored: list[int]
) -> None:
    judge = ["--judge", "m", "--measure", "rating", "--judge-base-url", "http://127.0.0.1:9/v1"]
    assert "127.0.0.1 cannot be reached" in refused(run, tmp_path / "out", *words, *judge)
    assert scored == []


def test_contradicting_options_are_refused(run: Command, words: list[Any], tmp_path: Path) -> None:
    said = refused(run, tmp_path / "out", *words, "--batch-size", "6")
    assert "`--batch-size 6` is not a multiple of `--mini-batch-size 4`" in said


def test_a_policy_that_is_trained_already_takes_no_training(
    run: Command, words: list[Any], talker: str, model: str, tmp_path: Path
) -> None:
    given = refused(run, tmp_path / "out", *words, "--trained", talker)
    assert given == f"`--max-steps` is of a training, and {talker} is trained already; leave out one of the two."
    asked = [*words[: words.index("--max-steps")], *JUDGED, "--seed", "4"]
    assert "./nothing is not a model folder" in refused(run, tmp_path / "out", *asked, "--trained", "./nothing")
    assert "which writes no text" in refused(run, tmp_path / "out", *asked, "--trained", model)


@pytest.mark.heavy
def test_an_algorithm_of_trl_does_the_same(run: Command, words: list[Any], tmp_path: Path) -> None:
    out = tmp_path / "out"
    status, told, _ = run(*words, "--algorithm", "grpo", "--micro-batch-size", "4", "--max-steps", "1", "--out", out)
    assert status == 0
    assert "in 1 step of GRPO." in said(told)
    found = load_run(out)
    value = found.frame("outcomes")["value"].mean()
    assert found.estimate("outcome").value == pytest.approx(value)
    assert json.loads((out / "policy" / "optimization.json").read_text(encoding="utf-8"))["completions"] == 16
