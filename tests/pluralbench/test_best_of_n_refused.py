"""What best-of-N refuses, in one sentence each, and what it goes on with and tells."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from chat_server import Reply, serve
from downstream_runs import World, asked_of, sampled
from pluralbench import ConnectionConfig, LocalModel, best_of_n
from pluralbench.config import OutcomeConfig, SamplingConfig
from pluralbench.contract import Group
from pluralbench.downstream.candidates import find_policy
from pluralbench.errors import DataError, EvaluationError
from pluralbench.reports.downstream import curve_table, downstream_notes
from verbs import by_length
from written_tables import write

Row = dict[str, Any]
Rows = list[Row]
Command = Callable[..., tuple[int, str, str]]
NOWHERE = "http://127.0.0.1:9/v1"


@pytest.fixture
def data(people: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "people.jsonl", people(4))


@pytest.fixture
def prompts(tmp_path: Path) -> Path:
    return write(tmp_path / "prompts.jsonl", [{"id": f"m{n}", "prompt": f"Name {n} rivers."} for n in range(1, 4)])


def alike(groups: Sequence[Group]) -> list[list[float]]:
    return [[0.5] * len(group.responses) for group in groups]


# Refused


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--k", "1,8"], "`--k 8` is not between 1 and `--n 4`"),
        (["--k", "0"], "`--k 0` is not between 1 and `--n 4`"),
        (["--reward", "elsewhere/length"], "Two reward models have the name length; give each its own, as "
         "NAME=MODEL."),
        (["--reward", "=x"], "A reward model has an empty name; write MODEL or NAME=MODEL."),
        (["--reward", "x --lable mean"], "No such option: --lable (Possible options: --base, --date, --label). See "
         "`pluralbench score --help`."),
        (["--reward", "x --label 'mean"], "The options --label 'mean of a reward model cannot be read: No closing "
         "quotation."),
        (["--reward", "x --kind token"], "give `--token-reward` ("),
        (["--judge", "rubric-overlap", "--measure", "rating"], "rubric-overlap counts words of rubric aspects; "
         "leave out `--measure rating`."),
        (["--profile", "plan"], "`--profile plan` and `--plans` require each other"),
        (["--config", "xx"], "has no config 'xx'; it has people."),
        (["--policy-base-url", "localhost:80"], "base URL"),
        (["--judge", "j", "--judge-base-url", NOWHERE, "--judge-max-cost", "1"], "The judge j is not usable: "
         "`--policy-max-cost` or `--judge-max-cost` requires `--policy-price` or `--judge-price`."),
        (["--policy-max-cost", "1"], "The policy p cannot be called: "
         "`--policy-max-cost` or `--judge-max-cost` requires `--policy-price` or `--judge-price`."),
        (["--judge-attempts", "0"], "--judge-attempts"),
        (["--top-p", "1.5"], "--top-p 1.5 is more"),
        (["--reuse", "nowhere.sqlite"], "nowhere.sqlite"),
    ],
)  # fmt: skip
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    run: Command, data: Path, tmp_path: Path, words: list[str], message: str
) -> None:
    reward = tmp_path / "length"
    reward.mkdir()
    (reward / "config.json").write_text("{}", encoding="utf-8")
    base = ["best-of-n", "--policy", "p", "--policy-base-url", NOWHERE, "--reward", str(reward)]
    status, said, error = run(*base, "--data", data, "--n", "4", "--out", tmp_path / "run", *words)
    assert (status, said) == (2, ""), error
    assert message in error
    assert error.count("Error") == 1
    assert not (tmp_path / "run").exists()


def test_a_policy_in_this_process_takes_no_batches() -> None:
    with pytest.raises(EvaluationError) as caught:
        find_policy("path/to/policy", SamplingConfig(), ConnectionConfig(batch=True))
    assert str(caught.value) == (
        "path/to/policy runs in this process, where `policy_connection.batch=...` has no effect; leave it out."
    )


def test_a_policy_that_says_nothing_is_refused_with_what_to_look_at(data: Path, tmp_path: Path) -> None:
    class Silent(World):
        def said(self, body: Row) -> Reply:
            return Reply("  ")

    with serve(Silent()) as server, pytest.raises(EvaluationError) as caught:
        sampled(server, data, tmp_path / "run", n=2, k=())
    assert str(caught.value) == (
        "The policy policy returned no text for any prompt (8 times empty); check its chat template, `max_tokens=...` "
        "and `profile_size=...`."
    )
    assert asked_of(server.requests) == (8, 0)
    assert not (tmp_path / "run").exists()


def test_one_prompt_that_is_too_long_is_counted_and_the_others_go_on(
    language_models: Callable[..., str], people: Callable[..., Rows], tmp_path: Path
) -> None:
    rows = people(3)
    rows[1]["profile"] = [{"id": "p", "category": "Tea", "text": "long ago " * 900}]
    found = best_of_n(
        LocalModel(name=language_models(), device="cpu"),
        [by_length],
        data=write(tmp_path / "p.jsonl", rows),
        out=tmp_path / "run",
        sampling=SamplingConfig(n=2, max_tokens=8),
        outcome=OutcomeConfig(judge="rubric-overlap"),
    )
    assert found.result.sampling.without_text == ("p0-1",)
    [(reason, count)] = found.result.sampling.reasons.items()
    assert reason.endswith("the model takes 1,024, its answer included")
    assert count == 2
    assert found.result.sampling.seeded
    assert found.result.outcome is not None
    assert found.result.outcome.scale.endswith("it counts words and does not measure quality")
    assert any(f"2 of 6 candidates have no text and are never selected: {reason} (2)." == note
               for note in downstream_notes(found))  # fmt: skip


@pytest.mark.parametrize("judge", ["judge", "rubric-overlap"])
def test_items_without_aspects_need_another_measure(prompts: Path, tmp_path: Path, judge: str) -> None:
    with serve(World()) as server, pytest.raises(DataError) as caught:
        sampled(server, prompts, tmp_path / "run", benchmark="prompts", profile="none", judge=judge)
    assert str(caught.value) == (
        'The item of id m1 has no rubric aspects to judge by; choose `measure="rating"` or `measure="win"`.'
    )
    assert server.requests == []


@pytest.mark.parametrize("verb", ["score", "judge"])
def test_prompts_are_nothing_to_score(run: Command, prompts: Path, tmp_path: Path, verb: str) -> None:
    status, _, error = run(verb, "m", "--benchmark", "prompts", "--data", prompts, "--out", tmp_path / "run")
    assert status == 2
    assert error == (
        "Error: The benchmark prompts has prompts and no responses to score; let a policy answer them with "
        "`pluralbench best-of-n`.\n"
    )
    assert not (tmp_path / "run").exists()


# Gone on with, and told


def test_a_reward_model_that_scores_all_alike_is_told(data: Path, tmp_path: Path) -> None:
    with serve(World()) as server:
        found = sampled(server, data, tmp_path / "run", [alike, by_length])
    assert (found.result.rewards["alike"].identical, found.result.rewards["by_length"].identical) == (4, 0)
    said = "alike: in 4 of 4 prompts all candidates have the same reward, so chance or their order selects."
    assert said in downstream_notes(found)
    level = found.estimate("outcome").value
    assert level is not None
    for k in found.result.sampling.sizes:
        assert found.estimate("outcome", model="alike", k=k).value == pytest.approx(level)
    assert found.estimate("promised", model="alike", k=4).value is None
    assert found.estimate("rank_correlation", model="alike").value is None


def test_without_a_judge_there_is_only_what_reward_models_promise(data: Path, tmp_path: Path) -> None:
    with serve(World()) as server:
        found = sampled(server, data, tmp_path / "run", [by_length], judge=None)
    assert asked_of(server.requests) == (20, 0)
    assert not (found.path / "outcomes.parquet").exists()
    assert found.result.outcome is None
    assert set(found.metrics["metric"]) == {"reward", "promised"}
    assert (found.estimate("promised", model="by_length", k=4).value or 0) > 0
    assert downstream_notes(found)[0] == (
        "Not judged: gains are the reward models' own estimates, in standard deviations within prompts."
    )
    assert curve_table(found).title.endswith(": promised gain")


def test_two_reward_models_of_one_name_are_refused(data: Path, tmp_path: Path) -> None:
    with serve(World()) as server, pytest.raises(EvaluationError) as caught:
        sampled(server, data, tmp_path / "run", [LocalModel(name="a/rm"), LocalModel(name="b/rm")])
    assert str(caught.value) == "Two reward models have the name rm; give each its own, as NAME=MODEL."
    assert server.requests == []
