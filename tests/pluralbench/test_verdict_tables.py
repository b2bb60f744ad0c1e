"""Tables of verdicts: what is read, what an answer and a certainty are, and what is refused in which words."""

import io
import unicodedata
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pluralbench.data.verdict_tables import COLUMNS, answer_notes, check_verdicts, read_verdicts
from pluralbench.errors import DataError
from pluralbench_release import TablesError
from polars.testing import assert_frame_equal
from written_verdicts import SAMPLE, verdicts, written


def sample() -> pl.DataFrame:
    return pl.read_csv(io.StringIO(SAMPLE), infer_schema=False)


def test_answers_and_certainties_are_read_or_counted_as_none(tmp_path: Path) -> None:
    read = read_verdicts(written(tmp_path)).filter(task="drinks", judge="ada-1", persona_variables="all")
    assert read["answer"].to_list() == ["A", "B", "A", "B", None, None, None, "A", "A", "B", "A", "B"]
    assert read["certainty"].to_list() == [95, 80, 80, 79, 85, 70, 90, None, None, None, None, 1]
    assert read["unusable"].to_list() == [False] * 7 + [True] * 3 + [False] * 2, "0, 101 and ninety; not an empty one"
    assert set(read["options"]) == {2}


def test_c_is_an_answer_where_a_tie_can_be_one(tmp_path: Path) -> None:
    read = read_verdicts(written(tmp_path)).filter(task="letters")
    assert read["truth"].to_list() == ["C", "C", "C", "B", "B", "A"]
    assert read["answer"].to_list() == ["C", "C", "A", "C", "B", None]
    assert set(read["options"]) == {3}
    by_truth = check_verdicts(verdicts([{"answer": "C", "truth": "C"}, {"answer": "C"}], setting="with_ties"))
    assert by_truth["answer"].to_list() == ["C", "C"], "a setting of any name, if a truth is a tie"


@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
def test_all_forms_of_a_table_say_the_same(tmp_path: Path, suffix: str) -> None:
    frame, path = sample(), tmp_path / f"verdicts.{suffix}"
    if suffix == "parquet":
        frame.with_columns(pl.col("row").cast(pl.Int64)).write_parquet(path)
    elif suffix == "jsonl":
        frame.write_ndjson(path)
    else:
        path.write_bytes(b"\xef\xbb\xbf" + SAMPLE.encode())
    assert_frame_equal(read_verdicts(str(path)), read_verdicts(written(tmp_path, name="plain.csv")))


def test_numbers_and_texts_are_one_certainty() -> None:
    for column in (pl.Series([81, 5]), pl.Series([81.0, 5.0]), pl.Series(["81", " 5 "])):
        found = check_verdicts(verdicts([{}, {}]).with_columns(certainty=column))
        assert found["certainty"].to_list() == [81.0, 5.0]
    for wrong in (0, 101, -5, 0.5, float("nan"), float("inf"), True):
        found = check_verdicts(verdicts([{}]).with_columns(certainty=pl.Series([wrong])))
        assert found["certainty"].to_list() == [None], wrong
    for text in ("ninety", "85%", "80-90", "٨٠", "1,5"):
        found = check_verdicts(verdicts([{"certainty": text}]))
        assert found.select("certainty", "unusable").row(0) == (None, True), text
    for nothing in ("", "NA", "n/a", "None", "NaN", "null", None):
        found = check_verdicts(verdicts([{"certainty": nothing}]).cast({"certainty": pl.String}))
        assert found.select("certainty", "unusable").row(0) == (None, False), nothing


@given(st.text(max_size=12), st.text(max_size=12))
def test_any_reply_is_an_answer_or_invalid(answer: str, certainty: str) -> None:
    found = check_verdicts(verdicts([{"answer": answer, "certainty": certainty}])).row(0, named=True)
    letters = [sign for sign in unicodedata.normalize("NFKC", answer).upper() if sign.isalnum()]
    assert found["answer"] in ({letters[0], None} if letters in (["A"], ["B"]) else {None})
    assert found["answer"] == letters[0] if answer.strip() in {"A", "b"} else True
    assert found["certainty"] is None or 1 <= found["certainty"] <= 100


def test_a_letter_is_read_however_it_is_written_and_a_word_is_not() -> None:
    written = ["a", " b ", "[[A]]", "(B)", "b.", "Ａ", "“A”", "**B**", "A B", "AB", "option A", "first", "1", "", None]
    found = check_verdicts(verdicts([{"answer": text, "truth": "b"} for text in written]).cast({"answer": pl.String}))
    assert found["answer"].to_list() == ["A", "B", "A", "B", "B", "A", "A", "B", *[None] * 7]
    assert set(found["truth"]) == {"B"}
    assert answer_notes(found) == ["Read as A, B, C: 8 answers written as 'a', 'b', '[[A]]', …."]
    ties = check_verdicts(verdicts([{"answer": "Tie"}, {"answer": "c"}], setting="tie"))
    assert ties["answer"].to_list() == ["C", "C"]
    assert answer_notes(ties) == ["Read as A, B, C: 1 answers written as 'c'."]
    assert answer_notes(check_verdicts(verdicts([{"answer": "A"}, {"answer": "x"}]))) == []


def test_where_hardly_an_answer_can_be_read_the_first_are_shown() -> None:
    rows = [{"answer": text} for text in ["first", "second", None, "first", "neither", "both", "x", "y", "z", "A"]]
    assert answer_notes(check_verdicts(verdicts(rows))) == [
        "9 of 10 answers are invalid: 'first', 'second', nothing, …. Valid answers are A, B and, if ties are possible, "
        "C or tie; correct the table and rerun."
    ]


def test_intervals_are_clustered_by_whom_the_rows_are_about() -> None:
    rows: list[dict[str, Any]] = [{}, {}, {}]
    assert check_verdicts(verdicts(rows))["cluster"].n_unique() == 3
    for name in ("user", "person"):
        found = check_verdicts(verdicts(rows).with_columns(pl.Series(name, ["u", "u", None])))
        assert found["clustered_by"].to_list() == [name] * 3
        assert found["cluster"].n_unique() == 2, "a row about nobody is its own cluster"
    both = check_verdicts(verdicts(rows, user="u").with_columns(pl.Series("person", ["a", "b", "c"])))
    assert both["cluster"].n_unique() == 1
    alike = verdicts(rows).with_columns(pl.Series("user", ["row 2", "x", None]))
    assert check_verdicts(alike)["cluster"].n_unique() == 3, "no name is a row's"


@pytest.mark.parametrize("name", COLUMNS)
def test_a_missing_column_is_named(tmp_path: Path, name: str) -> None:
    path = written(tmp_path, sample().drop(name).write_csv())
    others = ", ".join([other for other in COLUMNS if other != name] + ["user"])
    with pytest.raises(DataError) as error:
        read_verdicts(path)
    assert str(error.value) == (
        f"{path} has no column `{name}`; it has {others}; required: task, judge, setting, persona_variables, row, "
        "answer, certainty, truth."
    )


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"truth": "D"}, "row 2 of the table has the truth 'D', which is not one of A, B, C and tie."),
        ({"truth": " "}, "row 2 of the table has no `truth`; add it or remove the row."),
        ({"judge": ""}, "row 2 of the table has no `judge`; add it or remove the row."),
        ({"row": ""}, "row 2 of the table has no `row`; add it or remove the row."),
        ({"truth": "{judge}"}, "row 2 of the table has the truth '{judge}', which is not one of A, B, C and tie."),
    ],
)
def test_a_row_that_says_nothing_is_refused(change: dict[str, str], said: str) -> None:
    row = {"row": "0", "certainty": "80"}
    with pytest.raises(DataError) as error:
        check_verdicts(verdicts([row, row | {"row": "1"} | change]), "v.csv")
    assert str(error.value) == f"v.csv: {said}"


def test_an_item_is_answered_once() -> None:
    with pytest.raises(DataError) as error:
        check_verdicts(verdicts([{"row": 7}, {"row": 8}, {"row": 7, "answer": "B"}]), "v.csv")
    assert str(error.value) == (
        "v.csv has 2 rows with the task drinks, row 7, judge ada-1, setting certainty and variables all; keep one."
    )
    again = verdicts([{"row": 7}, {"row": 7, "judge": "b"}, {"row": 7, "setting": "tie"}, {"row": 7, "task": "x"}])
    assert check_verdicts(again).height == 4


def test_what_is_no_table_of_verdicts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^.*empty.csv has no rows\.$"):
        read_verdicts(written(tmp_path, SAMPLE.splitlines()[0] + "\n", "empty.csv"))
    with pytest.raises(TablesError, match=r"nowhere\.csv does not exist"):
        read_verdicts(str(tmp_path / "nowhere.csv"))
    with pytest.raises(DataError, match="the column `answer` holds lists or objects; write one text or number per row"):
        check_verdicts(verdicts([{}]).with_columns(answer=pl.Series([["A"]])))
    written(tmp_path, name="more.csv")
    with pytest.raises(DataError, match=r"holds several tables \(empty, more\); pass the file with the verdicts"):
        read_verdicts(str(tmp_path))
