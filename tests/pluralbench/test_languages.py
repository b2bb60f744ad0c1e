"""Across languages: where English comes from, by which counts subsets weigh, and what judges are told."""

from pathlib import Path
from typing import Any

import pytest
from pluralbench import find_benchmark
from pluralbench.config.judges import AnswerLanguage
from pluralbench.data.prompts import language_context
from pluralbench.errors import DataError
from verbs import load_items
from written_tables import write

Row = dict[str, Any]
BENCHMARK = find_benchmark("multilingual")
SUBSETS = [subset for weights in BENCHMARK.sections.values() for subset in weights]


def pairs(codes: list[str], count: int = 6, **changes: Any) -> dict[str, list[Row]]:
    made = {}
    for code in codes:
        made[code] = [
            {"id": number, "language": code, "prompt": f"{code} {number}?", "chosen": "yes", "rejected": "no"}
            | {"source": SUBSETS[number], "category": "Chat"}
            | changes
            for number in range(count)
        ]
    return made


def english_rows(count: int) -> list[Row]:
    return [
        {
            "id": number,
            "prompt": f"English {number}?",
            "chosen": "yes",
            "rejected": "no",
            "subset": SUBSETS[number % 23],
        }
        for number in range(count)
    ]


def test_english_is_read_from_rewardbenchs_shape_and_cut_to_the_datas_ids(tmp_path: Path) -> None:
    for code, rows in pairs(["spa_Latn", "deu_Latn"]).items():
        write(tmp_path / "data" / code / "test.parquet", rows)
    write(tmp_path / "english" / "filtered.parquet", english_rows(20))
    items = load_items(BENCHMARK, str(tmp_path / "data"), english=str(tmp_path / "english"))
    english = items.frame.filter(config="eng_Latn")
    assert english["id"].to_list() == [str(number) for number in range(6)]
    assert english["subset"].to_list() == SUBSETS[:6]
    assert items.source["reference"] == {"location": str(tmp_path / "english"), "revision": None, "rows": 6}
    plain = load_items(BENCHMARK, str(tmp_path / "data"))
    assert plain.source["reference"] is None
    assert set(plain.frame["config"]) == {"spa_Latn", "deu_Latn"}
    assert plain.digest != items.digest


def test_a_release_may_hold_english_itself_or_lend_it(tmp_path: Path) -> None:
    for code, rows in pairs(["spa_Latn", "eng_Latn"]).items():
        write(tmp_path / "release" / code / "test.parquet", rows)
    assert set(load_items(BENCHMARK, str(tmp_path / "release")).frame["config"]) == {"spa_Latn", "eng_Latn"}
    write(tmp_path / "data" / "fra_Latn" / "test.parquet", pairs(["fra_Latn"], 3)["fra_Latn"])
    # A release keeps English in the split of its languages, so the file is named.
    lent = load_items(
        BENCHMARK, str(tmp_path / "data"), english=str(tmp_path / "release" / "eng_Latn" / "test.parquet")
    )
    assert lent.frame.filter(config="eng_Latn")["id"].to_list() == ["0", "1", "2"]


def test_english_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "data" / "spa_Latn" / "test.parquet", pairs(["spa_Latn"])["spa_Latn"])
    far = write(tmp_path / "far.jsonl", [row | {"id": row["id"] + 100} for row in english_rows(4)])
    bare = write(tmp_path / "bare.jsonl", [{k: v for k, v in row.items() if k != "id"} for row in english_rows(4)])
    with pytest.raises(DataError) as caught:
        load_items(BENCHMARK, str(tmp_path / "data"), english=str(far))
    assert str(caught.value) == f"{far} shares no id with the data; choose the original with `english=...`."
    with pytest.raises(DataError) as caught:
        load_items(BENCHMARK, str(tmp_path / "data"), english=str(bare))
    assert str(caught.value) == f"{bare} cannot be matched with the data; add a column `id` of ids to both."


def told(config: str, subset: str, answers: AnswerLanguage = "target") -> str:
    return language_context(BENCHMARK, config, subset, answers)


def test_judges_are_told_the_languages_of_question_and_answer() -> None:
    both = "The question is in {}, and the answer should be in {}."
    assert told("spa_Latn", "alpacaeval-easy") == both.format("Spanish", "Spanish")
    assert told("zho_Hant", "mt-bench-hard").count("Chinese (traditional)") == 2
    assert told("hin_Deva", "hep-rust") == both.format("Hindi", "English")
    assert told("eng_Latn", "donotanswer") == both.format("English", "English")
    for subset in ("translation-de-en-hard", "maple-de-en-easy"):
        assert told("translation", subset) == "The question asks for a translation from German into English."
    assert told("spa_Latn", "alpacaeval-easy", "english") == both.format("Spanish", "English")
    assert told("some_Config", "x") == ""
    assert language_context(find_benchmark("pairs"), "spa_Latn", "", "target") == ""
