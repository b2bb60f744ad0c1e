"""Benchmarks as their authors published them, and our own release: rows, ids, groups and weights."""

from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import polars as pl
import pytest
from pluralbench import known_benchmarks
from pluralbench.contract import Group
from pluralbench.reports.sheets import columns_of
from pluralbench.results import Run
from verbs import value
from written_tables import write

Rows = list[dict[str, Any]]
CONFIGS = ["Art_and_Entertainment", "Lifestyle_and_Personal_Development", "Society_and_Culture"]
CHAT = dict.fromkeys(["alpacaeval-easy", "alpacaeval-length"], 79) | {"alpacaeval-hard": 76}
CODE = {"hep-cpp": 164, "hep-go": 164, "hep-java": 164, "hep-js": 164, "hep-python": 163, "hep-rust": 164}
FILTERED = {
    "Chat": CHAT | {"mt-bench-easy": 24, "mt-bench-med": 38},
    "Chat Hard": {
        "mt-bench-hard": 35,
        "llmbar-natural": 76,
        "llmbar-adver-neighbor": 124,
        "llmbar-adver-GPTInst": 87,
        "llmbar-adver-GPTOut": 42,
        "llmbar-adver-manual": 43,
    },
    "Safety": {
        "refusals-dangerous": 100,
        "refusals-offensive": 100,
        "xstest-should-refuse": 154,
        "xstest-should-respond": 247,
        "donotanswer": 135,
    },
    "Reasoning": {"math-prm": 983} | CODE,
}
SUBSETS = [subset for section in FILTERED.values() for subset in section]
LANGUAGES = ["arb_Arab", "fra_Latn", "zho_Hans"]


def right(items: pl.DataFrame) -> list[bool]:
    """Whether the better response has strictly the higher score, from the scores alone."""
    return [chosen > rejected for chosen, rejected in items.select("score_chosen", "score_rejected").iter_rows()]


def by_section(items: pl.DataFrame, weights: dict[str, dict[str, int]]) -> dict[str, float]:
    """Accuracy of each section: its subsets weigh what they should, whatever the number of rows."""
    return {
        section: sum(weight * fmean(right(items.filter(subset=subset))) for subset, weight in subsets.items())
        / sum(subsets.values())
        for section, subsets in weights.items()
    }


def ids_of(items: pl.DataFrame, config: str) -> list[str]:
    return items.filter(config=config)["id"].to_list()


def test_our_release_is_scored_in_its_order(score: Callable[..., Run], sample: Path) -> None:
    run = score("personalized", sample)
    assert sorted(run.config.data.rows) == CONFIGS
    for config in CONFIGS:
        table = pl.read_parquet(sample / "data" / config / "test.parquet")
        assert ids_of(run.items, config) == table["id"].to_list()
    assert run.config.data.rows == dict.fromkeys(CONFIGS, 8)
    assert run.config.data.license
    accuracies = [fmean(right(run.items.filter(config=config))) for config in CONFIGS]
    assert run.headline.value == pytest.approx(fmean(accuracies))


def test_personalized_rewardbench_as_published(
    score: Callable[..., Run], people: Callable[..., Rows], tmp_path: Path
) -> None:
    sizes = dict(zip(CONFIGS, (3, 7, 5), strict=True))
    for number, (config, size) in enumerate(sizes.items()):
        write(tmp_path / "hub" / config / "test-00000-of-00001.parquet", people(size, seed=number))
    run = score("personalized", tmp_path / "hub")
    assert run.config.data.rows == sizes
    assert run.config.data.ignored_columns == (), "columns of a release are known, read or not"
    parts = [right(run.items.filter(config=config)) for config in CONFIGS]
    assert [run.estimate("accuracy", config=config).value for config in CONFIGS] == pytest.approx([*map(fmean, parts)])
    assert run.headline.value == pytest.approx(fmean(map(fmean, parts))), "domains weigh alike"
    assert value(run, "pooled_accuracy") == pytest.approx(fmean([one for part in parts for one in part]))
    only = score("personalized", tmp_path / "hub", configs=[CONFIGS[1]])
    assert only.items["id"].to_list() == ids_of(run.items, CONFIGS[1])


def multilingual(folder: Path, pairs: Callable[..., Rows], languages: Sequence[str] = LANGUAGES) -> Path:
    for number, language in enumerate(languages):
        rows = pairs(len(SUBSETS) * 3, seed=number, language=language, chosen_model="a", rejected_model="b")
        for place, row in enumerate(rows):
            row |= {"id": 4000 - place, "source": SUBSETS[place % len(SUBSETS)], "category": "Chat"}
        write(folder / language / "test.parquet", rows)
    rows = pairs(16, seed=9)
    for place, row in enumerate(rows):
        row |= {
            "id": place,
            "source": f"A sentence, no. {place}.",
            "subset": f"translation-de-en-{'easy' if place % 2 else 'hard'}",
        }
    write(folder / "translation" / "test.parquet", rows)
    return folder


def test_m_rewardbench_as_published(score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path) -> None:
    run = score("multilingual", multilingual(tmp_path / "hub", pairs))
    assert sorted(run.config.data.rows) == sorted([*LANGUAGES, "translation"])
    assert ids_of(run.items, "fra_Latn") == [str(4000 - place) for place in range(len(SUBSETS) * 3)]
    means = []
    for language in LANGUAGES:
        expected = by_section(run.items.filter(config=language), FILTERED)
        for section, accuracy in expected.items():
            found = run.estimate("accuracy", config=language, section=section)
            assert found.value == pytest.approx(accuracy)
        assert run.estimate("accuracy", config=language).value == pytest.approx(fmean(expected.values()))
        means.append(fmean(expected.values()))
    assert run.headline.value == pytest.approx(fmean(means))


@pytest.mark.heavy
def test_translation_has_subsets_of_its_own_and_stays_out_of_the_average(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    run = score("multilingual", multilingual(tmp_path / "hub", pairs))
    for level in ("hard", "easy"):
        subset = f"translation-de-en-{level}"
        assert run.estimate("accuracy", config="translation", subset=subset).n == 8
    assert run.names("section", config="translation") == []
    assert run.estimate("accuracy", config="translation").value == pytest.approx(
        fmean(right(run.items.filter(config="translation")))
    )
    assert run.estimate("pooled_accuracy").n == len(LANGUAGES) * len(SUBSETS) * 3
    without = score("multilingual", tmp_path / "hub", configs=LANGUAGES)
    assert without.headline.value == run.headline.value
    alone = score("multilingual", tmp_path / "hub", configs=["translation"])
    headings = [column.text for column in columns_of(alone)]
    assert headings == ["overall", "translation", "translation-de-en-easy", "translation-de-en-hard"]
    assert [alone.at(column.key).n for column in columns_of(alone)] == [0, 16, 8, 8]


def test_a_language_that_lacks_a_section_makes_the_average_missing(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path
) -> None:
    multilingual(tmp_path / "hub", pairs, LANGUAGES[:1])
    rows = [row | {"id": place, "source": "hep-go"} for place, row in enumerate(pairs(4))]
    write(tmp_path / "hub/ces_Latn/test.parquet", rows)
    run = score("multilingual", tmp_path / "hub")
    assert run.estimate("accuracy", config="ces_Latn").value is None
    assert run.estimate("accuracy", config="ces_Latn", section="Chat").value is None
    assert (run.headline.value, run.headline.low) == (None, None)
    assert run.estimate("accuracy", config="arb_Arab").value is not None


@pytest.mark.parametrize("path", ["filtered.parquet", "data/filtered-00000-of-00001.parquet"])
def test_rewardbench_as_published(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path, path: str
) -> None:
    rows = pairs(len(SUBSETS) * 2)
    for place, row in enumerate(rows):
        row |= {"id": place + 30, "subset": SUBSETS[place % len(SUBSETS)], "chosen_model": "a"}
    write(tmp_path / "hub" / path, rows)
    if path.startswith("data/"):
        write(tmp_path / "hub/data/raw-00000-of-00001.parquet", pairs(3))
    run = score("reward-bench", tmp_path / "hub")
    assert ids_of(run.items, "default") == [str(place + 30) for place in range(len(rows))]
    weights = {
        name: {k: int(v) for k, v in own.items()} for name, own in known_benchmarks()["reward-bench"].sections.items()
    }
    expected = by_section(run.items, weights)
    assert run.headline.value == pytest.approx(fmean(expected.values()))
    assert run.headline.value != pytest.approx(value(run, "pooled_accuracy"))


def test_the_weights_are_the_counts_of_the_tables_with_mathematics_as_heavy_as_code() -> None:
    known = known_benchmarks()
    assert known["multilingual"].sections == FILTERED
    for name, counts, code in (("multilingual", [296, 407, 736], 983), ("reward-bench", [358, 456, 740], 984)):
        sums = {section: sum(weights.values()) for section, weights in known[name].sections.items()}
        assert [sums[section] for section in ("Chat", "Chat Hard", "Safety")] == counts
        reasoning = known[name].sections["Reasoning"]
        assert (
            reasoning["math-prm"] == sum(weight for subset, weight in reasoning.items() if subset != "math-prm") == code
        )


def refusing(groups: Sequence[Group]) -> list[list[float]]:
    """Right in all but the items where one should respond."""
    return [[1.0, 2.0] if "respond" in group.prompt[-1]["content"] else [2.0, 1.0] for group in groups]


@pytest.mark.parametrize(
    ("benchmark", "options", "safety"),
    [
        # The counts of the data: 740 items, of which 250 are xstest-should-respond.
        ("reward-bench", {}, (740 - 250) / 740),
        # The constants of its code, with 154 of them.
        ("reward-bench", {"legacy": True}, (740 - 154) / 740),
        ("multilingual", {"legacy": True}, (740 - 154) / 740),
        # The counts of the filtered data: 736 items, of which 247 are.
        ("multilingual", {}, (736 - 247) / 736),
    ],
)
def test_safety_is_weighed_by_the_true_counts_and_by_the_constants_of_the_code_if_asked(
    score: Callable[..., Run], tmp_path: Path, benchmark: str, options: dict[str, Any], safety: float
) -> None:
    column, config = ("source", "fra_Latn") if benchmark == "multilingual" else ("subset", "filtered")
    rows = [
        {"id": number, "prompt": f"{subset}?", "chosen": "a", "rejected": "b", column: subset}
        for number, subset in enumerate(SUBSETS)
    ]
    file = f"{config}/test.jsonl" if benchmark == "multilingual" else "filtered.jsonl"
    run = score(benchmark, write(tmp_path / "d" / file, rows).parents[benchmark == "multilingual"], refusing, **options)
    place = {"config": "default" if benchmark == "reward-bench" else config, "section": "Safety"}
    assert run.estimate("accuracy", **place).value == pytest.approx(safety)
    assert run.headline.value == pytest.approx((3 + safety) / 4)


@pytest.mark.heavy
@pytest.mark.parametrize("fetched", [True, False])
def test_a_limit_applies_to_each_config_alike(
    score: Callable[..., Run], pairs: Callable[..., Rows], tmp_path: Path, fetched: bool
) -> None:
    multilingual(tmp_path / "hub", pairs)
    english = pairs(len(SUBSETS) * 3, seed=7)
    for place, row in enumerate(english):
        row |= {"id": 4000 - place, "subset" if fetched else "source": SUBSETS[place % len(SUBSETS)]}
    path = tmp_path / ("english/filtered.parquet" if fetched else "hub/eng_Latn/test.parquet")
    write(path, english[::-1])
    options = {"english": str(path.parent)} if fetched else {}
    run = score("multilingual", tmp_path / "hub", limit=2, **options)
    assert run.config.data.rows == dict.fromkeys(sorted([*LANGUAGES, "eng_Latn", "translation"]), 2)
    assert run.config.data.limit == 2
    assert set(ids_of(run.items, "eng_Latn")) == set(ids_of(run.items, "fra_Latn")) == {"3999", "4000"}
