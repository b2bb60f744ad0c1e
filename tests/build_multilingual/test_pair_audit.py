"""What a scorer could go by in the pairs of a release, and the limits that a recipe sets to it."""

import json
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import samples
from build_multilingual.audit import audit, audit_configs
from build_multilingual.build import build
from build_multilingual.recipe import RECIPES, MultilingualRecipe
from pluralbench_release import AuditFailed
from pluralbench_runs import BuildOptions, read_recipe

LONG = "Trocknen Sie die Pfanne sofort ab, und reiben Sie sie mit ein wenig Öl ein."


def pairs(*rows: tuple[str, str, str]) -> pl.DataFrame:
    """Rows of prompt, chosen and rejected."""
    return pl.DataFrame(rows, schema=["prompt", "chosen", "rejected"], orient="row")


def test_what_a_scorer_could_go_by_is_counted() -> None:
    result = audit(
        "deu_Latn",
        pairs(
            ("Wie pflegt man eine Pfanne?", LONG, "Gar nicht."),
            ("wie  pflegt man eine PFANNE?", "Kurz.", LONG + "!"),
            ("Was hilft?", LONG.upper(), LONG),
            ("Was rostet?", "Eisen", "EISEN "),
        ),
    )
    assert {name: result["longer"][name] for name in ("wins", "losses", "ties")} == {"wins": 1, "losses": 2, "ties": 1}
    assert (result["identical"], result["same_prompts"], result["pairs"]) == (2, 1, 4)
    assert result["near_duplicates"]["chosen"] == 1, "one answer is the better one under two prompts"
    assert [
        entry["config"] for entry in audit_configs({"deu_Latn": pairs(("a", "b", "c")), "ita_Latn": pairs()}, None)
    ] == ["deu_Latn"]


def test_a_limit_that_is_broken_names_the_config(tmp_path: Path) -> None:
    limits = {"max_mean_length_gap": 5.0}
    recipe = read_recipe(MultilingualRecipe, RECIPES / "sample.toml", {"audit": limits})
    with pytest.raises(AuditFailed, match=r"The audit of spa_Latn fails: max_mean_length_gap = 5 \(found "):
        build(recipe, BuildOptions(out=tmp_path / "out"))


def test_the_sample_tells_its_audit_on_the_card_and_in_its_statistics() -> None:
    release, _ = samples.sample("build-multilingual")
    result: list[dict[str, Any]] = json.loads((release / "provenance/statistics.json").read_text("utf-8"))["audit"]
    assert [entry["config"] for entry in result] == ["spa_Latn", "ita_Latn", "por_Latn", "eng_Latn", "translation"]
    spanish = pl.read_parquet(release / "data/spa_Latn/test.parquet")
    assert result[0] == {**audit("spa_Latn", spanish)}
    card = (release / "README.md").read_text("utf-8")
    wins, losses = (result[0]["longer"][name] for name in ("wins", "losses"))
    assert f"| spa_Latn    | {wins} of {wins + losses} (" in card
