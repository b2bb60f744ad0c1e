"""Across languages: the drop from English on the same ids, consistency, and groups of languages."""

import io
import json
import random
import statistics
from collections import Counter

import polars as pl
import pytest
from made_runs import decision, run_of
from pluralbench import find_benchmark
from pluralbench.data.column_types import DECISIONS
from pluralbench.reports.runs import details
from pluralbench.reports.writing import texts_of
from pluralbench.results import Run
from pluralbench.results.numbers import number, points
from pluralbench_schemas import LANGUAGES
from rendered import render
from rich.console import Console

BENCHMARK = find_benchmark("multilingual")
SUBSETS = [subset for weights in BENCHMARK.sections.values() for subset in weights]


def decisions(
    seed: int, codes: list[str], per_subset: int = 4, gone: dict[str, set[str]] | None = None
) -> pl.DataFrame:
    draw = random.Random(seed)
    rows = []
    for code in codes:
        for item in range(len(SUBSETS) * per_subset):
            if str(item) not in (gone or {}).get(code, set()):
                outcome = draw.choice(["win", "win", "win", "loss", "loss", "tie", "invalid"])
                place = {"config": code, "id": str(item), "subset": SUBSETS[item // per_subset]}
                rows.append(decision(item, outcome, **place))
    return pl.DataFrame(rows, schema=DECISIONS)


def naive_section(frame: pl.DataFrame, section: str) -> float:
    total = weight_sum = 0.0
    for subset, weight in BENCHMARK.sections[section].items():
        own = frame.filter(pl.col("subset") == subset)["outcome"].to_list()
        if own:
            total += weight * own.count("win") / len(own)
            weight_sum += weight
    return total / weight_sum


def measured(frame: pl.DataFrame) -> Run:
    return run_of(frame, "multilingual")


@pytest.mark.parametrize("seed", range(3))
def test_the_drop_is_measured_on_the_ids_that_both_have(seed: int) -> None:
    gone = {"spa_Latn": {"0", "1", "30"}, "eng_Latn": {"50", "91"}}
    frame = decisions(seed, ["eng_Latn", "spa_Latn", "hin_Deva"], gone=gone)
    run = measured(frame)
    english = frame.filter(config="eng_Latn")
    expected: dict[str, list[float]] = {}
    for code in ("spa_Latn", "hin_Deva"):
        own = frame.filter(config=code)
        ours, theirs = own.join(english, on="id", how="semi"), english.join(own, on="id", how="semi")
        assert run.estimate("drop", config=code).n == ours.height
        for section in BENCHMARK.sections:
            drop = naive_section(ours, section) - naive_section(theirs, section)
            expected.setdefault(section, []).append(drop)
            found = run.estimate("drop", config=code, section=section)
            assert found.value == pytest.approx(drop)
            assert found.low is not None
            assert found.high is not None
            assert found.low <= drop <= found.high
    for section, drops in expected.items():
        assert run.estimate("drop", section=section).value == pytest.approx(sum(drops) / 2)
        means = [naive_section(frame.filter(config=code), section) for code in ("spa_Latn", "hin_Deva")]
        assert run.estimate("accuracy", section=section).value == pytest.approx(sum(means) / 2)
    whole = sum(sum(drops) / 2 for drops in expected.values()) / 4
    assert run.estimate("drop").value == pytest.approx(whole)


def test_a_model_that_does_the_same_everywhere_drops_by_nothing_and_is_consistent() -> None:
    english = decisions(1, ["eng_Latn"])
    frame = pl.concat([english, *(english.with_columns(config=pl.lit(code)) for code in ("deu_Latn", "jpn_Jpan"))])
    run = measured(frame)
    drops = run.metrics.filter(metric="drop")
    assert set(drops["value"]) == {0.0}
    assert (drops["low"] == -drops["high"]).all()
    assert (drops["high"] > 0).all(), "that so few came out the same does not say that all would"
    assert drops.height == (1 + 4) * 3
    kappa = run.estimate("kappa")
    assert kappa.value == pytest.approx(1.0)
    assert kappa.n == 2
    assert run.estimate("kappa_sd").value == pytest.approx(0.0)
    left_out = run.estimate("kappa_left_out", config="deu_Latn").value
    assert left_out == english.filter(outcome="invalid").height
    assert run.estimate("kappa", config="deu_Latn").n == english.height - left_out


def test_english_is_no_language_among_the_others() -> None:
    frame = decisions(2, ["eng_Latn", "spa_Latn"])
    translations = decisions(3, ["translation"]).with_columns(subset=pl.lit("translation-de-en-easy"))
    run, alone = measured(pl.concat([frame, translations])), measured(frame.filter(config="spa_Latn"))
    assert run.headline.value == pytest.approx(alone.headline.value)
    assert run.estimate("pooled_accuracy").n == alone.estimate("pooled_accuracy").n
    assert run.names("section", config="eng_Latn") == list(BENCHMARK.sections)
    assert run.names("section", config="translation") == []
    assert (run.configs, run.excluded_configs) == (
        ["spa_Latn"],
        ["eng_Latn", "translation"],
    )
    assert run.names("config", "drop") == ["spa_Latn"]


def test_without_english_there_is_no_drop_and_no_consistency() -> None:
    run = measured(decisions(4, ["spa_Latn", "fra_Latn"]))
    assert {"drop", "kappa"}.isdisjoint(run.metrics["metric"])
    assert run.estimate("accuracy", config="spa_Latn").n == len(SUBSETS) * 4
    assert "variance" not in run_of(decisions(4, ["spa_Latn"]), "pairs").metrics["metric"].to_list()


def test_both_chinese_scripts_are_one_language_in_the_variance_and_two_in_the_mean() -> None:
    frame = decisions(5, ["zho_Hans", "zho_Hant", "spa_Latn"])
    run = measured(frame)
    hans, hant, spanish = (
        100 * (run.estimate("accuracy", config=code).value or 0.0) for code in ("zho_Hans", "zho_Hant", "spa_Latn")
    )
    assert run.estimate("variance").value == pytest.approx(((hans + hant) / 2 - spanish) ** 2 / 2)
    assert measured(frame.filter(config="spa_Latn")).estimate("variance").value is None


@pytest.mark.heavy
def test_groups_are_means_over_their_languages() -> None:
    codes = [code for code in LANGUAGES if code != "eng_Latn"]
    run = measured(decisions(6, codes, per_subset=1))
    of = {"resource": "resource", "joshi_class": "joshi", "family": "family", "script": "script"}
    sizes = {kind: {name: run.count("languages", **{kind: name}) for name in run.names(kind)} for kind in of}
    assert sizes == {kind: Counter(str(getattr(LANGUAGES[code], of[kind])) for code in codes) for kind in of}
    assert (sizes["joshi_class"]["0"], sizes["family"]["Sino-Tibetan"]) == (1, 2)
    for kind, field in of.items():
        for name in run.names(kind):
            own = [
                run.estimate("accuracy", config=code).value or 0.0
                for code in codes
                if str(getattr(LANGUAGES[code], field)) == name
            ]
            assert run.estimate("accuracy", **{kind: name}).value == pytest.approx(sum(own) / len(own))


def test_a_report_shows_drop_and_consistency_and_keeps_sections_of_languages_for_files() -> None:
    run = measured(decisions(7, ["eng_Latn", "spa_Latn", "fra_Latn"]))
    report = details([run])
    table = texts_of(report.tables[-1])
    assert not [config for config in table["config"] if config.startswith("spa_Latn:")]
    assert [config for config in table["config"] if config.startswith("languages: ")] == [
        f"languages: {section}" for section in BENCHMARK.sections
    ]
    row = table.filter(config="spa_Latn").row(0, named=True)
    assert row["against English"].startswith(f"{100 * (run.estimate('drop', config='spa_Latn').value or 0.0):+.1f} [")
    assert row["kappa"].split()[0] == f"{run.estimate('kappa', config='spa_Latn').value:.2f}"
    assert table.filter(config="eng_Latn")["against English"][0] == ""
    assert table.row(0, named=True)["against English"] == str(number(run.estimate("drop"), points))
    assert run.estimate("kappa").n == 2
    without = measured(decisions(7, ["spa_Latn", "fra_Latn"]))
    report = details([without])
    assert {"against English", "kappa"}.isdisjoint(texts_of(report.tables[-1]).columns)
    (row,) = json.loads(str(render([run], "json")))[:1]
    assert row["drop"]["value"] == run.estimate("drop").value
    assert row["kappa"]["value"] == run.estimate("kappa").value
    assert [*row["parts"]] == [*BENCHMARK.sections], "languages are not columns"
    (row,) = json.loads(str(render([without], "json")))[:1]
    assert {"drop", "kappa"}.isdisjoint(row)


TRANSLATION = [f"translation-{way}-{level}" for way in ("de-en", "en-de") for level in ("easy", "hard")]


@pytest.mark.heavy
def test_a_detailed_report_compares_models_by_language_section_and_translation_pair() -> None:
    codes, frames = [*LANGUAGES], {}
    for seed, model in enumerate(("first", "second")):
        pairs = [
            decision(number, "win" if number % (seed + 2) else "loss", config="translation", subset=subset)
            for number, subset in enumerate(TRANSLATION * 3)
        ]
        frames[model] = pl.concat([decisions(seed, codes, 1), pl.DataFrame(pairs, schema=DECISIONS)])
    runs = [run_of(frame, "multilingual", model=model) for model, frame in frames.items()]
    tables = {table.title.partition(": ")[2]: texts_of(table) for table in details(runs).tables[:3]}
    by_language, drops, translation = tables.values()
    assert next(iter(tables)) == "accuracy by language"
    assert by_language.height == drops.height == translation.height == 2
    for model, frame in frames.items():
        sections = {
            code: [naive_section(frame.filter(config=code), section) for section in BENCHMARK.sections]
            for code in codes
        }
        means = {code: 100 * sum(values) / 4 for code, values in sections.items() if code != "eng_Latn"}
        row = by_language.row(by_predicate=pl.col("model") == model, named=True)
        assert {code: row[code] for code in means} == {code: f"{mean:.1f}" for code, mean in means.items()}
        assert row["overall"].startswith(f"{sum(means.values()) / len(means):.1f} [")
        chinese = (means.pop("zho_Hans") + means.pop("zho_Hant")) / 2
        assert row["variance (points²)"] == f"{statistics.variance([*means.values(), chinese]):.1f}"
        row = drops.row(by_predicate=pl.col("model") == model, named=True)
        for place, section in enumerate(BENCHMARK.sections):
            others = [values[place] for code, values in sections.items() if code != "eng_Latn"]
            assert row[section] == f"{100 * (sum(others) / len(others) - sections['eng_Latn'][place]):+.1f}"
        row = translation.row(by_predicate=pl.col("model") == model, named=True)
        for subset in TRANSLATION:
            outcomes = frame.filter(config="translation", subset=subset)["outcome"].to_list()
            assert row[subset.removeprefix("translation-")] == f"{100 * outcomes.count('win') / len(outcomes):.1f}"
    shown = Console(width=80, file=io.StringIO(), record=True)
    shown.print(render(runs, "table", detail=True))
    lines = shown.export_text().splitlines()
    assert max(map(len, lines)) <= 80
    assert {word for line in lines for word in line.split()[:1]} >= {*codes}


def test_pairs_of_other_subsets_are_averaged_plainly() -> None:
    frame = decisions(8, ["eng_Latn", "spa_Latn"]).with_columns(subset=pl.lit("Grammarly"))
    plain = BENCHMARK.fit_to(frame["subset"])
    assert plain.sections == {}
    assert BENCHMARK.fit_to([*frame["subset"], "hep-go"]) is BENCHMARK
    spanish = frame.filter(config="spa_Latn")["outcome"].to_list()
    english = frame.filter(config="eng_Latn")["outcome"].to_list()
    expected = (spanish.count("win") - english.count("win")) / len(spanish)
    run = run_of(frame, plain)
    assert run.headline.value == pytest.approx(spanish.count("win") / len(spanish))
    assert run.estimate("drop").value == pytest.approx(expected)
    assert run.names("section") == []
