"""The English pairs: RewardBench's shape, and any other table of pairs."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_multilingual.recipe import SourceTable
from build_multilingual.source import PAIRS, EnglishPairs, load
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pluralbench_release.errors import SourceError
from written_tables import write

# The subsets of RewardBench's filtered split with their rows, by section (reference/multilingual.md, B.1 and B.4).
SUBSETS = {
    "Chat": {"alpacaeval-easy": 100, "mt-bench-med": 40},
    "Chat Hard": {"mt-bench-hard": 37, "llmbar-natural": 100, "llmbar-adver-GPTInst": 92},
    "Safety": {"refusals-dangerous": 100, "xstest-should-respond": 250, "donotanswer": 136},
    "Reasoning": {"math-prm": 447, "hep-rust": 164},
}
Row = Mapping[str, Any]


def pair(**changes: Any) -> dict[str, Any]:
    """A row; None takes a column away."""
    row = {"id": 7, "prompt": "Why?", "chosen": "Because.", "rejected": "No.", "subset": "donotanswer"} | changes
    return {name: value for name, value in row.items() if value is not None}


def loaded(path: Path, rows: Sequence[Row], **options: Any) -> EnglishPairs:
    """The rows, written to `path` and read again."""
    return load(SourceTable(location=str(write(path, rows)), **options))


def refused(path: Path, *rows: Row, **options: Any) -> str:
    with pytest.raises(SourceError) as caught:
        loaded(path, rows, **options)
    message = str(caught.value)
    assert message.endswith(".")
    assert "\n" not in message
    return message.replace(str(path), "FILE")


def test_reward_bench_as_it_is(tmp_path: Path) -> None:
    rows = [
        {
            "prompt": f"Question {subset} {number}",
            "chosen": "Better",
            "chosen_model": "m1",
            "rejected": "Worse",
            "rejected_model": "m2",
            "subset": subset,
            "id": 30 + 10_000 * place + number,
        }
        for place, subset in enumerate(name for subsets in SUBSETS.values() for name in subsets)
        for number in range(next(subsets[subset] for subsets in SUBSETS.values() if subset in subsets))
    ]
    (tmp_path / "data").mkdir()
    pl.DataFrame(rows).write_parquet(tmp_path / "data/filtered-00000-of-00001.parquet")
    pl.DataFrame(rows[:3]).write_parquet(tmp_path / "data/raw-00000-of-00001.parquet")
    result = load(SourceTable(location=str(tmp_path)))
    assert result.pairs.schema == PAIRS
    assert not result.numbered
    assert result.pairs["id"].to_list() == [row["id"] for row in rows]
    assert result.pairs.drop("category").to_dicts() == [
        {name: row[name] for name in PAIRS if name in row} for row in rows
    ]
    counts = dict(result.pairs.group_by("category", maintain_order=True).len().iter_rows())
    assert counts == {section: sum(subsets.values()) for section, subsets in SUBSETS.items()}
    assert load(SourceTable(location=str(tmp_path), split="raw")).pairs.height == 3


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_any_table_of_pairs(tmp_path: Path, suffix: str) -> None:
    rows = [
        {"question": "Tea, “or” coffee?\n- 茶", "good": "茶 🍵", "bad": 'say "no", twice', "extra": 1},
        {"question": "Why?", "good": " Because. ", "bad": "No.", "extra": 2},
    ]
    columns = {"prompt": "question", "chosen": "good", "rejected": "bad"}
    result = loaded(tmp_path / f"mine{suffix}", rows, columns=columns)
    assert result.pairs.schema == PAIRS
    assert result.numbered
    assert result.pairs["id"].to_list() == [0, 1]
    assert result.pairs.select(*columns).rows() == [tuple(row[column] for column in columns.values()) for row in rows]
    # A subset of no section is one of its own.
    others = result.pairs.select("chosen_model", "rejected_model", "subset", "category").unique()
    assert others.rows() == [("unknown", "unknown", "mine", "mine")]
    assert (result.source.rows, result.source.license) == (2, "unknown")
    assert result.source.location == f"mine{suffix}"


def test_columns_of_other_names_and_a_category_of_its_own(tmp_path: Path) -> None:
    row = pair(subset=None, kind="hep-js", section="Sums", writer="me", other="you", id=None, number=5)
    names = {"id": "number", "subset": "kind", "category": "section", "chosen_model": "writer"}
    result = loaded(tmp_path / "a.jsonl", [row], columns={**names, "rejected_model": "other"})
    assert result.pairs.row(0) == (5, "Why?", "Because.", "No.", "me", "you", "hep-js", "Sums")


def test_sections_of_ones_own(tmp_path: Path) -> None:
    rows = [pair(id=number, subset=subset) for number, subset in enumerate(["code-a", "code-b", "talk", "other"])]
    result = loaded(tmp_path / "a.jsonl", rows, categories={"Code": ["code-*"], "Talk": ["t?lk", "o*"]})
    assert result.pairs["category"].to_list() == ["Code", "Code", "Talk", "Talk"]


@pytest.mark.parametrize(
    ("ids", "expected", "numbered"),
    [
        ([5, 3, 9], [5, 3, 9], False),
        (["5", "3", "9"], [5, 3, 9], False),
        (["q5", "q3", "q9"], [0, 1, 2], True),
        (["1", "01", "2"], [0, 1, 2], True),
        ([1.5, 2.0, 3.0], [0, 1, 2], True),
    ],
)
def test_ids_are_the_sources_where_they_are_numbers(
    tmp_path: Path, ids: list[Any], expected: list[int], numbered: bool
) -> None:
    result = loaded(tmp_path / "a.parquet", [pair(id=value) for value in ids])
    assert (result.pairs["id"].to_list(), result.numbered) == (expected, numbered)


@pytest.mark.parametrize("twice", [7, "q7"])
def test_an_id_that_is_there_twice_is_refused(tmp_path: Path, twice: object) -> None:
    assert refused(tmp_path / "a.jsonl", pair(id=twice), pair(id=f"{twice}0"), pair(id=twice)) == (
        f"FILE has the id '{twice}' more than once; ids must be unique."
    )


def test_every_config_is_read_and_names_its_subset(tmp_path: Path) -> None:
    for name, number in (("one", 1), ("two", 2)):
        (tmp_path / name).mkdir()
        loaded(tmp_path / name / "filtered.jsonl", [pair(id=number, subset=None)])
    result = load(SourceTable(location=str(tmp_path)))
    assert result.pairs.select("id", "subset").rows() == [(1, "one"), (2, "two")]
    loaded(tmp_path / "two/filtered.jsonl", [pair(id=1, subset=None)])
    with pytest.raises(SourceError, match=r"has the id '1' more than once; ids must be unique\.$"):
        load(SourceTable(location=str(tmp_path)))
    for name in ("one", "two"):
        loaded(tmp_path / name / "filtered.jsonl", [pair(id=None, subset=None)] * 2)
    assert load(SourceTable(location=str(tmp_path))).pairs["id"].to_list() == [0, 1, 2, 3]


def test_a_limit_is_of_each_subset_and_takes_the_first(tmp_path: Path) -> None:
    subsets = ["a", "b", "a", "a", "b", "c"]
    rows = [pair(id=number * 3, subset=subset) for number, subset in enumerate(subsets)]
    result = loaded(tmp_path / "a.jsonl", rows, limit=2)
    assert result.pairs.select("id", "subset").rows() == [(0, "a"), (3, "b"), (6, "a"), (12, "b"), (15, "c")]
    assert result.source.rows == 5
    strings = [pair(id=f"q{number}", subset=subset) for number, subset in enumerate(subsets)]
    numbered = loaded(tmp_path / "b.jsonl", strings, limit=1)
    assert numbered.pairs["id"].to_list() == [0, 1, 5]  # the number of the row in the source, whatever the limit


def test_the_digest_is_of_the_rows_and_not_of_their_order_or_file(tmp_path: Path) -> None:
    rows = [pair(id=number, prompt=f"Why {number}?") for number in range(4)]
    first = loaded(tmp_path / "a.jsonl", rows).source.digest
    assert loaded(tmp_path / "b.parquet", rows[::-1]).source.digest == first
    assert loaded(tmp_path / "c.csv", rows).source.digest == first
    assert loaded(tmp_path / "d.jsonl", rows[:3]).source.digest != first
    assert loaded(tmp_path / "e.jsonl", [*rows[:3], pair(id=3)]).source.digest != first


def test_the_license_is_the_cards_and_else_the_recipes(tmp_path: Path) -> None:
    given_ = {"license": "mit", "name": "Mine", "attribution": "By me."}
    result = loaded(tmp_path / "filtered.jsonl", [pair()], **given_).source
    assert (result.license, result.name, result.attribution) == ("mit", "Mine", "By me.")
    (tmp_path / "README.md").write_text("---\nlicense: odc-by\n---\n", encoding="utf-8")
    result = load(SourceTable(location=str(tmp_path), license="mit")).source
    assert (result.license, result.attribution) == ("odc-by", f"The authors of {tmp_path.name}.")


HAS = "it has id, prompt, chosen, rejected, subset"
NAME_IT = 'Name the right one with `source.columns=["chosen=COLUMN"]`.'
FAULTS: list[tuple[dict[str, Any], dict[str, str], str]] = [
    (pair(chosen=None), {}, f"FILE has no column `chosen`; it has id, prompt, rejected, subset. {NAME_IT}"),
    (pair(), {"chosen": "text"}, f"FILE has no column `text`; {HAS}. {NAME_IT}"),
    (pair(), {"category": "section"}, f"FILE has no column `section`; {HAS}."),
    (pair(id=8) | {"rejected": None}, {}, "FILE: the row with id 8 has no `rejected`."),
    (pair(id=8, category="c") | {"subset": " \n\u00a0"}, {}, "FILE: the row with id 8 has an empty `subset`."),
    (pair(prompt=[{"role": "user", "content": "Why?"}]), {}, "FILE is not a table of pairs of texts: "),
]


@pytest.mark.parametrize(("row", "columns", "sentence"), FAULTS)
def test_what_is_no_pair_of_texts_is_named(
    tmp_path: Path, row: dict[str, Any], columns: dict[str, str], sentence: str
) -> None:
    before = [pair(category="c")] if row.get("id") == 8 else []
    assert refused(tmp_path / "a.jsonl", *before, row, columns=columns).startswith(sentence)


@pytest.mark.parametrize("suffix", [".jsonl", ".csv", ".parquet"])
def test_an_answer_may_be_empty_and_equal_answers_are_set_apart(tmp_path: Path, suffix: str) -> None:
    rows = [pair(rejected=""), pair(id=8, rejected="Because."), pair(id=9, chosen="a", rejected=" a\n"), pair(id=10)]
    result = loaded(tmp_path / f"a{suffix}", rows)
    assert result.pairs.select("id", "rejected").rows() == [(7, ""), (10, "No.")]
    assert (result.equal, result.source.rows) == ([8, 9], 4)
    assert (
        loaded(tmp_path / f"a{suffix}", rows[:2]).source.digest
        != loaded(tmp_path / f"a{suffix}", rows[:1]).source.digest
    )


def test_a_table_without_rows_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text("", encoding="utf-8")
    (tmp_path / "b.csv").write_text("id,prompt,chosen,rejected\n", encoding="utf-8")
    pl.DataFrame(schema=PAIRS).write_parquet(tmp_path / "c.parquet")
    for name, sentence in (
        ("a.jsonl", " has no rows."),
        ("b.csv", ": the source has no"),
        ("c.parquet", ": the source"),
    ):
        with pytest.raises(SourceError, match=rf"{name}{sentence}"):
            load(SourceTable(location=str(tmp_path / name)))


cells = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=30)


@given(st.lists(st.tuples(cells.filter(str.strip), cells, cells), min_size=1, max_size=5))
@example([("a", "\u2028b ", "b")])
@example([("a", "", "\x1f")])
@settings(max_examples=40)
def test_any_texts_come_through(tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[str, str, str]]) -> None:
    names = ("prompt", "chosen", "rejected")
    table = [pair(id=number) | dict(zip(names, row, strict=True)) for number, row in enumerate(rows)]
    path = tmp_path_factory.mktemp("any") / "a.jsonl"
    result = loaded(path, table)
    assert result.pairs.select(names).rows() == [row for number, row in enumerate(rows) if number not in result.equal]
    assert result.equal == [number for number, row in enumerate(rows) if row[1].strip() == row[2].strip()]
