"""Models that only compare two responses: counted in both orders as judges are, recorded, resumed, checked, refused."""

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import combinations, permutations
from math import isnan
from pathlib import Path
from typing import Any

import pluralbench
import polars as pl
import pytest
from case_marks import heavy
from chat_server import serve
from downstream_runs import World, sampled
from hypothesis import given
from hypothesis import strategies as st
from pairwise_models import save_general_preference, save_pairrm
from pluralbench import compare, merge
from pluralbench.config import DataConfig, ScoringConfig
from pluralbench.contract import Group, ModelRecord, Scored
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.models import reward_loader
from pluralbench.leaderboard.checks import check_submission
from pluralbench.leaderboard.rescoring import Rescoring
from pluralbench.metrics.cycles import share_of_cycles
from pluralbench.reports.downstream import downstream_notes
from pluralbench.results.examples import examples, read_texts
from pluralbench_rewards import Cached, OnScored, Pairs
from rendered import render
from reward_models import save_language_model
from verbs import by_length, scoring, value
from written_tables import write

NAN = float("nan")
SHOWN: dict[int, tuple[float, float]] = {
    0: (0.9, 0.2),
    1: (0.6, 0.3),
    2: (0.7, 0.8),
    3: (0.4, 0.1),
    4: (0.2, 0.9),
    5: (0.5, 0.5),
    6: (0.5, 0.1),
    7: (NAN, 0.1),
}
"""By the number of a question: probability that the response shown first is better, with the right one first or not."""


def pairs(number: int) -> list[dict[str, Any]]:
    return [{"prompt": f"Question {n}?", "chosen": f"yes {n}", "rejected": f"no {n}"} for n in range(number)]


class Shown:
    """A model that compares by a table. asked: what it computed."""

    def __init__(self, *, stop_after: int = 10**9, dropped: Sequence[int] = ()) -> None:
        self.stop_after, self.dropped = stop_after, dropped
        self.asked: list[tuple[str, str]] = []

    def record(self) -> ModelRecord:
        return ModelRecord(name="shown", kind="table")

    def compare(
        self, groups: Sequence[Group], pairs: Sequence[Pairs], *, cached: Cached = None, on_scored: OnScored = None
    ) -> Scored:
        scored = Scored([], tokens_cut=[index % 2 for index in range(len(groups))])
        for index, (group, own) in enumerate(zip(groups, pairs, strict=True)):
            assert own
            number = int(group.prompt[-1]["content"].split()[1].rstrip("?"))
            if number in self.dropped:
                scored.dropped[index] = "too long"
                scored.scores.append([])
                continue
            if index in (cached or {}):
                scored.scores.append(list((cached or {})[index]))
                continue
            if len(self.asked) >= self.stop_after:
                raise KeyboardInterrupt
            texts = [(group.responses[one], group.responses[other]) for one, other in own]
            self.asked += texts
            values = [SHOWN[number % 8][not first.startswith("yes")] for first, _ in texts]
            scored.scores.append(values)
            if on_scored is not None:
                on_scored({index: values})
        return scored


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(16))


def own_vote(folder: Path, vote: str) -> str:
    path = folder / f"{vote}.toml"
    path.write_text(f'title = "Own"\nvote = "{vote}"\n', encoding="utf-8")
    return str(path)


def outcome(shown: tuple[float, float], vote: str) -> str:
    """The second computation: signs of both orders, by hand."""
    signs = [0 if p == 0.5 else 1 if p > 0.5 else -1 for p in (shown[0], 1 - shown[1]) if not isnan(p)]
    if len(signs) < 2 and (vote != "signed" or not sum(signs)):
        return "invalid"
    if vote == "signed":
        return "win" if sum(signs) > 0 else "loss" if sum(signs) < 0 else "tie"
    return "win" if signs == [1, 1] else "loss" if signs == [-1, -1] else "tie"


@pytest.mark.parametrize("vote", ["unanimous", *heavy("signed", "mean")])
def test_both_orders_count_by_the_vote(data: Path, tmp_path: Path, vote: str) -> None:
    run = pluralbench.score(Shown(), benchmark=own_vote(tmp_path, vote), data=data, out=tmp_path / "run")
    expected = [outcome(SHOWN[n % 8], vote) for n in range(16)]
    assert run.items["outcome"].to_list() == expected
    if vote == "mean":
        right = [(first > 0.5) + (second < 0.5) for first, second in SHOWN.values()]
        assert run.headline.value == pytest.approx(sum(right) / 16)
    else:
        assert run.headline.value == expected.count("win") / 16
    assert {name: run.count(name) for name in ("ties", "invalid", "losses")} == {
        "ties": expected.count("tie"),
        "invalid": expected.count("invalid"),
        "losses": expected.count("loss"),
    }
    valid = [shown for shown in SHOWN.values() if not isnan(shown[0])]
    flipped = sum((first > 0.5) - (first < 0.5) != (second < 0.5) - (second > 0.5) for first, second in valid)
    assert (run.count("asked_in_both_orders"), run.count("changed_with_the_order")) == (2 * len(valid), 2 * flipped)
    means = [(first + 1 - second) / 2 for first, second in valid]
    assert value(run, "accuracy_of_mean_probability") == sum(mean > 0.5 for mean in means) / len(means)
    first, second = (run.items[f"probability_{side}_first"].to_list() for side in ("chosen", "rejected"))
    assert list(zip(first, second, strict=True)) == [
        (None if isnan(p) else p, q) for p, q in (SHOWN[n % 8] for n in range(16))
    ]
    assert run.items["margin"].to_list()[:2] == pytest.approx([(0.9 - 0.2) / 2, (0.6 - 0.3) / 2])
    assert check_submission(run).state == "checked"
    text = str(render([run], "markdown"))
    assert f"{2 * flipped} of {2 * len(valid)} pairs" in text
    assert "Right by the mean probability" in text
    [example] = examples(run, [run.items.select("config", "id", "digest").row(0)], read_texts(run))
    assert [order["probability"] for order in example["decisions"][0]["orders"]] == list(SHOWN[0])


def test_a_run_goes_on_where_it_stopped_and_drops_what_the_model_drops(data: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        pluralbench.score(Shown(stop_after=10, dropped=[3]), data=data, benchmark="pairs", out=tmp_path / "run")
    model = Shown(dropped=[3])
    run = pluralbench.score(model, data=data, benchmark="pairs", out=tmp_path / "run")
    whole = pluralbench.score(Shown(dropped=[3]), data=data, benchmark="pairs", out=tmp_path / "whole")
    assert run.items.equals(whole.items)
    assert run.metrics.equals(whole.metrics)
    assert (scoring(run).items_resumed, len(model.asked), scoring(run).items_dropped) == (5, 20, 1)
    assert run.items.filter(outcome="dropped").select("id", "reason").height == 1
    assert check_submission(run).state == "checked"
    assert compare(run, whole).headline.difference == 0


def test_shards_join_to_the_same_run(data: Path, tmp_path: Path) -> None:
    whole = pluralbench.score(Shown(), data=data, benchmark="pairs", out=tmp_path / "whole")
    for shard in ("1/2", "2/2"):
        pluralbench.score(
            Shown(), data=data, benchmark="pairs", shard=shard, out=tmp_path / f"run-shard{shard.replace('/', 'of')}"
        )
    joined = merge([tmp_path / "run-shard1of2", tmp_path / "run-shard2of2"])
    assert joined.items.drop("truncated", "tokens_cut").equals(whole.items.drop("truncated", "tokens_cut"))
    assert joined.headline == whole.headline
    assert check_submission(joined).state == "checked"


def test_a_changed_probability_is_found(data: Path, tmp_path: Path) -> None:
    run = pluralbench.score(Shown(), data=data, benchmark="pairs", out=tmp_path / "run")
    items = run.items.with_columns(probability_chosen_first=1 - run.items["probability_chosen_first"])
    items.write_parquet(tmp_path / "run" / "items.parquet")
    checked = check_submission(pluralbench.load_run(tmp_path / "run"))
    assert checked.state == "refused"
    assert any("verdict" in finding.text for finding in checked.findings)


RANKED = [
    {"prompt": f"Question {n}?", "responses": ["yes", "no a", "no b"], "rank": [1, 2, 2]} for n in range(0, 16, 2)
] + [{"prompt": "Question 3?", "responses": ["no", "yes"], "rank": [1, 1]}]


def test_rankings_count_pairs_of_different_rank(tmp_path: Path) -> None:
    data = write(tmp_path / "r.jsonl", RANKED)
    model = Shown()
    run = pluralbench.score(model, data=data, benchmark="rankings", out=tmp_path / "run")
    expected = [outcome(SHOWN[n % 8], "unanimous") for n in range(0, 16, 2) for _ in range(2)] + ["equal"]
    assert run.items["outcome"].to_list() == expected
    assert Counter(model.asked) == {("yes", "no a"): 8, ("no a", "yes"): 8, ("yes", "no b"): 8, ("no b", "yes"): 8}
    assert check_submission(run).state == "checked"


def test_what_needs_scores_is_refused(tmp_path: Path) -> None:
    tied = write(tmp_path / "r.jsonl", RANKED[-1:])
    with pytest.raises(EvaluationError, match="only tied responses"):
        pluralbench.score(Shown(), benchmark="rankings", data=tied, out=tmp_path / "run")
    data = DataConfig(location="sample", legacy=True)
    with pytest.raises(EvaluationError, match="legacy"):
        pluralbench.score(Shown(), benchmark="chinese", data=data, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_a_subset_that_counts_by_scores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EvaluationError, match="The subset Ties"):
        pluralbench.score(Shown(), benchmark="reward-bench-2", data="sample", out=tmp_path / "run")


@pytest.mark.parametrize("family", ["general-preference", *heavy("pairrm", "pair-preference")])
def test_a_model_with_weights_is_scored_by_its_name_and_scored_again(tmp_path: Path, family: str) -> None:
    saved: dict[str, tuple[Callable[[Path], str], dict[str, Any]]] = {
        "pairrm": (save_pairrm, {}),
        "general-preference": (save_general_preference, {"label": "scaled"}),
        "pair-preference": (save_language_model, {"kind": "pairwise"}),
    }
    save, options = saved[family]
    folder = save(tmp_path / "model")
    model = pluralbench.LocalModel(name=folder, device="cpu", **options)
    run = pluralbench.score(model, benchmark="pairs", data="sample", out=tmp_path / "run")
    assert run.result.model.kind == "pairwise"
    flips = run.count("changed_with_the_order")
    assert flips == 0 if family == "general-preference" else flips >= 0
    checked = check_submission(run, rescoring=Rescoring(items=4, seed=1, model=model))
    assert checked.state == "verified", checked


class Cyclic:
    """Prefers by a number of the text, in a circle of five, a little more the response that is shown first."""

    def __init__(self, *, stops: bool = False) -> None:
        self.stops = stops

    def record(self) -> ModelRecord:
        return ModelRecord(name="cyclic", kind="table")

    def compare(
        self, groups: Sequence[Group], pairs: Sequence[Pairs], *, cached: Cached = None, on_scored: OnScored = None
    ) -> Scored:
        scores = dict(cached or {})
        for index, (group, own) in enumerate(zip(groups, pairs, strict=True)):
            places = [len(text) % 5 for text in group.responses]
            if index not in scores:
                scores[index] = [self.shown_first(places[one], places[other]) for one, other in own]
                if on_scored is not None:
                    on_scored({index: scores[index]})
            if self.stops:
                raise KeyboardInterrupt
        return Scored([scores[index] for index in range(len(groups))])

    @staticmethod
    def shown_first(one: int, other: int) -> float:
        return 0.55 if one == other else 0.85 if (other - one) % 5 < 3 else 0.25


@pytest.mark.heavy
def test_best_of_n_by_all_pairs_with_the_share_of_cycles(tmp_path: Path, people: Callable[..., Any]) -> None:
    data = write(tmp_path / "people.jsonl", people(4))
    with serve(World()) as server:
        with pytest.raises(KeyboardInterrupt):
            sampled(server, data, tmp_path / "run", rewards={"cyclic": Cyclic(stops=True), "length": by_length}, n=6)
        run = sampled(server, data, tmp_path / "run", rewards={"cyclic": Cyclic(), "length": by_length}, n=6)
    compared = run.frame("comparisons")
    shares = []
    for (item,), candidates in run.frame("candidates").partition_by("id", as_dict=True, maintain_order=True).items():
        places = {row["sample"]: len(row["text"]) % 5 for row in candidates.iter_rows(named=True)}
        rewards = {
            one: sum(
                (Cyclic.shown_first(places[one], places[other]) + 1 - Cyclic.shown_first(places[other], places[one]))
                / 2
                for other in places
                if other != one
            )
            / (len(places) - 1)
            for one in places
        }
        own = run.frame("rewards").filter(model="cyclic", id=item)
        assert dict(own.select("sample", "reward").iter_rows()) == pytest.approx(rewards)
        assert compared.filter(id=item).height == len(places) * (len(places) - 1)
        ways = [
            [(places[b] - places[a]) % 5 < 3, (places[c] - places[b]) % 5 < 3, (places[a] - places[c]) % 5 < 3]
            for a, b, c in combinations(places, 3)
            if len({places[a], places[b], places[c]}) == 3
        ]
        shares += [sum(len(set(way)) == 1 for way in ways) / len(ways)] if ways else []
    found = run.estimate("cyclic_triples", model="cyclic")
    assert found.value == pytest.approx(sum(shares) / len(shares))
    assert found.n == len(shares)
    assert run.estimate("cyclic_triples", model="length").value is None
    assert check_submission(run).state == "consistent"
    assert "triples without a tie are cycles" in "\n".join(downstream_notes(run))
    ordered = compared.with_columns(probability=(pl.col("sample") < pl.col("other")).cast(pl.Float64))
    ordered.write_parquet(run.path / "comparisons.parquet")
    assert check_submission(pluralbench.load_run(run.path)).state == "refused", "without a cycle"


@pytest.mark.heavy
def test_the_command_takes_reward_models_with_their_options(
    run: Callable[..., tuple[int, str, str]], tmp_path: Path, people: Callable[..., Any]
) -> None:
    folder, data = save_general_preference(tmp_path / "my gpm"), write(tmp_path / "people.jsonl", people(1))
    words = ["best-of-n", "--policy", "p", "--data", str(data), "--n", "4", "--device", "cpu", "--profile", "none"]
    with serve(World()) as server:
        words += ["--policy-base-url", server.base_url, "--out", str(tmp_path / "run")]
        status, _, error = run(*words, "--reward", f"gpm={folder}")
        assert (status, "name the way of the program that trained it as `--label` (scaled: " in error) == (2, True)
        status, _, error = run(*words, "--reward", f"gpm={folder} --label normalized", "--fresh")
    assert (status, "vectors of length 1" in error) == (0, True)
    made = pluralbench.load_run(tmp_path / "run")
    assert made.config.model_dump()["rewards"]["gpm"]["label"] == "normalized"
    shown = {(one, other): value for one, other, value in made.frame("comparisons")[:, -3:].iter_rows()}
    assert shown.keys() == {*permutations(range(4), 2)}
    assert all(value + shown[other, one] == pytest.approx(1) for (one, other), value in shown.items())


@given(
    st.integers(1, 6).flatmap(lambda n: st.lists(st.sampled_from([0.1, 0.4, 0.5, 0.9]), min_size=n * n, max_size=n * n))
)
def test_the_share_of_cycles_is_that_of_a_count_by_hand(values: list[float]) -> None:
    number = int(len(values) ** 0.5)
    pairs = [(one, other) for one in range(number) for other in range(number) if one != other]
    shown = {pair: values[pair[0] * number + pair[1]] for pair in pairs}
    frame = pl.DataFrame(
        [{"sample": 2 * one, "other": 2 * other, "probability": value} for (one, other), value in shown.items()],
        schema={"sample": pl.Int64, "other": pl.Int64, "probability": pl.Float64},
    )
    cyclic = decided = 0
    for triple in combinations(range(number), 3):
        wins = Counter(one for one, other in permutations(triple, 2) if shown[one, other] > shown[other, one])
        if wins.total() == 3:
            decided += 1
            cyclic += set(wins.values()) == {1}
    assert share_of_cycles(frame) == pytest.approx(cyclic / decided if decided else NAN, nan_ok=True)


def test_a_policy_is_not_optimized_against_comparisons() -> None:
    with pytest.raises(EvaluationError, match="`optimize` needs a score of each"):
        reward_loader(Shown(), ScoringConfig(), "`optimize`")()
