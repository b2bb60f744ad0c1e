"""The figures of a release, counted again on random rows, and what card and terminal say of them."""

import json
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from statistics import multimode
from typing import Any

import networkx as nx
import polars as pl
import pytest
from build_chinese.figures import (
    AGREEMENT,
    JUDGES,
    annotator_figures,
    figures_of,
    figures_tables,
    vote_conflicts,
    vote_figures,
)
from build_chinese.lengths import LENGTHS, length_figures, size_figures, strict_marks
from build_chinese.preference_set import JudgedPart, PreferenceSet
from build_chinese.rankings import DROPPED, Row
from build_chinese.reward_model import REWARDS
from build_chinese.votes import VOTES
from chinese_project import annotated, write_rows
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release import Source, read_card

Run = Callable[..., tuple[int, str]]
STEPS, LEFT_OUT, PROMPTS = ("Pairs of the judge after each step", "Dropped votes", "Dropped prompts")


@st.composite
def rows(draw: st.DrawFn) -> list[Row]:
    made: list[Row] = []
    for number in range(draw(st.integers(0, 4))):
        names = "abcde"[: draw(st.integers(2, 5))]
        responses = [{"id": name, "content": "好" * draw(st.integers(0, 3))} for name in names]
        pair = st.permutations(names).map(lambda order: order[:2])
        annotation = st.tuples(pair, st.sampled_from("12s")).map(lambda found: [*found[0], found[1]])
        made.append(
            {"input": f"问{number}", "responses": responses, "annotations": draw(st.lists(annotation, max_size=8))}
        )
    return made


def test_the_ranks_are_compared_with_the_votes_before_any_consensus() -> None:
    """a > b > c by consensus; on a and c, and on c and d, two annotators differ."""
    votes = [("w", "ab", "1"), ("x", "ba", "2"), ("w", "bc", "1"), ("x", "bc", "1"), ("w", "ac", "1"), ("x", "ac", "s")]
    votes += [("w", "cd", "1"), ("x", "cd", "2")]
    names = ("annotator", "first", "second", "vote")
    row = {
        "annotations": [["a", "b", "1"], ["b", "c", "1"]],
        "votes": [dict(zip(names, (who, *pair, mark), strict=True)) for who, pair, mark in votes],
    }
    found = vote_conflicts([row, {"annotations": [["a", "b", "s"]]}])
    # d has no rank, so the votes on it do not count; the tie of a and c is no tie of the ranks.
    assert (found["open"], found["conflicts"]["count"], found["conflicts"]["of"]) == (2, 1, 6)
    circle = {**row, "annotations": [["a", "b", "1"], ["b", "c", "1"], ["c", "a", "1"]]}
    found = vote_conflicts([circle])
    assert (found["open"], found["conflicts"]["count"], found["conflicts"]["of"]) == (1, 5, 6)


VOTED = st.dictionaries(
    st.tuples(st.sampled_from("pq"), st.sampled_from(["ab", "ac", "bc"]), st.sampled_from("wxyz")),
    st.tuples(st.booleans(), st.sampled_from("12s")),
)


@given(VOTED)
def test_agreement_is_that_of_each_vote_with_the_others(voted: dict[tuple[str, str, str], tuple[bool, str]]) -> None:
    """Counted vote by vote; a mark on two responses in the other order says the opposite."""
    made: dict[str, Row] = {name: {"id": name, "votes": []} for name in "pq"}
    answers: dict[tuple[str, str], list[str]] = {}
    for (prompt, pair, annotator), (swapped, mark) in voted.items():
        first, second = sorted(pair, reverse=swapped)
        made[prompt]["votes"].append({"annotator": annotator, "first": first, "second": second, "vote": mark})
        better = {"1": first, "2": second, "s": "tie"}[mark]
        answers.setdefault((prompt, pair), []).append(better)
    two, ceiling = [], []
    for own in (votes for votes in answers.values() if len(votes) > 1):
        for place, answer in enumerate(own):
            others = own[:place] + own[place + 1 :]
            most = multimode(others)
            two.append(Fraction(others.count(answer), len(others)))
            ceiling.append(Fraction(answer in most, len(most)))
    found = vote_figures([*made.values()])
    assert (found["votes"], found["pairs"]) == (len(voted), sum(len(votes) > 1 for votes in answers.values()))
    for name, agreeing in (("two", two), ("others", ceiling)):
        expected = float(sum(agreeing) / len(agreeing)) if agreeing else None
        assert found[name]["share"] == (None if expected is None else pytest.approx(expected))


def in_conflict(row: Row) -> int:
    """Annotations that the layers of the merged graph do not keep, by longest paths."""
    graph = nx.DiGraph()
    for first, second, mark in row["annotations"]:
        graph.add_edges_from([(first, second)] * (mark in "1s") + [(second, first)] * (mark in "2s"))
    together = {name: frozenset(part) for part in nx.strongly_connected_components(graph) for name in part}

    def level(part: frozenset[str]) -> int:
        above = {together[a] for a, b in graph.edges if b in part and a not in part}
        return 1 + max(map(level, above), default=0)

    levels = {name: level(part) for name, part in together.items()}
    kept = {"1": lambda a, b: a < b, "2": lambda a, b: a > b, "s": lambda a, b: a == b}
    return sum(not kept[mark](levels[first], levels[second]) for first, second, mark in row["annotations"])


@given(rows())
def test_figures_are_what_an_independent_count_gives(made: list[Row]) -> None:
    found = annotator_figures(made)
    marks = [
        (first, second, mark, {response["id"]: len(response["content"]) for response in row["responses"]})
        for row in made
        for first, second, mark in row["annotations"]
    ]
    strict = [entry for entry in marks if entry[2] != "s"]
    longer_first = [length[first] - length[second] for first, second, _, length in strict]
    signs = [
        difference if mark == "1" else -difference
        for difference, (*_, mark, _) in zip(longer_first, strict, strict=True)
    ]
    assert (found["prompts"], found["judgements"]) == (len(made), len(marks))
    assert found["equal"] == len(marks) - len(strict)
    expected = {
        "conflicts": (sum(map(in_conflict, made)), len(marks)),
        "longer": (sum(sign > 0 for sign in signs), sum(sign != 0 for sign in signs)),
        "first": (sum(entry[2] == "1" for entry in strict), len(strict)),
    }
    for name, (count, of) in expected.items():
        assert (found[name]["count"], found[name]["of"]) == (count, of), name
        assert found[name]["share"] == (count / of if of else None)
        if of:
            assert 0 <= found[name]["low"] <= count / of <= found[name]["high"] <= 1


DROPPED_ROWS = [("问", "all responses became equal", 5, 15)] * 2 + [("问", "no annotation", 5, 0)]


def test_the_tables_have_the_numbers_as_text() -> None:
    people = {"open": [annotated(0)] * 400, "human": [], "preference": [annotated(1)]}
    made = PreferenceSet(
        [annotated(2)],
        {"no readable vote": 1, "down-sampled for length": 2345},
        pl.DataFrame(schema=DROPPED),
        {"a": 4321},
    )
    dropped = pl.DataFrame(DROPPED_ROWS, schema=DROPPED, orient="row")
    rows = [annotated(2), annotated(3)]
    marks = [(row["id"], *mark, None, "") for row in rows for mark in row["annotations"]]
    rewards = pl.DataFrame([("p", f"r{cut}", 0.0, cut, "") for cut in range(8)], schema=REWARDS, orient="row")
    source = Source(name="s", location="s", digest="", rows=2, license="x", attribution="y")
    votes = pl.DataFrame(marks, schema=VOTES, orient="row")
    figures = figures_of(people, dropped, JudgedPart("a-judge", rows, votes, rewards, made, source))
    assert json.loads(json.dumps(figures)) == figures
    tables = figures_tables(figures)
    assert list(tables) == [JUDGES, LENGTHS, STEPS, LEFT_OUT, PROMPTS]
    assert tables[JUDGES].select("config", "prompts", "marks", "equal").rows() == [
        ("open (people)", "400", "4,000", "0"),
        ("preference (people)", "1", "10", "0"),
        ("preference (a-judge)", "2", "20", "0"),
    ]
    assert tables[JUDGES]["conflicts"].to_list()[1] == "0.0% [0, 28]"
    assert tables[STEPS].rows() == [("a", "4,321")]
    assert tables[LEFT_OUT].rows() == [("no readable vote", "1"), ("down-sampled for length", "2,345")]
    assert tables[PROMPTS].rows() == [("people", "all responses became equal", "2"), ("people", "no annotation", "1")]
    assert {str(kind) for table in tables.values() for kind in table.dtypes} == {"String"}
    assert figures["preference"]["responses_cut_for_the_reward_model"] == 7


def test_lengths_are_counted_as_they_are() -> None:
    texts = {"a": "好" * 10, "b": "好" * 34, "c": "好" * 35, "d": "好" * 10}
    responses = [{"id": name, "content": text} for name, text in texts.items()]
    marks = [["a", "b", "2"], ["c", "a", "2"], ["a", "d", "1"], ["b", "c", "s"], ["c", "d", "1"]]
    row = {"input": "问题", "responses": responses, "annotations": marks}
    found = length_figures(strict_marks([row]))
    # 24 characters longer and preferred; 25 longer, once preferred and once not; equal lengths and equal marks are out.
    assert [(one["from"], one["to"], one["longer"]["count"], one["longer"]["of"]) for one in found[:3]] == [
        (1, 24, 1, 1),
        (25, 49, 1, 2),
        (50, 99, 0, 0),
    ]
    assert found[-1]["to"] is None
    size = size_figures([row], [[("b", "a"), ("c", "d")]])
    assert size == {
        "prompts": 1,
        "responses": 4.0,
        "comparisons": 2,
        "prompt_length": 2.0,
        "chosen_length": 34.5,
        "rejected_length": 10.0,
    }


TWO: dict[str, Any] = {"input": "二人", "responses": [{"id": "x", "content": "好好"}, {"id": "y", "content": "好"}]}


def test_published_files_are_described(run: Run, tmp_path: Path) -> None:
    marked = write_rows(tmp_path / "marked.jsonl", [annotated(0), annotated(1)])
    # By rank where there is one, whatever annotations say; these have the better one first, so its place says nothing.
    ranks: list[Row] = [{"rank": {"x": 2, "y": 1}}, {"rank": {"x": 1, "y": 1}, "input": "三"}]
    # A release's own preference set has no rank for a response none of whose votes was kept.
    unranked = [*TWO["responses"], {"id": "z", "content": "好好好"}]
    ranks.append({"rank": {"x": 1, "y": 2}, "input": "四", "responses": unranked})
    ranked = write_rows(tmp_path / "ranked.jsonl", [TWO | {"annotations": [["x", "y", "1"]]} | one for one in ranks])
    status, told = run("describe", marked, ranked, "--figure", tmp_path / "deep" / "bias.png")
    assert status == 0, told
    rows = [[cell.strip() for cell in line.split("│")[1:-1]] for line in told.splitlines() if "│" in line]
    [marked_size, ranked_size, marked_marks, ranked_marks] = [row[1:] for row in rows if len(row) == 7 and row[0]]
    assert ranked_size == ["3", "2.33", "2", "1.33", "1.50", "1.50"]
    strict = [row["annotations"] for row in (annotated(0), annotated(1))]
    better = {(one, two) if mark == "1" else (two, one) for marks in strict for one, two, mark in marks if mark != "s"}
    assert marked_size[:3] == ["2", "5.00", str(len(better))]
    assert (ranked_marks[-1], marked_marks[-1] != "none") == ("none", True)
    assert (tmp_path / "deep" / "bias.png").read_bytes().startswith(b"\x89PNG")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cards")


@pytest.fixture
def card(run: Run, folder: Path) -> Callable[..., tuple[str, dict[str, Any], str]]:
    """The card, the figures and what the command said of `preference` with these options, each built once."""

    def built(*words: object) -> tuple[str, dict[str, Any], str]:
        out = folder / "_".join(str(word).strip("-").replace("/", "_") for word in words)
        status, said = run("preference", *words, "--out", out)
        assert status == 0, said
        text = (out / "README.md").read_text(encoding="utf-8")
        figures = json.loads((out / "provenance/statistics.json").read_text(encoding="utf-8"))
        return text, figures, said

    return built


Built = Callable[..., tuple[str, dict[str, Any], str]]


def numbers_in(text: str, figures: dict[str, Any]) -> None:
    """The card has every number that the figures have."""
    lines = {tuple(cell.strip() for cell in line.strip("|").split("|")) for line in text.splitlines()}
    for table in figures_tables(figures).values():
        assert set(table.iter_rows()) <= lines


@pytest.mark.heavy
def test_the_card_of_the_sample(card: Built) -> None:
    text, figures, said = card("--recipe", "sample")
    numbers_in(text, figures)
    for title in (JUDGES, STEPS, LEFT_OUT, PROMPTS):
        assert f"## {title}" in text
        assert title in said
    assert [entry["judgements"] for entry in figures["annotators"]] == [180, 180, 240, 194]
    assert figures["annotators"][3]["longer"]["low"] > 0.5  # as the sample was drawn
    left_out, steps = figures["preference"]["votes_dropped"], figures["preference"]["steps"]
    assert sum(left_out.values()) + steps["balanced in length"] == 200
    assert figures["preference"]["longer"]["share"] == 0.5
    for part in (
        "`invented-judge` voted on every pair of responses",
        "SmolLM2-135M-Instruct trained on the annotated prompts outside the benchmarks",
        "until the better response was the longer one as often as the shorter one",
        "This is the sample: texts, annotators and votes are invented",
        "is not what people prefer",
        "that were never compared",
    ):
        assert part in " ".join(text.split())


@pytest.fixture
def own(folder: Path) -> Path:
    made = [annotated(number, config) for number, config in enumerate(["open", "human", "preference", "open"])]
    made[3]["annotations"] = [[first, second, "s"] for first, second, _ in made[3]["annotations"]]
    return write_rows(folder / "own.jsonl", made)


def test_the_card_without_a_judge(card: Built, own: Path) -> None:
    text, figures, said = card("--annotated", own)
    numbers_in(text, figures)
    plain = " ".join(text.split())
    assert f"## {JUDGES}" in text
    assert STEPS not in text + said
    assert AGREEMENT not in text, "the file does not say who voted"
    assert "voted on every two" not in plain
    assert "This is the sample" not in plain
    assert figures["dropped"] == [{"annotated_by": "people", "reason": "all responses became equal", "count": 1}]
    # What was dropped counts among the judgements.
    assert [(entry["config"], entry["prompts"], entry["judgements"]) for entry in figures["annotators"]] == [
        ("open", 2, 20),
        ("human", 1, 10),
        ("preference", 1, 10),
    ]
    front: Any = read_card(folder_of(own))
    configs = [config["config_name"] for config in front["configs"]]
    assert configs == ["open", "human", "preference", "preference_pairs"]
    assert front["language"] == ["zh"]


def folder_of(own: Path) -> Path:
    """The release that `test_the_card_without_a_judge` built."""
    [found] = [path for path in own.parent.iterdir() if path.name.startswith("annotated_") and path.is_dir()]
    return found
