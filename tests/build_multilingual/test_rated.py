"""Rated translations in the three shapes that files have: what is read, what is left out, and what is refused."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_multilingual.rated import RATED, SCALES, RatedTranslations, read
from build_multilingual.recipe import RatedTable, Scale
from hypothesis import given
from hypothesis import strategies as st
from pluralbench_release.errors import SourceError
from written_tables import write

SHARED = Path(__file__).parents[2].parent / "shared" / "data" / "multilingual"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason=f"the real rated translations are not at {SHARED}")

Row = Mapping[str, Any]

# MAPLE's keys. The sentences are invented.
SENTENCES = {
    "今天下雨了。": {"It rained today.": 5.5, "It is raining today.": 4.75, "Today rained.": 2.0},
    "我把钥匙丢了。🔑": {"I lost my keys. 🔑": 6.0, "I threw the key away. 🔑": 1.5},
}
MAPLE: list[dict[str, Any]] = [
    {
        "score_annotator_a": score - 0.25,
        "score_annotator_b": score + 0.25,
        "score": score,
        "system": f"sample{number}",
        "source": source,
        "translation": text,
    }
    for source, texts in SENTENCES.items()
    for number, (text, score) in enumerate(texts.items(), start=1)
]


def rated(tmp_path: Path, rows: Sequence[Row], name: str = "rated.jsonl", **settings: Any) -> RatedTranslations:
    return read(RatedTable(location=str(write(tmp_path / name, rows)), **settings))


def without(row: Row, *names: str) -> dict[str, Any]:
    return {name: value for name, value in row.items() if name not in names}


@pytest.mark.parametrize("name", ["maple-train.jsonl", "maple.json", "maple.csv", "maple.parquet", "data/train.jsonl"])
def test_a_translation_a_row(tmp_path: Path, name: str) -> None:
    write(tmp_path / name, MAPLE)
    location = tmp_path if name.startswith("data/") else tmp_path / name
    result = read(RatedTable(location=str(location), direction="zh-en", license="cc-by-nc-4.0", name="MAPLE"))
    assert result.frame.schema == RATED
    assert result.frame.to_dicts() == [
        {name: row[name] for name in ("source", "system", "translation", "score")}
        | {"direction": "zh-en", "raw_score": row["score"]}
        for row in MAPLE
    ]
    assert (result.score, result.scale, result.left_out) == ("score", SCALES["score"], {})
    assert result.source.model_dump(exclude={"digest"}, exclude_none=True) == {
        "name": "MAPLE",
        "location": location.name,
        "rows": 5,
        "license": "cc-by-nc-4.0",
        "attribution": "MAPLE",
    }


def test_a_source_a_row_with_candidates_is_the_same_as_a_translation_a_row(tmp_path: Path) -> None:
    kept = ("system", "translation", "score")
    nested = [
        {
            "source": source,
            "lp": "zh-en",
            "candidates": [{name: row[name] for name in kept} for row in MAPLE if row["source"] == source],
        }
        for source in SENTENCES
    ]
    long = rated(tmp_path, MAPLE, direction="zh-en")
    for name in ("nested.jsonl", "nested.parquet"):
        result = rated(tmp_path, nested, name)
        assert result.frame.equals(long.frame)
        assert result.source.digest == long.source.digest
    as_text = [row | {"candidates": json.dumps(row["candidates"], ensure_ascii=False)} for row in nested]
    assert rated(tmp_path, as_text, "nested.csv").frame.equals(long.frame)


@pytest.mark.parametrize(
    ("stated", "direction"),
    [("zh-en", "zh-en"), (" zh -> en ", "zh-en"), ("yue-eng", "yue-eng"), ("eng_Latn_deu_Latn", "eng-deu")],
)
def test_directions_are_understood_as_they_are_written(tmp_path: Path, stated: str, direction: str) -> None:
    result = rated(tmp_path, [row | {"lp": stated} for row in MAPLE])
    assert result.frame["direction"].unique().to_list() == [direction]
    assert rated(tmp_path, MAPLE, direction=stated).frame.equals(result.frame)


@pytest.mark.parametrize(
    "columns", [{"direction": "zh-en"}, {"src": "zh", "tgt": "en"}, {"source_lang": "zh", "target_lang": "en"}]
)
def test_the_columns_that_say_the_direction(tmp_path: Path, columns: dict[str, str]) -> None:
    expected = rated(tmp_path, MAPLE, direction="zh-en").frame
    assert rated(tmp_path, [row | columns for row in MAPLE]).frame.equals(expected)
    renamed = [without(row, "source") | columns | {"source_text": row["source"]} for row in MAPLE]
    assert rated(tmp_path, renamed).frame.equals(expected)


def test_src_and_tgt_that_are_texts_say_no_direction(tmp_path: Path) -> None:
    rows = [
        {"src": row["source"], "tgt": "a reference", "mt": row["translation"], "score": row["score"]} for row in MAPLE
    ]
    result = rated(tmp_path, rows, direction="zh-en").frame
    expected = rated(tmp_path, MAPLE, direction="zh-en").frame
    assert result.drop("system").equals(expected.drop("system"))
    assert result["system"].to_list() == ["1", "2", "3", "1", "2"]  # no column says who translated


def test_columns_of_other_names(tmp_path: Path) -> None:
    names = {"source": "zh", "translation": "en", "system": "who", "direction": "pair"}
    rows = [
        {names[name]: row[name] for name in names if name in row} | {"pair": "zh-en", "rank": -row["score"]}
        for row in MAPLE
    ]
    scale = Scale(better="lower", easy=0.25, hard=0.5)
    result = rated(tmp_path, rows, columns=names, score="rank", scale=scale)
    expected = rated(tmp_path, MAPLE, direction="zh-en").frame
    assert result.frame.drop("raw_score").equals(expected.drop("raw_score"))
    assert result.frame["raw_score"].to_list() == [-row["score"] for row in MAPLE]
    assert (result.score, result.scale) == ("rank", scale)


def test_of_a_penalty_the_lower_is_the_better(tmp_path: Path) -> None:
    rows = [
        without(row, "score") | {"mqm_penalty": penalty} for row, penalty in zip(MAPLE, (0, 1, 25, 0.1, 5), strict=True)
    ]
    result = rated(tmp_path, rows, direction="zh-en")
    assert result.frame["raw_score"].to_list() == [0, 1, 25, 0.1, 5]
    assert result.frame["score"].to_list() == [0, -1, -25, -0.1, -5]
    assert math.copysign(1, result.frame["score"][0]) == 1  # not -0.0
    assert result.scale == SCALES["mqm_penalty"]


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    first = MAPLE[0] | {"lp": "zh-en"}
    rows = [
        first,
        first | {"translation": " \n"},
        first | {"translation": None},
        first | {"source": ""},
        first | {"score": None},
        first | {"score": "n/a"},
        first | {"score": "nan"},
        first | {"lp": None},
        first | {"system": "beam", "translation": f" {first['translation']}\n", "score": 4.5},
        first | {"translation": "It rains."},
    ]
    result = rated(tmp_path, [row | {"score": row["score"] and str(row["score"])} for row in rows])
    assert result.left_out == {
        "empty translation": 2,
        "no direction": 1,
        "no score": 3,
        "no source": 1,
        "repeated translation": 1,
    }
    assert result.frame.select("system", "translation", "score", "raw_score").rows() == [
        ("beam", "It rained today.", 5.0, 5.0),  # the first of its systems by name, the mean of 5.5 and 4.5
        ("sample1", "It rains.", 5.5, 5.5),
    ]


NO_SCORE = [without(row, "score") for row in MAPLE]
LISTED = f"it has {', '.join(NO_SCORE[0])}"
KNOWN = "score, mqm_penalty, hter, da_mean"
ONE = {"source": "甲", "translation": "A"}
NO_LIST = "rated.jsonl: `candidates` is not a list of objects with a translation and a score."


@pytest.mark.parametrize(
    ("rows", "settings", "sentence"),
    [
        (
            MAPLE,
            {"direction": None},
            "rated.jsonl has no column of directions (direction, lp, language_pair, lang_pair); set `direction=...`, "
            'such as "zh-en".',
        ),
        (
            [row | {"lp": "Chinese-English"} for row in MAPLE],
            {"direction": None},
            "rated.jsonl: 'Chinese-English' is not a direction; give language codes such as `zh-en`.",
        ),
        (
            [row | {"lp": "en-zh"} for row in MAPLE],
            {},
            "rated.jsonl has rows of en-zh, but `direction` is zh-en; remove `direction=...`.",
        ),
        (
            NO_SCORE,
            {},
            f"rated.jsonl has no known column of scores ({KNOWN}); {LISTED}: set `score=...` and `scale=...`.",
        ),
        (
            MAPLE,
            {"score": "score_annotator_a"},
            f"rated.jsonl: the scale of `score_annotator_a` is unknown (known: {KNOWN}); set `scale=...`.",
        ),
        (
            [row | {"score": row["score"] * 16} for row in MAPLE],
            {},
            "rated.jsonl: `score` 88 is outside of the scale of that name (1 to 6); set `scale=...`.",
        ),
        (
            [{"source": "甲", "score": 3.0}],
            {},
            "rated.jsonl has neither a column of translations (translation, mt, target, hypothesis, text) nor a list "
            "of candidates (candidates, translations); it has source, score: name it with "
            '`columns=["translation=COLUMN"]`.',
        ),
        ([ONE | {"candidates": "A | B"}], {}, NO_LIST),
        (
            [row | {"score": None} for row in MAPLE],
            {},
            "rated.jsonl: no row has a source, a translation and a number as its `score`.",
        ),
    ],
)
def test_what_cannot_be_read_says_why(tmp_path: Path, rows: list[Row], settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(SourceError) as caught:
        rated(tmp_path, rows, **{"direction": "zh-en"} | settings)
    assert str(caught.value).replace(f"{tmp_path}/", "") == sentence


def test_a_location_has_one_score(tmp_path: Path) -> None:
    both = [row | {"hter": 0.5} for row in MAPLE]
    write(tmp_path / "one" / "train.jsonl", both)
    write(tmp_path / "two" / "train.jsonl", [without(row, "score") for row in both])
    with pytest.raises(SourceError) as caught:
        read(RatedTable(location=str(tmp_path), direction="zh-en"))
    assert str(caught.value) == f"{tmp_path} is rated by `score` and by `hter`; choose one with `score=...`."
    assert read(RatedTable(location=str(tmp_path), direction="zh-en", score="hter")).frame.height == 5


def post_edited(
    tmp_path: Path, direction: str, mt: str, post_edit: str, hter: float = 0.5, **settings: Any
) -> RatedTranslations:
    row = {"direction": direction, "source": "A source.", "mt": "left alone", "mt_tok": mt, "post_edit_tok": post_edit}
    return rated(tmp_path, [row | {"hter": hter, "da_mean": 50.0}], "mlqe.jsonl", **settings)


def test_a_post_edit_is_the_better_translation(tmp_path: Path) -> None:
    result = post_edited(tmp_path, "en-de", "Das ist eine Rasia .", "Das ist eine Razzia .", 0.2)
    assert result.frame.rows() == [
        ("en-de", "A source.", "mt", "Das ist eine Rasia.", -0.2, 0.2),
        ("en-de", "A source.", "post_edit", "Das ist eine Razzia.", 0.0, 0.0),
    ]
    assert (result.score, result.scale) == ("hter", SCALES["hter"])
    assert post_edited(tmp_path, "en-de", "Gut .", "Gut .", 0).left_out == {"repeated translation": 1}
    by_da = post_edited(tmp_path, "en-de", "Gut .", "Besser .", score="da_mean")  # which only the translation has
    assert by_da.frame["translation"].to_list() == ["left alone"]


@pytest.mark.parametrize(
    ("direction", "tokens", "text"),
    [
        ("en-de", "Er lobte „ Royals “ , sagte er .", 'Er lobte "Royals", sagte er.'),
        ("en-de", "Für 10.000 ( etwa ) und 5,3 % ; ja !", "Für 10.000 (etwa) und 5,3%; ja!"),
        ("en-de", "Sheila O ' Neill und Forrest ' s Seite", "Sheila O'Neill und Forrest's Seite"),
        ("en-de", "Nach Galerius ' Edikt", "Nach Galerius' Edikt"),
        ("en-de", "in ' Sarvanash ' auf", "in 'Sarvanash' auf"),
        ("en-fr", "C' est l' heure .", "C'est l'heure."),
        ("eng_Latn-zho_Hans", "他们 走 了 .", "他们走了。"),
        ("en-zh", "在 乔治   ·   华盛顿 的 统治 下 ,   他 走 了 .", "在乔治·华盛顿的统治下，他走了。"),
        ("en-zh", "独奏家   Elena   Nikolaidi   ，   与 乐队", "独奏家Elena Nikolaidi，与乐队"),
        ("en-zh", "像   J .   D .   Salinger   一样", "像J. D. Salinger一样"),
        ("en-zh", "沉默   -   -   如果 不是 — 感到", "沉默——如果不是——感到"),
        ("en-zh", "得 了   0.26   ,   和   1,000   ； 好 吗 ?", "得了0.26，和1,000；好吗？"),
        ("en-zh", "在   2 : 30   走 了 ...", "在2:30走了..."),
        ("en-ko", "그는 갔다 .", "그는 갔다."),
    ],
)
def test_tokens_become_text_as_it_is_written(tmp_path: Path, direction: str, tokens: str, text: str) -> None:
    assert post_edited(tmp_path, direction, tokens, "x").frame["translation"][0] == text


@needs_shared
def test_mlqe_pe_reads_as_its_machine_translations_were_written() -> None:
    for direction in ("en-de", "en-zh"):
        path = SHARED / f"mlqe_pe_{direction}_dev.jsonl"
        frame = read(RatedTable(location=str(path))).frame
        given = {row["source"]: row for row in map(json.loads, path.read_text(encoding="utf-8").splitlines())}
        ours = dict(frame.filter(pl.col("system") == "mt").select("source", "translation").iter_rows())
        assert ours.keys() == given.keys()
        letters = re.compile(r"[\W_]+")  # spaces and marks are what we change
        assert all(letters.sub("", text) == letters.sub("", given[source]["mt"]) for source, text in ours.items())
        if direction == "en-de":
            plain = [
                text == given[source]["mt"] for source, text in ours.items() if "'" not in text and '"' not in text
            ]
            assert all(plain)
            assert len(plain) > 800


@given(st.permutations(MAPLE))
def test_the_digest_is_that_of_the_rows_in_any_order(tmp_path_factory: pytest.TempPathFactory, rows: list[Row]) -> None:
    folder = tmp_path_factory.mktemp("order")
    digest = rated(folder, rows, direction="zh-en").source.digest
    assert digest == rated(folder, MAPLE, direction="zh-en").source.digest
    assert digest != rated(folder, rows[1:], direction="zh-en").source.digest


@needs_shared
def test_wmt21_has_five_translations_a_source() -> None:
    for direction, sources in {"en-de": 236, "zh-en": 288}.items():
        result = read(RatedTable(location=str(SHARED / f"wmt21_ted_mqm_{direction}_5way.jsonl")))
        assert (result.score, result.left_out) == ("mqm_penalty", {})
        assert result.frame["direction"].unique().to_list() == [direction]
        counts = result.frame.group_by("source").len()["len"]
        assert (counts.len(), counts.unique().to_list()) == (sources, [5])
        assert (result.frame["score"] == -result.frame["raw_score"]).all()
