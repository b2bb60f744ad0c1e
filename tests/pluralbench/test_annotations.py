"""Votes of people on items: every form of a table, the majority, what is refused, and the file of a run."""

import json
import random
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import verbs
from annotated_tables import PAIR, Rows, benchmark, read, refused, votes_of
from chat_server import Reply, serve
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench import check_submission, find_benchmark, known_benchmarks, load_items, load_run, merge
from pluralbench.config import Profile
from pluralbench.errors import DataError, RunError
from pluralbench.evaluation.loading import load_benchmark
from pluralbench.reports.runs import run_header
from pluralbench.results import Run
from polars.testing import assert_frame_equal
from pydantic import ValidationError
from written_tables import write

Votes = Mapping[tuple[int, str], str | None]
"""What a person says of an item: A, B, =, or nothing."""
PANDALM = Path(__file__).parents[3] / "shared" / "data" / "multilingual" / "pandalm_testset-v1.json"
PEOPLE = ("ann", "bob", "eva", "ian")
COUNTRY = {"ann": "Italy", "bob": "Spain", "eva": "Italy", "ian": None}
BEST = {"vote": "pick", "annotator": "who", "picks": ["a", "b", "c"]}


def texts(item: int) -> dict[str, Any]:
    return {"id": f"i{item}", "prompt": f"Question {item}", "one": f"first of {item}", "two": f"second of {item}"}


def in_rows(votes: Votes) -> tuple[Rows, dict[str, Any]]:
    rows = [texts(item) | {"who": who, "vote": vote, "from": COUNTRY[who]} for (item, who), vote in votes.items()]
    return rows, {"vote": "vote", "annotator": "who", "attributes": {"country": "from"}}


def in_lists(votes: Votes) -> tuple[Rows, dict[str, Any]]:
    items: dict[int, list[tuple[str, str | None]]] = {}
    for (item, who), vote in votes.items():
        items.setdefault(item, []).append((who, vote))
    rows = [
        texts(item)
        | {"vote": [vote for _, vote in own], "who": [who for who, _ in own], "from": [COUNTRY[who] for who, _ in own]}
        for item, own in items.items()
    ]
    return rows, {"vote": "vote", "annotator": "who", "attributes": {"country": "from"}}


def in_objects(votes: Votes) -> tuple[Rows, dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for (item, who), vote in votes.items():
        row = rows.setdefault(item, texts(item) | {"crowd": [], "experts": []})
        row["experts" if who == "ian" else "crowd"].append({"who": who, "vote": vote, "from": COUNTRY[who]})
    annotations = {"columns": ["crowd", "experts"], "vote": "vote", "annotator": "who"}
    return [*rows.values()], annotations | {"attributes": {"country": "from"}}


def in_columns(votes: Votes) -> tuple[Rows, dict[str, Any]]:
    rows: dict[int, dict[str, Any]] = {}
    for (item, who), vote in votes.items():
        rows.setdefault(item, texts(item) | dict.fromkeys(PEOPLE))[who] = vote
    return [*rows.values()], {"columns": [*PEOPLE], "same_people": True}


@st.composite
def some_votes(draw: st.DrawFn) -> Votes:
    items = range(draw(st.integers(1, 4)))
    said = st.sampled_from(["A", "B", "=", None])
    votes = {(item, who): draw(said) for item in items for who in draw(st.lists(st.sampled_from(PEOPLE), unique=True))}
    if all(vote is None for vote in votes.values()):
        votes[0, "ann"] = "A"
    order = draw(st.permutations([*votes]))
    return {key: votes[key] for key in order}


@settings(max_examples=8)
@given(votes=some_votes())
def test_every_form_gives_the_same_votes_and_majority(votes: Votes, tmp_path_factory: pytest.TempPathFactory) -> None:
    folder, found, digests = tmp_path_factory.mktemp("forms"), [], []
    for form in (in_rows, in_lists, in_objects, in_columns):
        rows, annotations = form(votes)
        described = benchmark(annotations)
        items = read(folder, rows, described)
        frame = votes_of(items, described).sort("id", "annotator")
        if form is in_columns:
            people = pl.col("annotator").replace_strict(COUNTRY, return_dtype=pl.String)
            frame = frame.with_columns(attribute_country=people)
        else:
            digests.append(items.digest)
        found.append(frame)
        said = Counter((f"i{item}", vote) for (item, _), vote in votes.items() if vote)
        for row in items.frame.iter_rows(named=True):
            a, b, ties = (said[row["id"], vote] for vote in "AB=")
            first = 2 * a > a + b + ties
            second = 2 * b > a + b + ties
            assert row["rank"] == ([1, 2] if first or second else [1, 1])
            assert row["responses"][0].startswith("second" if second else "first")
        own = {row["id"]: row["responses"] for row in items.frame.iter_rows(named=True)}
        again = {
            (row["id"], row["annotator"]): "="
            if row["response"] is None
            else "A"
            if own[row["id"]][row["response"]].startswith("first")
            else "B"
            for row in frame.iter_rows(named=True)
        }
        assert again == {(f"i{item}", who): vote for (item, who), vote in votes.items() if vote}
    for other in found[1:]:
        assert_frame_equal(found[0], other)
    assert len({*digests}) == 1


@given(seed=st.integers(0, 1000), order=st.randoms(use_true_random=False))
def test_the_order_of_rows_and_of_responses_changes_no_vote(
    seed: int, order: random.Random, tmp_path_factory: pytest.TempPathFactory
) -> None:
    draw, letters = random.Random(seed), ["a", "b", "c"]
    described = benchmark(BEST, columns={"id": "#", "responses": "answer_*"})
    rows, picked = [], []
    for item in range(3):
        answers = [f"answer {item}{letter}" for letter in letters]
        for who in PEOPLE:
            order.shuffle(answers)
            pick = draw.randrange(3)
            text = f"answer {item}{letters[pick]}"
            picked.append((f"Question {item}", who, text))
            shown = {f"answer_{letter}": answer for letter, answer in zip(letters, answers, strict=True)}
            rows.append({"prompt": f"Question {item}", "who": who, "pick": letters[answers.index(text)]} | shown)
    order.shuffle(rows)
    items = read(tmp_path_factory.mktemp("orders"), rows, described)
    frame = votes_of(items, described).join(items.frame.select("id", "prompt", "responses", "rank"), on="id")
    found = [
        (row["prompt"][0]["content"], row["annotator"], row["responses"][row["response"]])
        for row in frame.iter_rows(named=True)
    ]
    assert sorted(found) == sorted(picked)
    for row in items.frame.iter_rows(named=True):
        counts = Counter(text for question, _, text in picked if question == row["prompt"][0]["content"])
        most = max(counts.values())
        assert row["rank"] == [1 if counts[text] == most else 2 for text in row["responses"]]


def test_grades_of_words_and_of_a_scale(tmp_path: Path) -> None:
    words = ["A", "B", "=", None]
    described = benchmark({"columns": ["vote"], "grades": {"A": 1, "B": 0.25}})
    rows = [texts(n) | {"vote": word} for n, word in enumerate(words)]
    items = read(tmp_path, rows, described)
    assert votes_of(items, described).select("response", "grade").rows() == [(0, 1.0), (0, 0.25), (None, 0.0)]
    assert items.source["annotations"] == {
        "votes": 3,
        "annotators": 0,
        "missing": 1,
        "items_without": 1,
    } | dict.fromkeys(("repeated", "same_responses", "varying"), 0)
    said = benchmark({"columns": ["said"], "vote": "vote"})
    rows = [texts(0) | {"said": [{"vote": "A"}, None]}, texts(1) | {"said": None}]
    left_out = read(tmp_path, rows, said).source["annotations"]
    assert (left_out["missing"], left_out["items_without"]) == (2, 1)
    scaled = benchmark({"columns": ["vote"]}, labels={"scale": [-3, 3]})
    rows = [texts(n) | {"vote": number} for n, number in enumerate([-3, 1, 0])]
    frame = votes_of(read(tmp_path, rows, scaled), scaled)
    assert [round(grade, 6) for grade in frame["grade"]] == [1.0, 0.333333, 0.0]


def test_a_pick_may_be_the_text_and_equal_responses_are_one(tmp_path: Path) -> None:
    described = benchmark({"vote": "pick", "annotator": "who"}, columns={"responses": "answers"})
    row = {"id": "x", "prompt": "Which?", "answers": ["tea", "milk", "tea"]}
    items = read(
        tmp_path,
        [row | {"who": who, "pick": pick} for who, pick in zip("abc", ["tea", "tea", "milk"], strict=True)],
        described,
    )
    assert items.frame.select("responses", "rank").row(0) == (["tea", "milk"], [1, 2])
    assert votes_of(items, described)["response"].to_list() == [0, 0, 1]
    assert items.source["annotations"]["same_responses"] == 1


@pytest.mark.skipif(not PANDALM.is_file(), reason=f"the real votes are not at {PANDALM}")
def test_the_real_votes_have_the_majority_of_the_labels() -> None:
    described = find_benchmark("pandalm-votes")
    items, labeled = (load_items(name, str(PANDALM)) for name in ("pandalm-votes", "pandalm"))
    assert items.frame.drop("annotations").equals(labeled.frame.drop("annotations"))
    votes = votes_of(items, described)
    rows = json.loads(PANDALM.read_text(encoding="utf-8"))
    assert votes.height == 3 * len(rows) == 2997
    ties = sum(row[f"annotator{n}"] == 0 for row in rows for n in (1, 2, 3))
    assert votes["response"].null_count() == ties


def test_only_benchmarks_with_votes_have_the_keys() -> None:
    voted = {"pandalm-votes", "helpsteer3-votes", "multipref", "community-alignment-votes", "community-alignment"}
    voted.add("prism")
    for name, known in known_benchmarks().items():
        described = known.model_dump(mode="json")
        assert ("annotations" in described) == (name in voted), name
        assert ("turns" in described) == (name == "community-alignment"), name
    record = load_items("pairs", "sample").source
    assert record["annotations"] is None


ONE = [texts(0) | {"who": "ann", "vote": "A", "from": "Italy"}]
BY_ROW = {"vote": "vote", "annotator": "who", "attributes": {"country": "from"}}


@pytest.mark.parametrize(
    ("rows", "annotations", "said"),
    [
        (ONE, {"vote": "votes"}, "has no column `votes`"),
        (
            [ONE[0] | {"vote": "C"}],
            BY_ROW,
            "has unknown votes in `vote` ('C' at id i0); expected: A (the first response",
        ),
        ([ONE[0] | {"vote": None}], BY_ROW, "has no vote in `vote`"),
        ([*ONE, ONE[0] | {"vote": "B"}], BY_ROW, "1 person voted twice on id i0 with different answers (ann)"),
        ([*ONE, texts(1) | {"who": "ann", "vote": "B", "from": "Spain"}], BY_ROW, "such as Italy, Spain of ann"),
        (
            [*ONE, ONE[0] | {"id": "i1", "who": "bob"}],
            BY_ROW,
            "rows with the same prompt and responses have different `id`",
        ),
        ([ONE[0] | {"vote": ["A"], "who": "ann"}], BY_ROW, "`who` is not a list of 1 values"),
        ([ONE[0] | {"vote": [{"x": "A"}]}], {"columns": ["vote"], "vote": "said"}, "has no `said`; it has x"),
        (ONE, {"columns": ["vote"], "grades": {"A": 1}} | {}, None),
    ],
)
def test_bad_votes_are_refused_by_name(tmp_path: Path, rows: Rows, annotations: Any, said: str | None) -> None:
    described = benchmark(annotations)
    if said is None:  # B has no grade, and nobody votes for B
        assert votes_of(read(tmp_path, rows, described), described)["grade"].to_list() == [1.0]
        said, rows = "has unknown votes in `vote` ('B' at id i0)", [rows[0] | {"vote": "B"}]
    assert said in refused(tmp_path, rows, described)


@pytest.mark.parametrize(("rule", "kept"), [("first", [0]), ("drop", [])])
def test_a_second_answer_is_left_out_as_asked(tmp_path: Path, rule: str, kept: list[int]) -> None:
    rows = [*ONE, ONE[0] | {"vote": "B"}, texts(1) | {"who": "bob", "vote": "A", "from": "Spain"}]
    described = benchmark(BY_ROW | {"repeated": rule})
    items = read(tmp_path, rows, described)
    assert votes_of(items, described).filter(pl.col("annotator") == "ann")["response"].to_list() == kept
    assert items.source["annotations"]["repeated"] == (1 if kept else 2)
    same = read(tmp_path, [*ONE, *ONE], benchmark(BY_ROW))
    assert same.source["annotations"] | {"votes": 1, "repeated": 1} == same.source["annotations"]


def test_an_attribute_that_varies_is_left_out_as_asked(tmp_path: Path) -> None:
    rows = [
        *ONE,
        texts(1) | {"who": "ann", "vote": "B", "from": "Spain"},
        texts(1) | {"who": "bob", "vote": "A", "from": "Spain"},
    ]
    described = benchmark(BY_ROW | {"varying": "drop"})
    items = read(tmp_path, rows, described)
    assert votes_of(items, described).select("annotator", "attribute_country").rows() == [
        ("ann", None),
        ("ann", None),
        ("bob", "Spain"),
    ]
    assert items.source["annotations"]["varying"] == 1


def test_attributes_make_a_persona(tmp_path: Path) -> None:
    rows = [
        texts(n) | {"who": who, "vote": "A", "from": country, "age": 30, "mood": "good"}
        for n, (who, country) in enumerate([("ann", "Italy"), ("bob", None)])
    ]
    annotations = BY_ROW | {"by_person": True, "attributes": {"country": "from", "age": "age", "mood": "mood"}}
    described = benchmark(annotations | {"persona": {"age": "Age: {}.", "country": "Lives in {}."}})
    assert read(tmp_path, rows, described).frame["persona"].to_list() == [["Lives in Italy.", "Age: 30."], ["Age: 30."]]
    told = load_items("community-alignment", "sample").frame["persona"]
    assert told.null_count() == 0
    assert not any("Prefer not" in sentence for persona in told for sentence in persona)


@pytest.mark.parametrize(
    ("annotations", "columns", "said"),
    [
        ({}, PAIR, "`vote` or `columns` says where the votes are"),
        ({"vote": ""}, PAIR, "`vote` or `columns` names a column by an empty text"),
        ({"columns": ["a"], "annotator": "who"}, PAIR, "require `vote`"),
        ({"vote": "v", "same_people": True}, PAIR, "`same_people` is of `columns`"),
        ({"vote": "v", "by_person": True}, PAIR, "`by_person` requires"),
        ({"vote": "v", "people": {"table": "t", "id": "who"}}, PAIR, "`people` requires"),
        ({"vote": "v", "persona": {"age": "{}"}}, PAIR, "`persona` has a sentence for each of some attributes"),
        ({"vote": "v", "attributes": {"a": "a"}, "persona": {"a": "{}"}}, PAIR, "`persona` requires `by_person`"),
        ({"vote": "v", "attributes": {"Country of birth": "x"}}, PAIR, "is not named by small letters"),
        ({"vote": "v"}, {"chosen": "c"}, "`annotations` requires the columns `first` and `second`, or `responses`"),
        ({"vote": "v", "picks": ["a"]}, PAIR, "`picks` is of votes on `responses`"),
        ({"vote": "v", "grades": {"A": 1}}, {"responses": "r"}, "`grades` is of votes on pairs"),
        ({"vote": "v", "grades": {"=": 1}}, PAIR, "`grades` names =, which `labels` gives to neither response"),
    ],
)
def test_a_description_says_one_form(annotations: Any, columns: Any, said: str) -> None:
    with pytest.raises(ValidationError) as error:
        benchmark(annotations, columns=columns)
    assert said in str(error.value)


@pytest.mark.heavy
def test_a_run_keeps_the_votes_whole_and_in_shards(score: Callable[..., Run], tmp_path: Path) -> None:
    whole = score("community-alignment-votes", "sample", out=tmp_path / "whole")
    parts = [score("community-alignment-votes", "sample", out=tmp_path / f"{n}", shard=f"{n}/2").path for n in (1, 2)]
    votes = whole.annotations
    assert votes is not None
    assert votes.height == 114
    assert votes["annotator"].n_unique() == 52
    assert votes.columns[5:] == [
        f"attribute_{name}" for name in ("country", "age", "gender", "education", "politics", "ethnicity")
    ]
    shards = [load_run(part, part=True).annotations for part in parts]
    assert sorted(len(one) for one in shards if one is not None) != [0, 114]
    merged = merge(parts, out=tmp_path / "merged")
    for name in ("annotations.parquet", "items.parquet", "metrics.json"):
        assert (merged.path / name).read_bytes() == (whole.path / name).read_bytes()
    assert check_submission(merged).state == "checked"


def test_a_run_says_what_is_left_out_of_the_votes(score: Callable[..., Run], tmp_path: Path) -> None:
    description = 'title = "V"\n[columns]\nfirst = "one"\nsecond = "two"\n[labels]\nfirst = ["A"]\nsecond = ["B"]\n'
    file = tmp_path / "v.toml"
    file.write_text(f'{description}[annotations]\nvote = "vote"\nannotator = "who"\n', encoding="utf-8")
    rows = [
        texts(n) | {"who": who, "vote": vote} for n, who, vote in ((0, "ann", "A"), (0, "ann", "A"), (1, "bob", None))
    ]
    lines = run_header(score(str(file), write(tmp_path / "v.jsonl", rows)))
    said = "missing votes (1), further votes of a person on an item (1), items without a vote (1)"
    assert f"Left out of the votes of people: {said}." in lines


def tampered(run: Run, change: Callable[[pl.DataFrame], pl.DataFrame]) -> Run:
    path = run.path / "annotations.parquet"
    change(pl.read_parquet(path)).write_parquet(path)
    return load_run(run.path)


@pytest.mark.heavy
def test_changed_votes_are_noticed(score: Callable[..., Run]) -> None:
    run = score("multipref", "sample")
    changed = tampered(run, lambda votes: votes.with_columns(response=1 - pl.col("response")))
    [finding] = [one.text for one in check_submission(changed).findings if one.level == "error"]
    assert "annotations.parquet has in" in finding
    for change, said in (
        (lambda votes: votes.with_columns(id=pl.lit("x")), "has votes on id x, which is not among the items"),
        (
            lambda votes: votes.with_columns(response=pl.lit(2, pl.Int64)),
            "is for a response that the item does not have",
        ),
        (lambda votes: votes.filter(pl.col("id") != "c00"), "has no vote on id c00"),
        (lambda votes: votes.drop("grade"), "the column `grade` is missing"),
    ):
        fresh = score("multipref", "sample", fresh=True)
        with pytest.raises(RunError, match=said):
            _ = tampered(fresh, change).annotations


def test_show_counts_the_people(score: Callable[..., Run], run: Callable[..., tuple[int, str, str]]) -> None:
    scored = score("multipref", "sample")
    shown = run("show", scored.path, "--id", "c00")[1]
    assert "4 of 4 votes" in shown
    assert "0 of 4 votes" in shown
    votes = scored.annotations
    assert votes is not None
    for item in json.loads(run("show", scored.path, "--json")[1])["items"]:
        own = votes.filter(id=item["id"])
        for row in item["groups"]:
            named = own if row["group"] is None else own.filter(attribute_worker=row["group"])
            counts = [named.filter(response=place).height for place in range(2)]
            assert (row["votes"], row["ties"]) == (counts, named["response"].null_count())
        assert len(item["groups"]) == 1 + own["attribute_worker"].n_unique()


@pytest.mark.parametrize(
    ("name", "options", "reply"),
    [("multipref", {}, "[[A]]"), ("community-alignment-votes", {"protocol": "pointwise"}, "[[7]]")],
)
def test_a_judge_keeps_the_votes(tmp_path: Path, name: str, options: dict[str, Any], reply: str) -> None:
    with serve(lambda *_: Reply(reply)) as server:
        where = {"base_url": server.base_url, "data": "sample", "benchmark": name, "out": tmp_path / "run"}
        judged = verbs.judge("judge-1", **where, **options)
    assert judged.annotations is not None
    assert_frame_equal(judged.annotations, votes_of(load_items(name, "sample"), find_benchmark(name)))
    assert check_submission(judged).state == "checked"
    # It says A in both orders, or 7 of all: it prefers nothing, and was not asked about pairs that people call equal.
    assert judged.estimate("agreement_with_annotations").n == judged.count("annotations") > 0
    assert judged.estimate("agreement_with_annotations").value == 0
    assert (judged.count("annotations_without_answer") > 0) == (name == "multipref")


@pytest.mark.parametrize("profile", ["raw", "persona"])
@pytest.mark.parametrize("name", ["multipref", "community-alignment-votes"])
def test_items_of_several_people_have_no_profile(name: str, profile: Profile) -> None:
    with pytest.raises(DataError, match=f"Several people decide each item of {name}, so there is no profile of one"):
        load_benchmark(name, "sample", profile)
