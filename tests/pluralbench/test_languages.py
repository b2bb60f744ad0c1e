"""Across languages: the drop from English on the same ids, consistency, groups, and what judges are told."""

import random
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pluralbench import BenchmarkError, DataError, Run, find_benchmark, load_items, report_frame
from pluralbench.data.items import ITEMS
from pluralbench.data.prompts import contexts_of
from pluralbench.metrics.accuracy import measure
from pluralbench.metrics.languages import LABELS, cohens_kappa, measure_languages
from pluralbench.reports.report import notes, shown
from pluralbench.results.decisions import DECISIONS
from pluralbench_schemas import LANGUAGES
from written_tables import write

Row = dict[str, Any]
BENCHMARK = find_benchmark("multilingual")
SUBSETS = [subset for weights in BENCHMARK.sections.values() for subset in weights]


def decisions(
    seed: int, codes: list[str], per_subset: int = 4, gone: dict[str, set[str]] | None = None
) -> pl.DataFrame:
    draw = random.Random(seed)
    rows = []
    for code in codes:
        for place, subset in enumerate(SUBSETS):
            for number in range(per_subset):
                row_id = str(place * per_subset + number)
                if row_id not in (gone or {}).get(code, set()):
                    outcome = draw.choice(["win", "win", "win", "loss", "loss", "tie", "invalid"])
                    row = {"config": code, "id": row_id, "cluster": row_id, "subset": subset, "outcome": outcome}
                    rows.append(row | {"truncated": False, "chosen": "chosen", "rejected": "rejected", "digest": ""})
    return pl.DataFrame(rows, schema=DECISIONS)


def naive_section(frame: pl.DataFrame, section: str) -> float:
    total = weight_sum = 0.0
    for subset, weight in BENCHMARK.sections[section].items():
        own = frame.filter(pl.col("subset") == subset)["outcome"].to_list()
        if own:
            total += weight * own.count("win") / len(own)
            weight_sum += weight
    return total / weight_sum


@pytest.mark.parametrize("seed", range(3))
def test_the_drop_is_measured_on_the_ids_that_both_have(seed: int) -> None:
    gone = {"spa_Latn": {"0", "1", "30"}, "eng_Latn": {"50", "91"}}
    frame = decisions(seed, ["eng_Latn", "spa_Latn", "hin_Deva"], gone=gone)
    found = measure_languages(BENCHMARK, frame, seed=0)["languages"]
    english = frame.filter(config="eng_Latn")
    expected: dict[str, list[float]] = {}
    for code in ("spa_Latn", "hin_Deva"):
        own = frame.filter(config=code)
        ours, theirs = own.join(english, on="id", how="semi"), english.join(own, on="id", how="semi")
        assert found["by_language"][code]["ids"] == ours.height
        for section in BENCHMARK.sections:
            drop = naive_section(ours, section) - naive_section(theirs, section)
            expected.setdefault(section, []).append(drop)
            cell = found["by_language"][code]["drop"][section]
            assert cell["difference"] == pytest.approx(drop)
            assert cell["interval"][0] <= cell["difference"] <= cell["interval"][1]
    for section, drops in expected.items():
        assert found["drop"][section]["difference"] == pytest.approx(sum(drops) / 2)
        means = [naive_section(frame.filter(config=code), section) for code in ("spa_Latn", "hin_Deva")]
        assert found["sections"][section]["accuracy"] == pytest.approx(sum(means) / 2)
    whole = sum(sum(drops) / 2 for drops in expected.values()) / 4
    assert found["drop"]["mean of sections"]["difference"] == pytest.approx(whole)


def test_a_model_that_does_the_same_everywhere_drops_by_nothing_and_is_consistent() -> None:
    english = decisions(1, ["eng_Latn"])
    frame = pl.concat([english, *(english.with_columns(config=pl.lit(code)) for code in ("deu_Latn", "jpn_Jpan"))])
    found = measure_languages(BENCHMARK, frame, seed=0)["languages"]
    assert all(cell == {"difference": 0.0, "interval": [0.0, 0.0]} for cell in found["drop"].values())
    assert found["consistency"] == {"mean": pytest.approx(1.0), "sd": pytest.approx(0.0), "languages": 2}
    counted = found["by_language"]["deu_Latn"]["consistency"]
    assert counted["left_out"] == english.filter(outcome="invalid").height
    assert counted["n"] + counted["left_out"] == english.height


def test_english_is_no_language_among_the_others() -> None:
    frame = decisions(2, ["eng_Latn", "spa_Latn"])
    translations = decisions(3, ["translation"]).with_columns(subset=pl.lit("translation-de-en-easy"))
    both = pl.concat([frame, translations])
    alone = measure(BENCHMARK, frame.filter(config="spa_Latn"), seed=0)
    found = measure(BENCHMARK, both, seed=0)
    assert found["overall"]["accuracy"] == pytest.approx(alone["overall"]["accuracy"])
    assert found["pooled"]["n"] == alone["pooled"]["n"]
    assert set(found["configs"]["eng_Latn"]["sections"]) == set(BENCHMARK.sections)
    assert "sections" not in found["configs"]["translation"]
    assert list(measure_languages(BENCHMARK, both, seed=0)["languages"]["by_language"]) == ["spa_Latn"]


def test_without_english_there_is_no_drop_and_no_consistency() -> None:
    found = measure_languages(BENCHMARK, decisions(4, ["spa_Latn", "fra_Latn"]), seed=0)["languages"]
    assert (found["reference"], found["drop"], found["consistency"]) == (None, {}, None)
    assert found["by_language"]["spa_Latn"] == {"ids": 92, "drop": {}, "consistency": None}
    assert measure_languages(find_benchmark("pairs"), decisions(4, ["spa_Latn"]), seed=0) == {}


def test_both_chinese_scripts_are_one_language_in_the_variance_and_two_in_the_mean() -> None:
    frame = decisions(5, ["zho_Hans", "zho_Hant", "spa_Latn"])
    configs = measure(BENCHMARK, frame, seed=0)["configs"]
    hans, hant, spanish = (100 * configs[code]["mean_of_sections"]["accuracy"] for code in configs)
    found = measure_languages(BENCHMARK, frame, seed=0)["languages"]
    assert found["variance"] == pytest.approx(((hans + hant) / 2 - spanish) ** 2 / 2)
    assert measure_languages(BENCHMARK, frame.filter(config="spa_Latn"), seed=0)["languages"]["variance"] is None


def test_groups_are_means_over_their_languages() -> None:
    codes = [code for code in LANGUAGES if code != "eng_Latn"]
    frame = decisions(6, codes, per_subset=1)
    configs = measure(BENCHMARK, frame, seed=0)["configs"]
    groups = measure_languages(BENCHMARK, frame, seed=0)["languages"]["groups"]
    sizes = {
        name: {value: len(cell["languages"]) for value, cell in members.items()} for name, members in groups.items()
    }
    assert sizes == {
        "resource": {"High": 17, "Mid": 6},
        "class": {"0": 1, "3": 6, "4": 12, "5": 4},
        "family": {
            "Afro-Asiatic": 2, "Austroasiatic": 1, "Austronesian": 1, "Indo-European": 14, "Japonic": 1, "Koreanic": 1,
            "Sino-Tibetan": 2, "Turkic": 1,
        },
        "script": {
            "Arabic": 2, "Cyrillic": 2, "Devanagari": 1, "Greek": 1, "Hangul": 1, "Hans": 1, "Hant": 1, "Hebrew": 1,
            "Japanese": 1, "Latin": 12,
        },
    }  # fmt: skip
    for members in groups.values():
        assert sorted(code for cell in members.values() for code in cell["languages"]) == sorted(codes)
        for cell in members.values():
            own = [configs[code]["mean_of_sections"]["accuracy"] for code in cell["languages"]]
            assert cell["accuracy"] == pytest.approx(sum(own) / len(own))


@given(st.lists(st.tuples(st.sampled_from(LABELS), st.sampled_from(LABELS)), min_size=1, max_size=60))
@settings(max_examples=60)
def test_kappa_is_agreement_beyond_chance(pairs: list[tuple[str, str]]) -> None:
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    agreed = sum(a == b for a, b in pairs) / len(pairs)
    chance = sum(first.count(label) * second.count(label) for label in LABELS) / len(pairs) ** 2
    kappa, interval = cohens_kappa(first, second)
    if chance == 1:
        assert (kappa, interval) == (None, None)
    else:
        assert kappa == pytest.approx((agreed - chance) / (1 - chance))
        assert interval is None or (kappa is not None and interval[0] <= kappa + 1e-9)


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
    assert items.reference == {"location": str(tmp_path / "english"), "revision": None, "rows": 6}
    assert items.source["reference"] == items.reference
    plain = load_items(BENCHMARK, str(tmp_path / "data"))
    assert plain.reference is None
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
    assert str(caught.value) == f"{far} shares no id with the data, so nothing can be compared with English."
    with pytest.raises(DataError) as caught:
        load_items(BENCHMARK, str(tmp_path / "data"), english=str(bare))
    assert str(caught.value) == f"{bare} cannot be matched with the data: both need a column `id` of ids."
    with pytest.raises(DataError) as caught:
        load_items(find_benchmark("pairs"), str(tmp_path / "data"), english=str(far))
    assert str(caught.value) == "Pairs is not translated from English; leave out --english."


def test_legacy_counts_are_rewardbenchs(tmp_path: Path) -> None:
    legacy = find_benchmark("multilingual", legacy=True)
    assert legacy.sections == find_benchmark("reward-bench").sections
    assert legacy.sections["Reasoning"]["math-prm"] == 984
    assert BENCHMARK.sections["Reasoning"]["math-prm"] == 983
    with pytest.raises(BenchmarkError) as caught:
        find_benchmark("pairs", legacy=True)
    assert str(caught.value) == "Pairs has no legacy rules; leave out --legacy."


def told(config: str, subset: str, **options: Any) -> str:
    row = {"config": config, "id": "1", "subset": subset}
    items = pl.DataFrame([row], schema=ITEMS)
    return contexts_of(BENCHMARK, items, "none", 0, {}, oracle=False, **options)[0]


def test_judges_are_told_the_languages_of_question_and_answer() -> None:
    assert told("spa_Latn", "alpacaeval-easy") == "This person asks in Spanish and expects an answer in Spanish."
    assert told("zho_Hant", "mt-bench-hard").count("Chinese (traditional)") == 2
    assert told("hin_Deva", "hep-rust") == "This person asks in Hindi and expects an answer in English."
    assert told("eng_Latn", "donotanswer") == "This person asks in English and expects an answer in English."
    for subset in ("translation-de-en-hard", "maple-de-en-easy"):
        assert told("translation", subset) == "This person asks for a translation from German into English."
    legacy = told("spa_Latn", "alpacaeval-easy", answer_language="english")
    assert legacy == "This person asks in Spanish and expects an answer in English."
    assert told("some_Config", "x") == ""
    items = pl.DataFrame([{"config": "spa_Latn", "id": "1", "subset": None}], schema=ITEMS)
    assert contexts_of(find_benchmark("pairs"), items, "none", 0, {}, oracle=False) == [""]


def run_of(frame: pl.DataFrame) -> Run:
    metrics = {"items": frame.height} | measure(BENCHMARK, frame, seed=0) | measure_languages(BENCHMARK, frame, seed=0)
    record = {
        "model": {"name": "m", "kind": "classifier"},
        "benchmark": {"name": "multilingual"},
        "prompt": {"profile": ""},
    }
    return Run(Path("runs/m"), frame, metrics, record)


def test_a_report_shows_drop_and_consistency_and_keeps_sections_of_languages_for_files() -> None:
    run = run_of(decisions(7, ["eng_Latn", "spa_Latn", "fra_Latn"]))
    frame = report_frame([run])
    assert "spa_Latn: Chat" in frame["config"].to_list()
    table = shown(frame)
    assert not [config for config in table["config"] if config.startswith("spa_Latn:")]
    assert [config for config in table["config"] if config.startswith("languages: ")] == [
        f"languages: {section}" for section in BENCHMARK.sections
    ]
    row = table.filter(config="spa_Latn").row(0, named=True)
    drop = run.metrics["languages"]["by_language"]["spa_Latn"]["drop"]["mean of sections"]
    assert row["against English"].startswith(f"{100 * drop['difference']:+.1f} [")
    assert row["kappa"] == f"{run.metrics['languages']['by_language']['spa_Latn']['consistency']['kappa']:.2f}"
    assert table.filter(config="eng_Latn")["against English"][0] == ""
    text = "\n".join(notes([run]))
    assert "points [" in text
    assert "over 2 languages." in text
    without = run_of(decisions(7, ["spa_Latn", "fra_Latn"]))
    assert "no items in English, so no drop and no consistency; give them with --english." in "\n".join(
        notes([without])
    )
    assert {"against English", "kappa"}.isdisjoint(shown(report_frame([without])).columns)


def test_pairs_of_other_subsets_are_averaged_plainly() -> None:
    frame = decisions(8, ["eng_Latn", "spa_Latn"]).with_columns(subset=pl.lit("Grammarly"))
    plain = BENCHMARK.fitted(frame["subset"])
    assert plain.sections == {}
    assert BENCHMARK.fitted([*frame["subset"], "hep-go"]) is BENCHMARK
    spanish = frame.filter(config="spa_Latn")["outcome"].to_list()
    english = frame.filter(config="eng_Latn")["outcome"].to_list()
    expected = (spanish.count("win") - english.count("win")) / len(spanish)
    assert measure(plain, frame, seed=0)["overall"]["accuracy"] == pytest.approx(spanish.count("win") / len(spanish))
    found = measure_languages(plain, frame, seed=0)["languages"]
    assert found["drop"]["mean of sections"]["difference"] == pytest.approx(expected)
    assert found["sections"] == {}
