"""The sample, built by the installed command: no network, no translator, the same content again and again."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import samples
from build_multilingual.masking import mask
from pluralbench_release import diff, read_card
from pluralbench_schemas import MULTILINGUAL_PAIRS, TRANSLATION_PAIRS, validate
from releases import digests_of, rows_of
from samples import Sample

LANGUAGES = ["spa_Latn", "ita_Latn", "por_Latn"]
CONFIGS = [*LANGUAGES, "eng_Latn", "translation"]
TEXTS = ("prompt", "chosen", "rejected")
Run = Callable[..., tuple[int, str]]


@pytest.fixture(scope="module")
def sample() -> Sample:
    """The sample, which the command makes where there is no translator."""
    return samples.sample("build-multilingual")


@pytest.mark.smoke
def test_it_says_what_it_made(sample: Sample) -> None:
    out, output = sample
    for part in ("336 recorded calls, 0 of them new", *CONFIGS, "translation-en-es-easy"):
        assert part in output
    assert sorted(path.name for path in out.parent.iterdir()) == ["multilingual-rewardbench"]


def test_every_config_keeps_to_its_schema_and_shares_its_ids(sample: Sample) -> None:
    english = rows_of(sample[0], "eng_Latn")
    for config in CONFIGS[:-1]:
        frame = validate(rows_of(sample[0], config), MULTILINGUAL_PAIRS, file=config)
        assert frame["language"].unique().to_list() == [config]
        assert frame.select("id", "source", "category", "chosen_model").equals(
            english.select("id", "source", "category", "chosen_model")
        )
    pairs = validate(rows_of(sample[0], "translation"), TRANSLATION_PAIRS, file="translation")
    assert dict(pairs.group_by("subset").len().iter_rows()) == {
        f"translation-{direction}-{level}": 10 for direction in ("en-es", "es-en") for level in ("easy", "hard")
    }


@pytest.mark.parametrize("code", LANGUAGES)
def test_what_must_survive_did(sample: Sample, code: str) -> None:
    english = rows_of(sample[0], "eng_Latn")
    for row, own in zip(english.iter_rows(named=True), rows_of(sample[0], code).iter_rows(named=True), strict=True):
        for name in TEXTS:
            if row["source"].startswith("hep-") and name != "prompt":
                assert own[name] == row[name]
                assert own[f"{name}_calls"] == []
            else:
                assert own[name] != row[name]
                assert own[f"{name}_calls"]
                for _, span in mask(row[name]).spans:
                    assert own[name].count(span) >= 1, (row["id"], name, span)


def test_the_card_says_what_it_is(sample: Sample) -> None:
    card: Any = read_card(sample[0])
    assert [config["config_name"] for config in card["configs"]] == CONFIGS
    assert (card["language"], card["license"]) == (["en", "es", "it", "pt"], "apache-2.0")
    text = (sample[0] / "README.md").read_text(encoding="utf-8")
    for part in ("`apertium` translated 46 English pairs into 3 languages.", "Do not evaluate reward models on them."):
        assert part in text


def test_a_part_of_it_has_the_same_rows(run: Run, sample: Sample, tmp_path: Path) -> None:
    words: list[Any] = ["--language", "ita_Latn", "--no-add-english", "--limit", "1", "--out", tmp_path / "part"]
    assert run(*words)[0] == 0
    assert list(digests_of(tmp_path / "part")) == ["ita_Latn", "translation"]
    part, whole = rows_of(tmp_path / "part", "ita_Latn"), rows_of(sample[0], "ita_Latn")
    assert part.height == 23
    assert part.equals(whole.filter(pl.col("id").is_in(part["id"].to_list())))
    ita = next(table for table in diff(sample[0], tmp_path / "part") if table.config == "ita_Latn")
    assert (len(ita.removed), ita.added, ita.changed) == (23, [], {})
    assert sorted(map(int, ita.removed)) == list(range(1, 46, 2))
