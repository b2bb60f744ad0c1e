"""Which rows stay: what failed a check, what people decided, and where a row goes that goes."""

from pathlib import Path

import polars as pl
import pytest
from build_multilingual.filtering import DECISIONS, DROPPED, decisions_digest, drop_rows, read_decisions, rows_to_drop
from build_multilingual.recipe import FilterTable
from build_multilingual.translate import IDENTICAL, SET_ASIDE
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release.errors import SourceError
from pluralbench_schemas import LANGUAGES

SPANISH, GERMAN, CHINESE = "spa_Latn", "deu_Latn", "zho_Hant"
LANGUAGES_HERE = [SPANISH, GERMAN]
EVERYWHERE, BY_LANGUAGE = FilterTable(), FilterTable(drop="language")


def decisions_of(*rows: tuple[int, str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=DECISIONS, orient="row")


def aside_of(*rows: tuple[int, str, str, str, str]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=SET_ASIDE, orient="row")


def gone(set_aside: pl.DataFrame, decisions: pl.DataFrame, known: int = 10) -> list[tuple[int, str, str, str]]:
    frame = rows_to_drop(set_aside, decisions, LANGUAGES_HERE, set(range(known)))
    assert frame.schema == DROPPED
    return frame.rows()


def read(tmp_path: Path, text: str | bytes, name: str = "decisions.csv") -> list[tuple[int, str, str, str]]:
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    frame = read_decisions([str(path)])
    assert frame.schema == DECISIONS
    return frame.rows()


def refused(tmp_path: Path, text: str | bytes, name: str = "decisions.csv") -> str:
    with pytest.raises(SourceError) as caught:
        read(tmp_path, text, name)
    message = str(caught.value)
    assert "\n" not in message
    assert message.endswith((".", "?"))
    return message.replace(str(tmp_path / name), "FILE")


FAILED = aside_of((1, SPANISH, "prompt", "empty", ""), (2, GERMAN, "chosen", "too long", "viel"))
NO_DECISIONS = decisions_of()


EMPTY, LONG = (1, SPANISH, "check", "prompt: empty"), (2, GERMAN, "check", "chosen: too long")
SEVERAL = aside_of((2, GERMAN, "chosen", "too long", "viel"), (2, GERMAN, "prompt", "reads as English", "much"))


@pytest.mark.parametrize(
    ("set_aside", "decided", "expected"),
    [
        pytest.param(FAILED, [], [EMPTY, LONG], id="what failed a check goes"),
        pytest.param(aside_of(), [], [], id="nothing failed"),
        pytest.param(
            FAILED,
            [(3, SPANISH, "drop", "grammar"), (1, SPANISH, "drop", ""), (0, CHINESE, "drop", "not here")],
            [EMPTY, (1, SPANISH, "person", "dropped by a person"), LONG, (3, SPANISH, "person", "grammar")],
            id="what a person drops goes",
        ),
        *(
            pytest.param(
                aside_of(),
                [(3, which, "drop", "idiom")],
                [(3, code, "person", "idiom") for code in (GERMAN, "eng_Latn", SPANISH)],
                id=f"a decision on {which} is one on the row",
            )
            for which in ("all", "eng_Latn")
        ),
        *(
            pytest.param(FAILED, [(2, which, "keep", "it is fine")], [EMPTY], id=f"a person keeps in {which}")
            for which in (GERMAN, "all", "eng_Latn")
        ),
        pytest.param(FAILED, [(2, SPANISH, "keep", "")], [EMPTY, LONG], id="kept in another language"),
        pytest.param(SEVERAL, [(2, GERMAN, "keep", "")], [], id="kept whatever failed"),
        *(
            pytest.param(aside_of((1, SPANISH, *failed)), [(1, SPANISH, "keep", "")], [result], id="nothing to keep")
            for failed, result in (
                (("prompt", "empty", ""), EMPTY),
                (("prompt", "refused", " \n"), (1, SPANISH, "check", "prompt: refused")),
                (("chosen", IDENTICAL, "lo mismo"), (1, SPANISH, "check", f"chosen: {IDENTICAL}")),
            )
        ),
    ],
)
def test_what_goes(
    set_aside: pl.DataFrame, decided: list[tuple[int, str, str, str]], expected: list[tuple[int, str, str, str]]
) -> None:
    assert gone(set_aside, decisions_of(*decided)) == expected


@pytest.mark.parametrize(
    "decided",
    [
        decisions_of((3, SPANISH, "drop", ""), (3, SPANISH, "keep", "")),
        decisions_of((3, "all", "keep", ""), (3, SPANISH, "drop", "")),
        decisions_of((3, SPANISH, "keep", ""), (3, "all", "drop", "")),
    ],
)
def test_decisions_that_contradict_each_other_are_refused(decided: pl.DataFrame) -> None:
    with pytest.raises(SourceError, match=r"^The decisions both keep and drop id 3 in spa_Latn\.$"):
        gone(aside_of(), decided)
    assert gone(aside_of(), decisions_of((3, SPANISH, "drop", "a"), (3, SPANISH, "drop", "b"))) == [
        (3, SPANISH, "person", "a")
    ]


def test_a_decision_on_an_id_that_is_not_there_is_refused() -> None:
    with pytest.raises(SourceError, match=r"^The decisions have the id 10, which the source does not have\.$"):
        gone(aside_of(), decisions_of((9, SPANISH, "drop", ""), (10, SPANISH, "keep", "")))


def frames() -> dict[str, pl.DataFrame]:
    return {code: pl.DataFrame({"id": [0, 1, 2, 3], "language": code}) for code in (*LANGUAGES_HERE, "eng_Latn")}


def kept(decided: pl.DataFrame, table: FilterTable) -> dict[str, list[int]]:
    left = rows_to_drop(FAILED, decided, LANGUAGES_HERE, set(range(4)))
    return {code: frame["id"].to_list() for code, frame in drop_rows(frames(), left, table).items()}


def test_what_goes_in_one_language_goes_everywhere_or_there_alone() -> None:
    drop_3 = decisions_of((3, SPANISH, "drop", ""))
    assert kept(drop_3, EVERYWHERE) == {SPANISH: [0], GERMAN: [0], "eng_Latn": [0]}
    assert kept(drop_3, BY_LANGUAGE) == {SPANISH: [0, 2], GERMAN: [0, 1, 3], "eng_Latn": [0, 1, 2, 3]}
    assert kept(NO_DECISIONS, EVERYWHERE) == {SPANISH: [0, 3], GERMAN: [0, 3], "eng_Latn": [0, 3]}


def test_decisions_are_read(tmp_path: Path) -> None:
    text = (
        "id,language,decision,reason\n4,spa_Latn,drop,bad grammar\n5,,KEEP ,\n6,deu_Latn,,looked at\n 7 , all,Drop,\n"
    )
    assert read(tmp_path, text) == [(4, SPANISH, "drop", "bad grammar"), (5, "all", "keep", ""), (7, "all", "drop", "")]


def test_several_files_are_put_together_and_each_decision_counts_once(tmp_path: Path) -> None:
    paths = []
    for name, rows in (("a", "1,drop\n2,keep\n"), ("b", "2,keep\n3,drop\n")):
        paths.append(tmp_path / f"{name}.csv")
        paths[-1].write_text(f"id,decision\n{rows}", encoding="utf-8")
    result = read_decisions([str(path) for path in paths])
    assert result.select("id", "decision").rows() == [(1, "drop"), (2, "keep"), (3, "drop")]
    assert read_decisions([]).schema == DECISIONS


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("id,decision\n4,remove\n", "FILE: the decision 'remove' on id 4 is neither drop nor keep."),
        ("id,language,decision\n4,spanish,drop\n", "FILE: unknown language 'spanish' (id 4); did you mean spa_Latn?"),
        ("id,language,decision\n4,klingon,drop\n", "FILE: unknown language 'klingon' (id 4)."),
        *(
            (f"id,decision\n{number},drop\n", f"FILE: the id '{number}' is not a whole number.")
            for number in ("q4", "-4", "²", "99999999999999999999")
        ),
        ("id,decision\n,drop\n", "FILE: a decision has no id."),
        (
            "id,language\n4,spa_Latn\n",
            "FILE has no column `decision`; it has id, language. Decisions have id, language, decision and reason.",
        ),
    ],
)
def test_what_is_no_decision_is_refused(tmp_path: Path, text: str, sentence: str) -> None:
    assert refused(tmp_path, text) == sentence


def test_a_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=r"is a folder; give a file with decisions\.$"):
        read_decisions([str(tmp_path)])


every_decision = st.tuples(
    st.integers(0, 20), st.sampled_from(["all", *LANGUAGES]), st.sampled_from(["drop", "keep"]), st.text(max_size=5)
)


@given(st.lists(every_decision, min_size=1, max_size=6), st.randoms(use_true_random=False))
def test_the_digest_is_of_what_was_decided(rows: list[tuple[int, str, str, str]], draws: object) -> None:
    shuffled = [*rows, rows[0]]
    draws.shuffle(shuffled)  # type: ignore[attr-defined]
    assert decisions_digest(decisions_of(*shuffled)) == decisions_digest(decisions_of(*rows))
    other = [(21, *rows[0][1:]), *rows[1:]]
    assert decisions_digest(decisions_of(*other)) != decisions_digest(decisions_of(*rows))


@given(st.lists(every_decision, max_size=12))
def test_decisions_are_written_and_read_as_they_are(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, str, str, str]]
) -> None:
    path = tmp_path_factory.mktemp("any") / "decisions.csv"
    frame = decisions_of(*((*row[:3], row[3].replace("\0", "").strip()) for row in rows))
    frame.write_csv(path, include_bom=True)
    expected = frame.with_columns(reason=pl.col("reason").str.strip_chars()).unique(maintain_order=True)
    assert read_decisions([str(path)]).rows() == expected.rows()
