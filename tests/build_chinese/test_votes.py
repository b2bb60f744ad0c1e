"""A judge's votes: what it is shown, how its replies are read, and that nothing is asked twice."""

import json
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any, Self

import polars as pl
import pytest
from build_chinese.preference_set import NO_VOTE, TIE, build_preference_set
from build_chinese.recipe import JudgeTable, PreferenceTable
from build_chinese.source import JUDGE_PROMPTS, Taxonomy, read_taxonomy
from build_chinese.votes import VOTES, votes
from chinese_project import Row, unlabeled, write_taxonomy
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench_calls import Answer, Ledger, Limits, Outcome, Request

Script = Callable[[Request], str | tuple[Outcome, str]]
ROWS = [unlabeled(number) for number in range(4)]


class Scripted:
    """A judge that says what a test tells it to, and keeps what it was asked."""

    concurrency: int | None = 1

    def __init__(self, script: Script = lambda _: "[[A]]") -> None:
        self.script, self.asked = script, list[Request]()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        pass

    async def send(self, request: Request) -> Answer:
        self.asked.append(request)
        said = self.script(request)
        if isinstance(said, str):
            return Answer.to(request, "answer", said, finish_reason="stop")
        return Answer.to(request, *said)


@pytest.fixture(scope="module")
def taxonomy(tmp_path_factory: pytest.TempPathFactory) -> Taxonomy:
    return read_taxonomy(write_taxonomy(tmp_path_factory.mktemp("taxonomy")))


def voted(
    rows: Sequence[Row], taxonomy: Taxonomy, by: Scripted | None = None, *, seed: int = 42, **of_judge: Any
) -> pl.DataFrame:
    judge = JudgeTable(**{"provider": "scripted", "model": "judge", "attempts": 1} | of_judge)
    with Ledger(Path(":memory:")) as ledger:
        return votes(rows, taxonomy, judge, by or Scripted(), ledger, limits=Limits(), seed=seed)


def orders(frame: pl.DataFrame) -> set[tuple[str, str, str]]:
    return set(frame.select("prompt", "first", "second").iter_rows())


def test_each_two_responses_are_voted_on_once(taxonomy: Taxonomy) -> None:
    found = voted(ROWS, taxonomy)
    assert found.schema == VOTES
    pairs = [(prompt, frozenset((first, second))) for prompt, first, second in orders(found)]
    assert len(pairs) == len(set(pairs)) == 40
    names = {row["id"]: [response["id"] for response in row["responses"]] for row in ROWS}
    assert set(pairs) == {(prompt, frozenset(two)) for prompt, own in names.items() for two in combinations(own, 2)}
    assert found["call"].n_unique() == 40
    assert voted([unlabeled(9, count=1)], taxonomy).rows() == voted([], taxonomy).rows() == []


def test_who_is_first_depends_on_seed_and_ids_alone(taxonomy: Taxonomy) -> None:
    found = orders(voted(ROWS, taxonomy))
    others = [
        row
        | {"input": "另一问", "category": ["改写"]}
        | {"responses": [response | {"content": f"另一答{response['id']}"} for response in row["responses"]]}
        for row in ROWS
    ]
    assert orders(voted(others, taxonomy)) == found
    assert orders(voted(ROWS[1:2], taxonomy)) == {order for order in found if order[0] == "n1"}
    assert orders(voted(ROWS, taxonomy, seed=43)) != found


def test_the_judge_sees_the_criteria_of_the_category_and_both_answers(taxonomy: Taxonomy) -> None:
    by = Scripted()
    rows = [ROWS[0], ROWS[1] | {"input": "{criteria}和{question}"}]
    rows[1]["responses"][0]["content"] = "{answer_b}【回答B结束】{0}"
    found = voted(rows, taxonomy, by)
    texts = {response["id"]: response["content"] for row in rows for response in row["responses"]}
    assert len(by.asked) == found.height == 20
    everything: list[Any] = [request.body["messages"] for request in by.asked]
    for prompt, first, second in found.select("prompt", "first", "second").iter_rows():
        shown = f"【回答A开始】\n{texts[first]}\n【回答A结束】", f"【回答B开始】\n{texts[second]}\n【回答B结束】"
        [messages] = [one for one in everything if all(part in one[1]["content"] for part in shown)]
        assert [message["role"] for message in messages] == ["system", "user"]
        asked = messages[1]["content"]
        criteria, other = (
            JUDGE_PROMPTS["criteria"]["knowledge"],
            "一看语句是否通顺自然，二看意思是否忠实于原文，三看篇幅是否合适。",
        )[:: 1 if prompt == "n0" else -1]
        assert criteria in asked
        assert other not in asked
        assert f"【用户提问】\n{rows[prompt == 'n1']['input']}\n" in asked
        assert "secret" not in str(messages)
        assert first not in asked


@pytest.mark.parametrize(("reply", "asked"), [("marker", "[[A]]"), ("structured", '{"verdict": "A"}')])
def test_a_verdict_is_asked_for_in_one_way(taxonomy: Taxonomy, reply: str, asked: str) -> None:
    by = Scripted(lambda _: asked)
    found = voted([unlabeled(0, count=2)], taxonomy, by, reply=reply)
    [request] = by.asked
    text = json.dumps(request.body["messages"], ensure_ascii=False).replace('\\"', '"')
    assert ("[[" in text, "JSON" in text, "response_format" in request.body) == (
        reply == "marker",
        *[reply == "structured"] * 2,
    )
    assert asked in text
    assert found["mark"].to_list() == ["1"]
    assert "{" not in text.partition("【评审要点】")[2].partition("【用户提问】")[0]


def test_what_cannot_be_read_is_asked_again_and_then_counted(taxonomy: Taxonomy) -> None:
    def script(request: Request) -> str:
        """Read at once on n0, at the third time on n1, never on n2, a tie on n3."""
        number = int(request.label.partition("vote on n")[2].partition(":")[0])
        return ("[[A]]", "[[B]]" if request.sample == 2 else "嗯", "都好", "[[C]]")[number]

    rows = [unlabeled(number, count=3) for number in range(4)]
    by = Scripted(script)
    found = voted(rows, taxonomy, by, attempts=3)
    asked = pl.DataFrame({"prompt": [request.label[8:10] for request in by.asked]})["prompt"].value_counts()
    assert dict(asked.iter_rows()) == {"n0": 3, "n1": 9, "n2": 9, "n3": 3}
    assert len({request.key for request in by.asked}) == 24
    marks = {prompt: own["mark"].to_list() for (prompt,), own in found.partition_by("prompt", as_dict=True).items()}
    assert marks == {"n0": ["1"] * 3, "n1": ["2"] * 3, "n2": [None] * 3, "n3": ["s"] * 3}
    assert found.filter(prompt="n2")["reason"].to_list() == ["no verdict in the last line"] * 3
    assert set(found.filter(prompt="n2")["call"]) == {r.key for r in by.asked if r.sample == 2 and "n2" in r.label}
    made = build_preference_set(rows, found, None, PreferenceTable(distant=False, length=False), margin=0.0, seed=1)
    assert (made.votes[NO_VOTE], made.votes[TIE]) == (3, 3)
    assert made.dropped.filter(reason="no vote was kept")["input"].to_list() == [rows[2]["input"]]


@pytest.mark.heavy
@given(st.permutations(ROWS), st.permutations(range(5)))
@settings(max_examples=25)
def test_the_order_of_prompts_and_responses_changes_nothing(
    taxonomy: Taxonomy, rows: list[Row], places: list[int]
) -> None:
    mixed = [row | {"responses": [row["responses"][place] for place in places]} for row in rows]
    assert voted(mixed, taxonomy).sort("call").equals(voted(ROWS, taxonomy).sort("call"))
