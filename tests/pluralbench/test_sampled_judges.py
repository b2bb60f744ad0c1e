"""Judges that reply several times, and panels of judges: calls, votes, numbers by samples, and what reads such runs."""

import hashlib
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from itertools import combinations
from pathlib import Path
from statistics import fmean, multimode
from typing import Any

import polars as pl
import pytest
import verbs
from case_marks import heavy
from chat_server import ChatServer, Reply, Script, serve
from pluralbench import compare, load_run, merge
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.soft_verdicts import mean_probability, probability_of_first
from pluralbench.leaderboard.checks import check_submission
from pluralbench.metrics.votes import MOST, subsets
from pluralbench.reports.figures.report import figures_of
from pluralbench.results import Run
from pluralbench_calls import Answer, CallsError, ParsedReply
from pluralbench_calls.logprobs import SoftVerdict
from polars.testing import assert_frame_equal
from rendered import render
from verbs import judging, value
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]
WARM: dict[str, Any] = {"temperature": 0.7, "concurrency": 1}


def drawn(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:4])


def script() -> Script:
    """Replies that depend on the model, the messages, and how often they came; some cannot be read."""
    times: Counter[str] = Counter()

    def reply(body: dict[str, Any], _: int) -> Reply:
        messages = f"{body['model']} {body['messages']}"
        times[messages] += 1
        number = drawn(f"{messages} {times[messages]}") % 12
        pointwise = "<response>" in str(body["messages"])
        first = "[[8]]" if pointwise else "[[1]]" if "<response_1>" in str(body["messages"]) else "[[A]]"
        second = "[[5]]" if pointwise else "[[2]]" if "<response_1>" in str(body["messages"]) else "[[B]]"
        return Reply("I cannot say." if number == 0 else first if number < 8 else second)

    return reply


def judged(server: ChatServer, data: Any, out: Path, models: str | Sequence[str] = "judge-1", **options: Any) -> Run:
    return verbs.judge(models, data=str(data), base_url=server.base_url, out=out, **WARM | options)


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(4))


# A second computation from the calls


def letters(run: Run) -> dict[tuple[str, str, str], dict[str, list[str | None]]]:
    """The letter in the last call of each reply: by id, pair and order, by judge, in the order of the samples."""
    texts = dict(pl.read_parquet(run.path / "ledger.parquet").select("key", "text").iter_rows())
    found: dict[Any, dict[str, list[str | None]]] = defaultdict(lambda: defaultdict(list))
    for row in pl.read_parquet(run.path / "replies.parquet").sort("sample", maintain_order=True).iter_rows(named=True):
        marked = re.findall(r"\[\[([AB])\]\]", texts[row["calls"][-1]])
        found[row["config"], row["id"], row["first"]][row["judge"]].append(marked[0] if marked else None)
    return found


def right_by_pair(
    found: dict[tuple[str, str, str], dict[str, list[str | None]]], judges: Sequence[str], samples: Sequence[int]
) -> Iterator[tuple[str, bool]]:
    """The config of each pair, and whether the votes in both orders are for the better response."""
    for config, item, _ in [key for key in found if key[2] == "chosen"]:
        votes = []
        for first, better in (("chosen", "A"), ("rejected", "B")):
            own = [found[config, item, first][judge][sample] for judge in judges for sample in samples]
            counts = Counter(letter for letter in own if letter is not None)
            votes.append(counts[better] > counts["AB".replace(better, "")])
        yield config, all(votes)


def accuracy(run: Run, judges: Sequence[str], k: int) -> Fraction:
    """The mean over all subsets of k samples of the unweighted mean of the configs."""
    found = letters(run)
    every = [*combinations(range(run.config.judge_setting("samples")), k)]
    total = Fraction(0)
    for samples in every:
        configs: dict[str, list[bool]] = defaultdict(list)
        for config, right in right_by_pair(found, judges, samples):
            configs[config].append(right)
        total += Fraction(sum(Fraction(sum(own), len(own)) for own in configs.values()), len(configs))
    return total / len(every)


def killed(reply: Script, after: int) -> Script:
    """Refuses the key after so many replies."""
    return lambda body, number: reply(body, number) if number < after else Reply("no such key", status=401)


@pytest.mark.heavy
def test_eight_samples_in_both_orders_give_accuracy_and_cost_by_samples_from_one_run(tmp_path: Path) -> None:
    options: dict[str, Any] = {"benchmark": "personalized", "samples": 8, "price": "1/2", "limit": 3}
    reply = script()
    with serve(killed(reply, 50)) as server, pytest.raises(CallsError, match=r"50 of 144 verdicts are recorded"):
        judged(server, "sample", tmp_path / "run", **options)
    with serve(reply) as server:
        run = judged(server, "sample", tmp_path / "run", **options)
        assert 50 + len(server.requests) == judging(run).calls == pl.read_parquet(run.path / "ledger.parquet").height
    assert run.names("k", "accuracy_of_votes") == [1, 2, 4, 8]
    for k in (1, 2, 4, 8):
        expected = accuracy(run, ["judge-1"], k)
        assert value(run, "accuracy_of_votes", k=k) == pytest.approx(float(expected), abs=1e-12)
        assert value(run, "tokens_of_votes", k=k) == pytest.approx(judging(run).calls * 15 * k / 8)
    assert run.estimate("accuracy_of_votes", k=8) == run.headline
    tied = sum(counts["A"] == counts["B"] > 0 for own in letters(run).values() for counts in [Counter(own["judge-1"])])
    assert run.count("tied_votes") == tied
    assert value(run, "share_of_tied_votes", k=8) == pytest.approx(tied / 18)
    assert run.count("invalid_replies", judge="judge-1") == 0
    assert check_submission(run).state == "checked"


def test_samples_of_a_panel_vote_and_each_judge_has_its_numbers(data: Path, tmp_path: Path) -> None:
    models = ["a", "org/b", "c"]
    with serve(script()) as server:
        run = judged(server, data, tmp_path / "run", models, benchmark="pairs", samples=2, attempts=1)
        assert len(server.requests) == 4 * 2 * 2 * 3
    assert (run.name, run.result.model.kind) == ("a + b + c", "generative")
    assert value(run, "overall") == pytest.approx(float(accuracy(run, models, 2)))
    for name in models:
        others = [other for other in models if other != name]
        for k in (1, 2):
            assert value(run, "accuracy_of_votes", judge=name, k=k) == pytest.approx(float(accuracy(run, [name], k)))
        assert value(run, "accuracy_without_judge", judge=name) == pytest.approx(float(accuracy(run, others, 2)))
        own = [found[name] for found in letters(run).values()]
        assert run.count("invalid_replies", judge=name) == sum(letter is None for two in own for letter in two)
        readable = [two[0] == two[1] for two in own if None not in two]
        assert value(run, "agreement_within_judge", judge=name) == pytest.approx(sum(readable) / len(readable))
    assert check_submission(run).state == "checked"
    text = str(render([run], "markdown"))
    assert "votes of a + b + c" in text
    assert "Votes of k samples: " in text
    assert "Agreement: pairs of a judge's replies" in text
    assert "without org/b" in text
    chart = figures_of([run])["votes_pairs"]
    assert {mark.series.label for mark in chart.marks} == {"panel", "a", "b", "c"}
    shown = [mark.point.value for mark in chart.marks if mark.series.label == "panel"]
    assert shown == [pytest.approx(100 * value(run, "accuracy_of_votes", k=k)) for k in (1, 2)]


def test_a_panel_of_single_replies_needs_no_temperature(data: Path, tmp_path: Path) -> None:
    with serve(script()) as server:
        run = judged(server, data, tmp_path / "run", ["a", "b"], benchmark="pairs", temperature=0.0)
        one = judged(server, data, tmp_path / "one", "a", benchmark="pairs", temperature=0.0)
        again = judged(server, data, tmp_path / "run", ["a", "b"], benchmark="pairs", temperature=0.0)
    assert run.names("k", "accuracy_of_votes") == [1]
    assert run.metrics.filter(metric="accuracy_without_judge").is_empty(), "of two judges, the other one remains"
    assert run.metrics.filter(metric="agreement_within_judge").is_empty()
    assert "a tied vote is a tie" in (text := str(render([run], "markdown")))
    assert not any(word in text for word in ("Agreement:", "Votes of k samples:")), "no such column, no such rows"
    assert "replies.parquet" not in {path.name for path in one.path.iterdir()}
    assert again.items.equals(run.items)
    assert compare(run, one).headline.second == one.headline.value


def test_a_folder_that_a_server_is_asked_for_by_name_is_said(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder").mkdir()
    with serve(script()) as server:
        run = judged(server, data, tmp_path / "run", "./folder", benchmark="pairs", limit=1)
    assert {body["model"] for body in server.requests} == {"./folder"} == {run.result.model.name}
    assert "./folder is a folder here, but the judge is the server's model of this name" in capsys.readouterr().err


def test_a_missing_judge_is_noticed_before_the_others_have_judged_all(data: Path, tmp_path: Path) -> None:
    reply = script()

    def without(body: dict[str, Any], number: int) -> Reply:
        return Reply("no model missing", status=404) if body["model"] == "missing" else reply(body, number)

    with serve(without) as server:
        with pytest.raises(CallsError, match="missing"):
            judged(server, data, tmp_path / "run", ["a", "missing"], benchmark="pairs", attempts=1)
        assert sum(body["model"] == "a" for body in server.requests) == 2


@pytest.mark.parametrize(
    ("protocol", "vote"), [("pointwise", "majority"), *heavy(("pointwise", None), ("listwise", None))]
)
def test_ratings_and_picks_vote(tmp_path: Path, protocol: str, vote: Any) -> None:
    rows = [{"id": f"q{n}", "prompt": f"{n}?", "responses": ["x", "y", "z"], "rank": [1, 2, 2]} for n in range(4)]
    with serve(script()) as server:
        table = write(tmp_path / "r.jsonl", rows)
        options: dict[str, Any] = {
            "benchmark": "rankings",
            "protocol": protocol,
            "samples": 3,
            "attempts": 2,
            "vote": vote,
        }
        run = judged(server, table, tmp_path / "run", **options)
    replies = run.frame("replies")
    assert replies.height == 4 * 3 * 3
    for (item, response), score in zip(run.items.select("id", "response").iter_rows(), run.items["score"], strict=True):
        own = replies.filter(id=item, response=response)["score"].drop_nulls().to_list()
        if vote == "majority":
            assert score == pytest.approx(fmean(multimode(own)))
        elif protocol == "pointwise":
            assert score == pytest.approx(fmean(own))
        else:
            votes = [replies.filter(id=item, response=name)["score"].sum() for name in ("0", "1", "2")]
            best = [place for place in range(3) if votes[place] == max(votes)]
            assert score == pytest.approx((int(response) in best) / len(best))
    assert run.estimate("accuracy_of_votes", k=3) == run.headline
    assert run.count("rated") == 0
    assert check_submission(run).state == "checked"
    changed = replies.with_columns(score=pl.when(pl.col("score") > 0).then(pl.col("score") + 1).otherwise("score"))
    changed.write_parquet(run.path / "replies.parquet")
    assert check_submission(load_run(run.path)).state == "refused"


def test_scores_of_pairs_vote_by_their_mean_with_the_sampling_of_the_prompt(data: Path, tmp_path: Path) -> None:
    times: Counter[str] = Counter()

    def reply(body: dict[str, Any], _: int) -> Reply:
        times[str(body["messages"])] += 1
        scores = [(5, 1), (2, 3), (2, 3)][times[str(body["messages"])] % 3]
        return Reply(f'{{"score_1": {scores[0]}, "score_2": {scores[1]}, "ranking": 1}}')

    options: dict[str, Any] = {"benchmark": "pairs", "prompt": "nemotron-genrm-json", "samples": 3, "concurrency": 1}
    with serve(reply) as server:
        where = {"data": str(data), "base_url": server.base_url, **options}
        mean, majority = (verbs.judge("m", out=tmp_path / rule, vote=rule, **where) for rule in ("mean", "majority"))
        assert {body["temperature"] for body in server.requests} == {0.6}
    assert sorted(mean.frame("replies")["margin"].unique()) == [-1.0, 4.0]
    assert {*mean.items["verdict_chosen_first"]} == {"A"}, "the first has 3 on average, the other 2.33"
    assert {*majority.items["verdict_chosen_first"]} == {"B"}
    assert check_submission(mean).state == "checked"


@pytest.mark.heavy
def test_merged_shards_are_the_run_of_all_items(data: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"benchmark": "pairs", "samples": 3}
    runs = []
    for shard in (None, "1/2", "2/2"):
        with serve(script()) as server:
            runs.append(judged(server, data, tmp_path / f"{shard}".replace("/", "of"), shard=shard, **options))
    merged = merge([run.path for run in runs[1:]], out=tmp_path / "merged")
    assert merged.frame("replies").equals(runs[0].frame("replies"))
    assert merged.metrics.equals(runs[0].metrics)
    assert check_submission(merged).state == "checked"


@pytest.mark.heavy
def test_names_and_order_of_rows_change_no_number(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    rows = pairs(4)
    others = [row | {"id": f"{place}-{row['id']}"} for place, row in enumerate(reversed(rows))]
    runs = []
    for name, own in (("rows", rows), ("others", others)):
        data = write(tmp_path / "p.jsonl", own)  # its name is the config's
        with serve(script()) as server:
            options: dict[str, Any] = {"benchmark": "pairs", "samples": 3}
            runs.append(judged(server, data, tmp_path / name, ["a", "b"], **options))
    assert_frame_equal(runs[0].metrics, runs[1].metrics, check_exact=True)
    assert runs[0].metrics["value"].n_unique() > 1


def test_show_says_whose_reply_it_is(data: Path, tmp_path: Path, run: Command) -> None:
    with serve(script()) as server:
        judged(server, data, tmp_path / "run", ["a", "b"], benchmark="pairs", samples=2, attempts=1)
    status, shown, _ = run("show", tmp_path / "run", "--limit", "1")
    assert status == 0
    assert "Reply 4 of 4 (b, sample 2)" in shown


@pytest.mark.parametrize(
    ("models", "options", "says"),
    [
        ("a", {"samples": 4, "temperature": 0.0}, "`samples=4` needs samples that differ"),
        (["a", "b", "a"], {}, "The judge a is in the panel twice"),
        ([], {}, "at least one judge"),
        ("a", {"vote": "mean"}, "needs several replies"),
        (["a", "b"], {"logprobs": True, "tie_margin": 0.1}, "several replies vote by their verdicts"),
    ],
)
def test_votes_that_cannot_be_are_refused(
    data: Path, tmp_path: Path, models: Any, options: dict[str, Any], says: str
) -> None:
    with serve(script()) as server, pytest.raises(EvaluationError, match=says):
        judged(server, data, tmp_path / "run", models, benchmark="pairs", **options)
    assert not server.requests


def test_a_question_has_the_mean_probability_of_its_readable_replies() -> None:
    def reply(*probabilities: float, letters: str = "AB", reason: str = "") -> ParsedReply[str]:
        soft = SoftVerdict(tuple(letters), probabilities, bounded=False) if probabilities else None
        answer = Answer("k", "chat", "p", "l", "answer", "", "m", "", 0, 0, "")
        return ParsedReply(None if reason else "A", answer, reason, ("k",), soft)

    sure, unsure, unreadable = reply(0.8, 0.2), reply(0.1, 0.3, letters="BA"), reply(reason="no verdict")
    assert mean_probability([sure], str) is sure.soft
    soft = mean_probability([sure, unsure, unreadable], str)
    assert soft is not None
    assert probability_of_first(soft, str) == pytest.approx((0.8 + 0.75) / 2)
    assert mean_probability([sure, reply()], str) is None


def test_subsets_are_all_or_drawn_evenly() -> None:
    assert subsets(4, 2) == [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]
    many = subsets(32, 8)
    assert len(many) == MOST
    assert many == subsets(32, 8)
    assert all(len({*own}) == 8 for own in many)
    assert {*Counter(place for own in many for place in own).values()} == {MOST * 8 // 32}
