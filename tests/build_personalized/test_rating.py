"""`build-personalized rate`: blind sheets out, ratings in, and the paper's claim tested on its own table."""

import json
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.cli import read_results
from build_personalized.rating.planning import pilot_spread, plan
from build_personalized.rating.recipe import PlanAssumptions, RatingRecipe
from build_personalized.rating.results import compute_results
from build_personalized.rating.study import DIMENSIONS
from build_personalized.rating.tables import ratings_table, report
from commands import refused_with
from pluralbench_studies import ANSWERS, ASSIGNED, PROBLEMS, Answers, Study, StudyError, read_rows
from samples import sample

Run = Callable[..., tuple[int, str]]
RATERS = [word for name in ("an", "bo", "cy") for word in ("--annotator", name)]
# Table 1 of the paper.
PAPER = {
    "chosen": {
        "Art": (4.94, 4.99, 4.89, 4.84),
        "Lifestyle": (4.96, 4.97, 4.95, 4.88),
        "Society": (4.99, 4.98, 4.97, 4.93),
    },
    "rejected": {
        "Art": (4.55, 4.53, 4.39, 1.46),
        "Lifestyle": (4.66, 4.63, 4.55, 1.44),
        "Society": (4.72, 4.50, 4.30, 1.49),
    },
}


@pytest.fixture
def study(run: Run, tmp_path: Path) -> Path:
    """Sheets of the sample's pairs, two raters each."""
    folder = tmp_path / "ratings"
    release = sample("build-personalized").release
    status, output = run("rate", "--release", release, "--export", folder, *RATERS)
    assert status == 0, output
    return folder


def sides(folder: Path) -> dict[str, str]:
    return {row["item"]: row["side"] for row in pl.read_csv(folder / "key.csv").iter_rows(named=True)}


def fill(path: Path, rating: Callable[[str, str], object]) -> None:
    """Fill in a sheet, by item and dimension."""
    sheet = pl.read_csv(path, infer_schema=False)
    filled = {name: [str(rating(item, name)) for item in sheet["item"]] for name in DIMENSIONS}
    sheet.with_columns(**{name: pl.Series(values) for name, values in filled.items()}).write_csv(path)


def fill_all(folder: Path) -> None:
    side = sides(folder)

    def rating(item: str, dimension: str) -> int:
        poor = {"rejected": dimension == "rubric", "check": dimension in {"relevance", "rubric"}}
        return 1 if poor.get(side[item]) else 5 - int(item[0] in "0123" and dimension != "rubric")

    for path in sorted((folder / "sheets").glob("*.csv")):
        fill(path, rating)


def test_sheets_are_blind_and_a_rater_of_a_pair_rates_both_answers(study: Path) -> None:
    key = pl.read_csv(study / "key.csv")
    assigned = pl.read_csv(study / "assigned.csv").join(key, on="item")
    real = assigned.filter(pl.col("side") != "check")
    both = real.group_by("config", "id", "annotator").agg(pl.col("side").sort())
    assert both["side"].to_list() == [["chosen", "rejected"]] * 48
    assert set(real.group_by("item").len()["len"]) == {2}
    assert set(assigned.filter(side="check").group_by("item").len()["len"]) == {3}
    assert {name: assigned.filter(annotator=name).height for name in ("an", "bo", "cy")} == dict.fromkeys(
        ("an", "bo", "cy"), 36
    )
    for path in [*(study / "sheets").iterdir(), *(study / "label_studio").iterdir()]:
        text = path.read_text(encoding="utf-8")
        assert not [word for word in ("chosen", "rejected", "Art_and_Entertainment", "art-01") if word in text]
    sheet = read_rows(study / "sheets/an.csv")
    assert sheet.columns == ["item", "annotator", "question", "answer", "expected", *DIMENSIONS, "remark"]
    side = sides(study)
    shown = [side[item] for item in sheet["item"]]
    assert shown != sorted(shown)
    assert all(text.startswith("• ") for text in sheet["expected"])


def test_ratings_become_table_1_and_the_tests(run: Run, study: Path) -> None:
    fill_all(study)
    status, output = run("rate", "--import", study)
    assert status == 0, output
    result = read_results(study)
    assert result["format"] == "ratings-1"
    assert [(one["annotator"], one["given"], one["answered"]) for one in result["raters"]] == [
        (name, 36, 36) for name in ("an", "bo", "cy")
    ]
    assert [one["checks_seen"]["count"] for one in result["raters"]] == [4, 4, 4]
    rubric = {(one["side"], one["config"]): one["mean"] for one in result["means"] if one["dimension"] == "rubric"}
    assert (rubric["chosen", "all pairs"], rubric["rejected", "all pairs"]) == (5.0, 1.0)
    assert all(one["share"] == 1.0 for one in result["agreement"])
    tests = {test["dimension"]: test for test in result["tests"] if test["config"] == "all pairs"}
    assert [tests["relevance"][name] for name in ("kind", "pairs", "shown")] == ["equivalence", 24, True]
    # All differ by the same, so there is no spread to test by.
    assert [tests["rubric"][name] for name in ("difference", "p_value", "shown")] == [4.0, None, None]
    assert result["claims"][-1]["holds"] is None
    assert "a higher rubric rating of the chosen answers cannot be tested" in output
    assert (study / "results.md").read_text(encoding="utf-8").startswith("# Human ratings\n\n3 raters, 2 per pair")


def test_a_study_under_way_is_read(run: Run, study: Path) -> None:
    refused_with(
        run("rate", "--import", study), f"There are no answers yet in {study / 'sheets'}; fill in the sheets first."
    )
    fill(study / "sheets/bo.csv", lambda _, dimension: len(dimension) % 5 + 1)
    status, output = run("rate", "--import", study)
    assert status == 0, output
    assert "0 of 36: nothing yet" in output
    result = json.loads((study / "results.json").read_text(encoding="utf-8"))
    assert [one["answered"] for one in result["raters"]] == [0, 36, 0]
    with pytest.raises(StudyError, match="no pair whose two answers were both rated by two people"):
        pilot_spread(read_results(study))


def test_what_comes_back_wrong_is_named(run: Run, study: Path) -> None:
    path = study / "sheets/an.csv"
    item = read_rows(path)["item"][2]
    fill(path, lambda one, _: 6 if one == item else 3)
    status, said = run("rate", "--import", study, path)
    assert status == 2
    assert "4 cells cannot be read" in said
    assert f"row 4 (item {item}): the answer '6' to rubric is not one of 1, 2, 3, 4, 5." in said
    fill(path, lambda *_: 4)
    twice = Path(shutil.copy(path, study.parent / "twice.csv"))
    fill(twice, lambda *_: 3)
    status, output = run("rate", "--import", study, path, twice)
    assert (status, "double submission: an, " in output) == (0, True)
    assert {one["mean"] for one in read_results(study)["means"]} == {3.0}
    assert "## Problems\n\n- double submission: an, " in (study / "results.md").read_text(encoding="utf-8")


def test_mistakes_in_one_sentence(run: Run, tmp_path: Path) -> None:
    refused_with(run("rate"), "Give one of --plan, --export FOLDER, --import FOLDER; none given.")
    release = sample("build-personalized").release
    refused_with(run("rate", "--export", tmp_path / "x", "--release", release), "--export also needs --annotator.")
    table = tmp_path / "bare.jsonl"
    table.write_text('{"id": "1", "question": "Q?", "chosen": "a", "rejected": "b"}\n', encoding="utf-8")
    refused_with(
        run("rate", "--export", tmp_path / "x", "--release", table, *RATERS),
        f"{table} has no column `rubric_aspects`; ratings need id, question, rubric_aspects, chosen, rejected, as in "
        "a release of build-personalized.",
    )
    refused_with(
        run("rate", "--plan", "--pilot", tmp_path),
        f"{tmp_path} has no results.json; import the study first: build-personalized rate --import {tmp_path}.",
    )
    assert not (tmp_path / "x").exists()


def exact(mean: float, pairs: int) -> list[int]:
    """So many whole ratings with this mean, to the last digit that the paper prints."""
    total = round(mean * pairs)
    low = total // pairs
    return [low + 1] * (total - low * pairs) + [low] * (pairs - total + low * pairs)


def as_in_the_paper(margin: float, pairs: int = 100) -> dict[str, Any]:
    """The results of a study in which one rater's means are those of the paper."""
    key, rows = [], []
    for side, subsets in PAPER.items():
        for config, means in subsets.items():
            # A chosen answer that is rated low is one of a pair whose rejected answer is rated high.
            given = [exact(mean, pairs)[:: 1 if side == "chosen" else -1] for mean in means]
            for number in range(pairs):
                item = f"{config}-{side}-{number}"
                key.append((item, config, str(number), side))
                rows += [(item, "an", name, str(given[place][number])) for place, name in enumerate(DIMENSIONS)]
    key_frame = pl.DataFrame(key, schema=["item", "config", "id", "side"], orient="row")
    settings = RatingRecipe(annotators=["an"], annotators_per_item=1, data="paper", margin=margin)
    assigned = key_frame.select("item", annotator=pl.lit("an"), kind=pl.lit("first"))
    assert assigned.schema == ASSIGNED
    study = Study(Path(), settings, assigned, key_frame)
    return compute_results(
        study, Answers(pl.DataFrame(rows, schema=ANSWERS, orient="row"), pl.DataFrame(schema=PROBLEMS))
    )


def without_intervals(cells: Iterable[str]) -> tuple[float, ...]:
    return tuple(float(cell.split(" ")[0]) for cell in cells)


def test_the_table_of_the_paper_is_printed_as_it_is() -> None:
    table = ratings_table(as_in_the_paper(1.0))
    rows: dict[str, Any] = {}
    side = ""
    for subset, pairs, *cells in table.iter_rows():
        if not pairs:
            side = subset.removesuffix(":").lower()
        elif subset != "all pairs":
            rows.setdefault(side, {})[subset] = without_intervals(cells)
    assert rows == PAPER


def test_the_claim_of_the_paper_needs_a_margin_beyond_half_a_point() -> None:
    """Society's helpfulness differs by 0.67, and Art's by 0.50, so that half a point does not hold both."""
    half, whole = as_in_the_paper(0.5), as_in_the_paper(1.0)
    assert [claim["holds"] for claim in whole["claims"]] == [True] * 4
    assert {claim["config"]: claim["general_quality"] for claim in half["claims"]} == {
        "Art": False,
        "Lifestyle": True,
        "Society": False,
        "all pairs": False,
    }
    assert [claim["rubric"] for claim in half["claims"]] == [True] * 4
    assert "Society: equal general quality (within 0.5) is not shown" in report(half, [])


def test_a_plan_says_how_many_pairs_the_claim_takes() -> None:
    planned = plan(PlanAssumptions(margin=0.5, difference=0.2, sd_pairs=0.5, sd_raters=1.0, power=0.8))
    assert planned["raters"].to_list() == [1, 2, 3, 5]
    assert planned["pairs"].is_sorted(descending=True)
    assert planned["ratings"].to_list() == [
        2 * raters * pairs for raters, pairs in planned.select("raters", "pairs").rows()
    ]
    assert planned["power"].min() >= 0.8  # type: ignore[operator]
    none = plan(PlanAssumptions(margin=0.5, difference=0.67))
    assert none["pairs"].null_count() == none.height


def test_the_plan_is_told(run: Run) -> None:
    status, output = run("rate", "--plan", "--quality-difference", "0.6")
    assert status == 0
    assert "No number of pairs shows equivalence, because the difference is not within the margin." in output
    assert "In the paper's table 1 general quality differs by 0.27 to 0.67" in output
    refused_with(run("rate", "--plan", "--power", "1.5"), "Recipe of the plan: `power`: Input should be less than 1.")
    refused_with(
        run("rate", "--plan", "--sd-pairs", "0", "--sd-raters", "0"),
        "Both standard deviations are 0, so one pair would be enough; set `--sd-pairs` or `--sd-raters`.",
    )


def test_the_margin_is_set_before_the_study_starts(run: Run, study: Path) -> None:
    again = ("rate", "--release", sample("build-personalized").release, "--export", study, *RATERS)
    assert f"{study}: the same study exists already and is left as it is" in run(*again)[1]
    status, output = run(*again, "--equivalence-margin", "1")
    assert status == 2
    assert "was made with other settings (margin 0.5, now 1.0)" in output
