"""Best-of-N from end to end: what is asked, what the numbers are made of, and what is told."""

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np
import pytest
import verbs
from chat_server import Reply, serve
from downstream_runs import MODELS, World, asked_of, is_judged, sampled, shown
from pluralbench.config import OutcomeConfig
from pluralbench.contract import Group
from pluralbench.data.metric_key import MetricKey
from pluralbench.downstream.best_of_n import best_of_n
from pluralbench.metrics.best_of_n import OutcomeTable, curve_numbers
from pluralbench.reports.downstream import curve_table, downstream_notes, report_downstream
from pluralbench.results import Downstream
from pluralbench_calls import CallsError
from pluralbench_calls.chat import ConnectionConfig
from pluralbench_rewards import FunctionModel
from verbs import by_length
from written_tables import write

Row = dict[str, Any]
Command = Callable[..., tuple[int, str, str]]
SIZES = (1, 2, 4)
N = 5


@dataclass
class Made:
    """A finished run and the requests that it made."""

    found: Downstream
    requests: list[Row]


@pytest.fixture(scope="module")
def made(sample: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    with serve(World()) as server:
        found = sampled(server, sample, tmp_path_factory.mktemp("runs") / "run", limit=2)
        return Made(found, server.requests)


def never(groups: Sequence[Group]) -> list[list[float]]:
    """No reward for anything."""
    return [[math.nan] * len(group.responses) for group in groups]


def of(found: Downstream, name: str, *columns: str) -> dict[Any, Any]:
    """A frame's last column by the ones before it, of one turn."""
    return {row[:-1]: row[-1] for row in found.frame(name).select(columns).iter_rows()}


def mean_over_configs(by_item: Mapping[tuple[str, str], float | None]) -> float:
    """The unweighted mean over configs of the mean over items, of which those without a value are left out."""
    configs: dict[str, list[float]] = {}
    for (config, _), value in by_item.items():
        if value is not None:
            configs.setdefault(config, []).append(value)
    return fmean(fmean(values) for values in configs.values())


def best_of_any(rewards: Sequence[float | None], values: Sequence[float], k: int) -> float | None:
    """The mean value of the best over all sets of k candidates; of equal ones, chance decides."""
    there = [place for place, reward in enumerate(rewards) if reward is not None]
    worth = []
    for drawn in combinations(there, min(k, len(there))):
        most = max(rewards[place] or 0.0 for place in drawn)
        worth.append(fmean(values[place] for place in drawn if rewards[place] == most))
    return fmean(worth) if there else None


def best_of_the_first(rewards: Sequence[float | None], k: int) -> int | None:
    """Of the first k the highest reward, and of equal ones the earliest."""
    best: int | None = None
    for place, reward in enumerate(rewards[:k]):
        if reward is not None and (best is None or reward > (rewards[best] or -math.inf)):
            best = place
    return best


def test_best_of_k_is_what_a_second_computation_makes_of_the_files(made: Made) -> None:
    found = made.found
    rewards = of(found, "rewards", "model", "config", "id", "sample", "reward")
    values = of(found, "outcomes", "config", "id", "sample", "value")
    items = list(dict.fromkeys(key[:2] for key in values))
    assert (len(items), len(values), len(rewards)) == (6, 30, 60)
    by_item = {item: [values[*item, number] for number in range(N)] for item in items}
    level = mean_over_configs({item: fmean(own) for item, own in by_item.items()})
    assert found.estimate("outcome").value == pytest.approx(level)
    some_missing = 0
    for model in MODELS:
        own = {item: [rewards[model, *item, number] for number in range(N)] for item in items}
        some_missing += sum(reward is None for given in own.values() for reward in given)
        for k in SIZES:
            whole = {item: best_of_any(own[item], by_item[item], k) for item in items}
            assert found.estimate("outcome", model=model, k=k).value == pytest.approx(mean_over_configs(whole)), (
                model,
                k,
            )
            prefix = {
                item: None if (place := best_of_the_first(own[item], k)) is None else by_item[item][place]
                for item in items
            }
            first = found.estimate("outcome_of_first", model=model, k=k)
            assert first.value == pytest.approx(mean_over_configs(prefix)), (model, k)
            assert first.n == sum(value is not None for value in prefix.values())
            taken = found.frame("selected").filter(model=model, k=k)
            assert dict(zip(taken.select("config", "id").iter_rows(), taken["sample"], strict=True)) == {
                item: best_of_the_first(own[item], k) for item in items
            }
        gain = found.estimate("outcome_gain", model=model, k=4).value
        most = found.estimate("outcome", model=model, k=4).value
        assert most is not None
        assert gain == pytest.approx(most - level)
    assert some_missing, "candidates without a reward are in it"
    for config in {config for config, _ in items}:
        expected = fmean(best_of_any(rewards_of(found, "length", item), by_item[item], 4) or 0.0 for item in items
                         if item[0] == config)  # fmt: skip
        assert found.estimate("outcome", model="length", k=4, config=config).value == pytest.approx(expected)


def rewards_of(found: Downstream, model: str, item: tuple[str, str]) -> list[float | None]:
    """What a model gave the candidates of an item."""
    return found.frame("rewards").filter(model=model, config=item[0], id=item[1]).sort("sample")["reward"].to_list()


def test_intervals_hold_their_values_and_the_promise_rises_with_k(made: Made) -> None:
    for model in MODELS:
        promised = [made.found.estimate("promised", model=model, k=k) for k in SIZES]
        assert promised[0].value == pytest.approx(0.0, abs=1e-9)
        assert promised[0].low is None, "the gain of the only one is 0 whatever is drawn"
        assert [one.value for one in promised] == sorted(one.value or 0.0 for one in promised)
        for metric in ("promised", "realized", "outcome"):
            for one in (made.found.estimate(metric, model=model, k=k) for k in SIZES):
                assert one.value is not None
                assert one.clusters == 6
                if abs(one.value) < 1e-9:
                    continue
                assert one.low is not None
                assert one.high is not None
                assert one.low < one.value < one.high


def test_each_candidate_is_judged_once_however_many_models_select_it(made: Made) -> None:
    assert asked_of(made.requests) == (30, 30)
    answers = Counter((shown(body)["question"], shown(body)["answer"]) for body in made.requests if is_judged(body))
    assert set(answers.values()) == {1}
    outcome, sampling = made.found.result.outcome, made.found.result.sampling
    assert outcome is not None
    assert (outcome.calls, outcome.judged, outcome.invalid, outcome.completion_tokens) == (30, 30, 0, 150)
    assert (sampling.sizes, sampling.turns, sampling.prompts) == (SIZES, 1, 6)
    assert (sampling.outcomes, sampling.reasons, sampling.completion_tokens) == ({"answer": 30}, {}, 150)


def test_the_policy_is_told_the_posts_and_the_judge_the_aspects_alone(made: Made) -> None:
    for body in made.requests:
        text = str(body["messages"])
        assert ("Posts I wrote earlier" in text) == (not is_judged(body))
        assert ("<aspects>" in text) == is_judged(body)
    policy = [body for body in made.requests if not is_judged(body)]
    assert {(body["temperature"], body["top_p"], body["max_tokens"]) for body in policy} == {(1.0, 0.9, 512)}
    assert {body["messages"][0]["role"] for body in policy} == {"system"}


def test_only_what_is_selected_is_judged_where_that_is_asked_for(made: Made, sample: Path, tmp_path: Path) -> None:
    with serve(World()) as server:
        found = sampled(server, sample, tmp_path / "run", limit=2, judged="selected")
        policy, judged = asked_of(server.requests)
    chosen = found.frame("selected").drop_nulls("sample").select("config", "id", "sample").unique()
    assert (policy, judged) == (30, chosen.height)
    assert judged < 30
    assert found.frame("candidates").equals(made.found.frame("candidates"))
    for model in MODELS:
        for k in SIZES:
            first = made.found.estimate("outcome_of_first", model=model, k=k).value
            assert found.estimate("outcome_of_first", model=model, k=k).value == pytest.approx(first)
            assert found.estimate("outcome", model=model, k=k).value == pytest.approx(first)
        assert found.estimate("realized", model=model, k=4).value is None
    assert any("of the first k candidates" in note for note in downstream_notes(found))


@pytest.mark.heavy
def test_a_model_without_any_reward_takes_nothing_from_the_others(sample: Path, tmp_path: Path) -> None:
    with serve(World()) as server:
        found = sampled(
            server, sample, tmp_path / "run", {"never": never, "length": by_length}, limit=1, judged="selected"
        )
        assert found.estimate("outcome").value is not None
        assert found.estimate("outcome_gain", model="length", k=4).value is not None
        assert found.estimate("outcome", model="never", k=4).value is None
        assert found.result.rewards["never"].missing == 15
        unjudged = sampled(server, sample, tmp_path / "unjudged", [never], limit=1, judge=None)
    assert unjudged.metrics.is_empty()
    assert len(curve_table(unjudged).rows) == 1
    assert any("never: 15 candidates have no reward" in note for note in downstream_notes(unjudged)), "by its name"


@pytest.mark.heavy
@pytest.mark.parametrize("measure", ["rating", "win"])
def test_other_measures(sample: Path, tmp_path: Path, measure: str) -> None:
    with serve(World()) as server:
        found = sampled(server, sample, tmp_path / "run", limit=1, measure=measure)
        policy, judged = asked_of(server.requests)
    further = measure == "win"
    assert (policy, judged) == (3 * (N + further), 3 * N)
    values = found.frame("outcomes")["value"].to_list()
    texts = of(found, "candidates", "config", "id", "sample", "text")
    if not further:
        assert set(values) <= {float(number) for number in range(1, 11)}
        assert len(set(values)) > 3
        return
    # The judge of this world likes the longer one, in whichever place; where both are as long, the one in place B.
    for *key, value in found.frame("outcomes").select("config", "id", "sample", "value").iter_rows():
        own, other = len(texts[tuple(key)]), len(texts[*key[:2], N])
        assert value in {1.0, -1.0}
        assert own == other or value == (1.0 if own > other else -1.0)
    assert found.frame("rewards")["sample"].max() == N - 1, "the further sample is never selected"


def test_the_best_model_is_first_and_one_without_a_value_last(sample: Path, tmp_path: Path) -> None:
    class Strict(World):
        def judged(self, body: Row) -> Reply:
            return Reply(str([0] * (shown(body)["aspects"].count("\n") + 1)))

    models = {"never": never, "length": by_length, "nothing": never}
    with serve(Strict()) as server:
        found = sampled(server, sample, tmp_path / "run", models, limit=1)
    assert found.estimate("outcome", model="length", k=4).value == 0.0
    assert [row.name for row in curve_table(found).rows] == ["length", "never", "nothing"]


# Two turns

TURNS = [{"id": f"m{n}", "turns": [f"Name {n} rivers.", "Now in one sentence."]} for n in range(1, 4)]
CHAT: Row = {"benchmark": "prompts", "columns": ("prompt=turns",), "profile": "none", "measure": "rating"}


@pytest.mark.heavy
def test_in_the_second_turn_each_conversation_goes_on_from_what_was_selected(tmp_path: Path) -> None:
    data = write(tmp_path / "turns.jsonl", TURNS)
    with serve(World()) as server:
        found = sampled(server, data, tmp_path / "run", **CHAT)
    policy = [body["messages"] for body in server.requests if not is_judged(body)]
    assert {tuple(message["role"] for message in messages) for messages in policy} == {
        ("user",),
        ("user", "assistant", "user"),
    }
    texts = of(found, "candidates", "id", "turn", "history", "sample", "text")
    selected = found.frame("selected")
    first = selected.filter(turn=0).drop_nulls("sample")
    kept = {(row["id"], texts[row["id"], 0, row["history"], row["sample"]]) for row in first.iter_rows(named=True)}
    asked = Counter(
        (f"m{messages[0]['content'].split()[1]}", messages[1]["content"]) for messages in policy if len(messages) == 3
    )
    assert asked == Counter(dict.fromkeys(kept, N)), "conversations that are alike are sampled once"
    assert all(messages[2]["content"] == "Now in one sentence." for messages in policy if len(messages) == 3)
    # What is selected is worth the mean over both turns.
    values = of(found, "outcomes", "id", "turn", "history", "sample", "value")
    for model in MODELS:
        for k in SIZES:
            by_item: dict[str, list[float | None]] = {}
            for row in selected.filter(model=model, k=k).iter_rows(named=True):
                value = values.get((row["id"], row["turn"], row["history"], row["sample"]))
                by_item.setdefault(row["id"], []).append(value)
            whole = [fmean(map(float, own)) for own in by_item.values() if len(own) == 2 and None not in own]  # type: ignore[arg-type]
            estimate = found.estimate("outcome", model=model, k=k).value
            assert estimate == (pytest.approx(fmean(whole)) if whole else None), (model, k)
    assert found.result.sampling.turns == 2
    later = [body["messages"][-1]["content"] for body in server.requests if is_judged(body)]
    later = [asked for asked in later if "Now in one sentence." in asked]
    assert len(later) == len(kept) * N
    assert all(any(text in asked for _, text in kept) for asked in later), "the judge sees the first turn too"


# What comes of a call


def test_what_is_cut_counts_and_what_is_empty_or_refused_is_counted(sample: Path, tmp_path: Path) -> None:
    odd = [Reply("half an answer", finish_reason="length"), Reply(" "), Reply(None, refusal="I will not.")]
    odd += [Reply("", finish_reason="length"), Reply("all of it"), Reply("all of it")]

    class Odd(World):
        def said(self, body: Row) -> Reply:
            self.asked["all"] += 1
            return odd[(self.asked["all"] - 1) % len(odd)]

    with serve(Odd()) as server:
        found = sampled(server, sample, tmp_path / "run", limit=2, n=6, k=(1, 6))
    assert found.result.sampling.outcomes == {"answer": 12, "empty": 12, "length": 6, "refusal": 6}
    assert found.result.sampling.reasons == {"empty": 12, "refusal": 6}
    assert (found.frame("outcomes").height, found.frame("rewards").filter(model="length").height) == (18, 18)
    # Equal answers to one prompt are judged by one call.
    assert asked_of(server.requests) == (36, 12)
    assert set(found.frame("selected").filter(model="length", k=6)["sample"]) == {0}, "the longest is the cut one"
    said = " ".join(downstream_notes(found))
    assert "6 of 36 candidates were truncated at 512 tokens, and are judged as they are." in said
    assert "18 of 36 candidates have no text and are never selected: empty (12), refusal (6)." in said


@pytest.mark.heavy
def test_a_judge_that_cannot_be_read_is_counted(sample: Path, tmp_path: Path) -> None:
    class Mute(World):
        def judged(self, body: Row) -> Reply:
            return Reply("[1]") if " 1" in shown(body)["answer"][-2:] else super().judged(body)

    with serve(Mute()) as server:
        found = sampled(server, sample, tmp_path / "run", limit=1)
    outcome = found.result.outcome
    assert outcome is not None
    assert (outcome.judged, outcome.invalid, outcome.calls) == (15, 3, 12 + 3 * 4)
    assert sum(outcome.invalid_reasons.values()) == 3
    assert all(reason.startswith("1 scores for ") for reason in outcome.invalid_reasons)
    said = " ".join(downstream_notes(found))
    assert "3 of 15 candidates have no valid value and are excluded" in said
    assert "Best of k may therefore be biased: it averages only sets whose best candidate has a value" in said
    report = report_downstream([found])
    assert "3 of 15 candidates have no valid value and are excluded" in " ".join(report.notes)
    [table] = report.tables
    prompts = {row.name: row.values[-1] for row in table.rows}
    last = found.result.sampling.sizes[-1]
    expected = {model: found.estimate("outcome", model=model, k=last).n for model in MODELS}
    assert prompts == expected | {"Base": found.estimate("outcome").n}
    assert (len({*prompts.values()}) > 1, table.columns[-1].text) == (True, "prompts")
    assert any("over different prompts" in note for note in report.notes)


def test_what_a_model_gains_is_over_the_items_that_it_shares_with_the_policy() -> None:
    # Of the second conversation, what is the best of two has a turn without a value.
    places, selected = np.arange(3), {("m", 1): np.array([1.0, 9.0, 3.0]), ("m", 2): np.array([2.0, np.nan, 5.0])}
    table = OutcomeTable(np.zeros(3, np.int64), places, ["c"], {"m": np.array([[1.0, 2.0]] * 3)}, None, selected)
    found = {place: one for place, one in curve_numbers(table, (1, 2), by_config=True) if place.config is None}
    gain, lost = (found[MetricKey(name, model="m", k=2)] for name in ("outcome_gain", "outcome"))
    assert (gain.value, gain.n, lost.value) == (1.5, 2, 3.5)
    # At k=1 the mean is the highest, but only by what k=2 lacks.
    assert found[MetricKey("since_best", model="m", k=2)].value == 0
    assert not [place for place in found if place.metric == "since"]


@pytest.mark.parametrize(
    ("judge", "sentence"),
    [
        ({"base_url": "http://localhost:9/v1"}, "localhost cannot be reached"),
        ({"base_url": "http://localhost:9/v1", "api_key_env": "PLURALBENCH_NO_KEY"}, "localhost needs a key"),
    ],
)
def test_a_judge_that_cannot_be_called_is_noticed_before_anything_is_sampled(
    sample: Path, tmp_path: Path, judge: dict[str, str], sentence: str
) -> None:
    with serve(World()) as server:
        connection = ConnectionConfig(base_url=server.base_url)
        outcome = OutcomeConfig(judge="a-judge", measure="rating")
        with pytest.raises(CallsError, match=sentence):
            best_of_n(
                "a-policy",
                {"m": by_length},
                data=str(sample),
                outcome=outcome,
                policy_connection=connection,
                judge_connection=ConnectionConfig.model_validate(judge),
                out=tmp_path / "run",
            )
        assert server.requests == []
    assert list(tmp_path.iterdir()) == []


def test_the_command_samples_scores_judges_and_tells(
    run: Command, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pluralbench_local.loading.load_to_score", lambda *_: FunctionModel(by_length))
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.json").write_text("{}", encoding="utf-8")
    with serve(World()) as server:
        words = ["best-of-n", "--policy", "a-policy", "--policy-base-url", server.base_url, "--policy-concurrency", "1"]
        words += [
            "--reward",
            f"a={tmp_path / 'a'}",
            "--reward",
            f"b={tmp_path / 'b'}",
            "--data",
            str(sample),
            "--limit",
            "1",
        ]
        words += ["--n", "3", "--k", "1,3", "--temperature", "0.7", "--top-p", "0.8", "--max-tokens", "99"]
        words += ["--judge", "a-judge", "--judge-base-url", server.base_url, "--judge-max-tokens", "77"]
        words += ["--judge-attempts", "2", "--judged", "selected", "--profile-size", "2", "--seed", "3"]
        words += ["--out", str(tmp_path / "run"), "--plots", str(tmp_path / "plots")]
        status, said, error = run(*words)
        requests = server.requests
    assert (status, error) == (0, "")
    for part in (
        "Best of k from a-policy on Personalized RewardBench (personalized-rewardbench): rubric score",
        "best of 1",
        "best of 3",
        "gain",
        "The policy by itself: ",
        "run: run.json, metrics.json, candidates.parquet, outcomes.parquet, rewards.parquet, selected.parquet",
    ):
        assert part in " ".join(said.split())
    assert sorted(path.name for path in (tmp_path / "plots").iterdir()) == ["best_of_n.png", "best_of_n.svg"]
    policy = [body for body in requests if not is_judged(body)]
    assert {(body["temperature"], body["top_p"], body["max_tokens"]) for body in policy} == {(0.7, 0.8, 99)}
    assert {body["max_tokens"] for body in requests if is_judged(body)} == {77}
    settings = verbs.config(tmp_path / "run")
    assert settings["sampling"] == {"n": 3, "k": [1, 3], "temperature": 0.7, "top_p": 0.8, "max_tokens": 99}
    outcome = {"judge": "a-judge", "measure": "rubric", "judged": "selected", "max_tokens": 77, "attempts": 2}
    assert settings["outcome"] == outcome
    assert (settings["prompt"]["profile"], settings["prompt"]["profile_size"], settings["seed"]) == ("raw", 2, 3)
    assert list(settings["rewards"]) == ["a", "b"]


def test_a_prompt_without_any_text_is_named_and_left_out(sample: Path, tmp_path: Path) -> None:
    class Silent(World):
        def said(self, body: Row) -> Reply:
            self.asked["all"] += 1
            return Reply("") if self.asked["all"] <= N else super().said(body)

    with serve(Silent()) as server:
        found = sampled(server, sample, tmp_path / "run", limit=1)
    [silent] = found.result.sampling.without_text
    assert silent == found.frame("candidates")["id"][0]
    assert found.estimate("outcome").n == 2
    assert any(f"1 of 3 prompts have no candidates (ids {silent})." in note for note in downstream_notes(found))
