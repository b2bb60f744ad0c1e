"""`report --plots`: which figures there are, that they say nothing untrue, and that everybody can read them."""

import random
import re
import subprocess
import sys
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest
from commands import environment
from drawn_figures import check_texts, dots, report_figures, said, values, whiskers, words
from figure_runs import SUBSETS
from made_runs import by, decision, run_of, with_items
from pluralbench.errors import EvaluationError
from pluralbench.metrics.frame import METRICS
from pluralbench.metrics.metric import MetricKey
from pluralbench.reports.figures import fonts, languages
from pluralbench.reports.figures.draw import draw
from pluralbench.reports.figures.files import save
from pluralbench.reports.figures.fonts import unrendered
from pluralbench.reports.figures.series import series_of
from pluralbench.reports.figures.style import drawing
from pluralbench.results import Run
from pluralbench_measures.bootstrap import Estimate
from pluralbench_schemas import ENGLISH, LANGUAGES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SECTIONS = ("Chat", "Chat Hard", "Safety", "Reasoning")
ALL = tuple(code for code in LANGUAGES if code != ENGLISH)
SOME = ("arb_Arab", "spa_Latn", "zho_Hans")
NAMES = ("org/Reward-V2-Llama-3.2-1B", "org/Nemotron-70B-Reward-with-a-very-long-name-v0.2", "gpt-5-mini", "org/aya-8b")
ENGLISH_ONLY = ["Hindi", "Japanese", "Korean", "Chinese (simplified)", "Chinese (traditional)"]
needs_noto = pytest.mark.usefixtures("_noto")
WAYS = ("de-en", "en-de", "en-zh", "zh-en")
OUTCOMES = ("win", "loss", "tie", "invalid")
WIN, LOSS = pl.lit("win"), pl.lit("loss")
ITEMS = 40  # in each language


@pytest.fixture
def _noto() -> None:
    if unrendered(LANGUAGES):
        pytest.skip("fonts-noto-core and -cjk are not installed")


@cache
def a_run(number: int, codes: tuple[str, ...], *, english: bool = True, model: str | None = None) -> Run:
    """A run on the same items in these languages, and on translations."""
    draw_ = random.Random(number)
    places = [(code, SUBSETS[n % 4], f"q{n}") for code in (*[ENGLISH] * english, *codes) for n in range(ITEMS)]
    translated = [f"translation-{way}-{level}" for way in WAYS for level in ("easy", "hard")]
    places += [("translation", subset, f"{subset} {n}") for subset in translated for n in range(12)]
    weights = [draw_.uniform(4, 9), 3, 0.5, 0.5]
    rows = [
        decision(0, draw_.choices(OUTCOMES, weights)[0], config=config, subset=subset, id=item, cluster=item)
        for config, subset, item in places
    ]
    name = model or (NAMES[number] if number < len(NAMES) else f"org/model-{number}")
    return run_of(rows, "multilingual", model=name, path=f"runs/{number}")


def several(models: int, codes: tuple[str, ...] = ALL, *, english: bool = True) -> list[Run]:
    return [a_run(number, codes, english=english) for number in range(models)]


WHOLE = by(None) | by("config")
"""The rows of whole runs and of configs."""


def kept(run: Run, rows: pl.Expr) -> Run:
    """A run of which these rows of the metrics are left."""
    return replace(run, metrics=run.metrics.filter(rows))


def at(metric: str, **dimensions: Any) -> pl.Expr:
    """The row of a number in the metrics."""
    key = MetricKey(metric, **dimensions)._asdict()
    return pl.all_horizontal(pl.col(name).eq_missing(pl.lit(own, METRICS[name])) for name, own in key.items())


def put(run: Run, rows: pl.Expr, *numbers: float | None) -> Run:
    """A run that has this value and these bounds in some rows of its metrics."""
    columns = zip(("value", "low", "high"), numbers, strict=True)
    new = {name: pl.when(rows).then(pl.lit(number, pl.Float64)).otherwise(name) for name, number in columns}
    return replace(run, metrics=run.metrics.with_columns(**new))


def drawn(runs: Sequence[Run], stem: str) -> "Figure":
    return report_figures(runs, stem)[stem]


def value(found: Estimate) -> float:
    assert found.value is not None
    return found.value


@pytest.fixture
def no_more_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No font but the one that matplotlib brings."""
    monkeypatch.setattr(fonts, "_installed", list)
    monkeypatch.setattr(fonts, "_newly_installed", list)


@pytest.mark.heavy
def test_figures_are_those_that_have_data(tmp_path: Path) -> None:
    paths = draw(several(3, SOME), tmp_path / "new" / "plots")
    stems = ("forest_multilingual", *languages.FIGURES)
    assert paths == [tmp_path / "new" / "plots" / f"{stem}.{form}" for stem in stems for form in ("png", "svg")]
    runs = several(3, SOME, english=False)
    assert {*report_figures(runs)} == {"forest_multilingual", "languages", "dimensions", "translation"}
    bare = [kept(run, WHOLE) for run in runs]
    assert {*report_figures(bare)} == {"forest_multilingual", "languages"}
    empty = kept(a_run(0, SOME, english=False), pl.col("metric").str.starts_with("pooled"))
    with pytest.raises(EvaluationError, match="no run has a number"):
        draw([empty], tmp_path / "p")


@pytest.mark.heavy
def test_threads_that_draw_at_once_make_the_same_bytes(tmp_path: Path) -> None:
    some = WHOLE & pl.col("metric").is_in(["overall", "accuracy"])
    runs = [kept(run, some) for run in several(1, SOME)]
    with ThreadPoolExecutor() as threads:
        made = list(threads.map(lambda name: draw(runs, tmp_path / name), ("c", "d")))
    assert len({tuple(path.read_bytes() for path in paths) for paths in made}) == 1


def with_gaps() -> list[Run]:
    """Three runs, the first with a gap in everything, and Turkish in none."""
    gaps = at("accuracy", family="Turkic")
    gaps |= at("accuracy", config="tur_Latn") | at("kappa", config="tur_Latn")
    first, *others = (put(run, gaps, None, None, None) for run in several(3))
    own = at("overall") | at("variance") | at("kappa", config="hin_Deva")
    own |= at("drop", section="Safety")
    own |= at("accuracy", config="translation", subset="translation-de-en-easy")
    return [kept(put(first, own, None, None, None), ~at("accuracy", config="hin_Deva")), *others]


@pytest.mark.heavy
def test_what_is_missing_is_a_dash_and_never_a_number() -> None:
    complete, gaps = report_figures(several(3)), report_figures(with_gaps())
    missing = {"languages": 1 + 1 + 1 + 3, "dimensions": 1, "translation": 1, "drop": 1, "consistency": 1 + 3}
    for stem, number in missing.items():
        assert words(complete[stem]).split("\n").count("–") == 0
        assert words(gaps[stem]).split("\n").count("–") == number
        assert "–: missing." in said(gaps[stem])
    assert "0.0" not in words(gaps["languages"]).split("\n")
    for stem, number in (("translation", 1), ("drop", 1), ("consistency", 4)):
        assert dots(complete[stem]) - dots(gaps[stem]) == number
    shown = said(gaps["english_and_multilingual"])
    assert "No point, since a value is missing: Reward-V2-Llama-3.2-1B." in shown
    assert "Pearson" not in shown
    hatched = [patch for patch in gaps["languages"].axes[0].patches if patch.get_hatch()]
    assert len(hatched) == missing["languages"]


@pytest.mark.heavy
def test_cells_and_their_order_are_those_of_the_metrics() -> None:
    runs = several(12)
    figure = drawn(runs, "languages")
    best = sorted(runs, key=lambda run: -value(run.headline))[:10]
    order = sorted(
        ALL, key=lambda code: (-fmean(100 * value(run.estimate("accuracy", config=code)) for run in best), code)
    )
    names = [label.get_text().split("\n")[0] for label in figure.axes[0].get_xticklabels()]
    assert names == ["Mean", *(LANGUAGES[code].name for code in order), "Variance"]
    written = {tuple(round(p - 0.5, 3) for p in text.get_position()): text.get_text() for text in figure.axes[0].texts}
    assert len(written) == 10 * (len(ALL) + 2)
    for row, run in enumerate(best):
        assert written[0, row] == f"{100 * value(run.headline):.1f}"
        for place, code in enumerate(order):
            assert written[round(1.2 + place, 3), row] == f"{100 * value(run.estimate('accuracy', config=code)):.1f}"
        assert written[1.5 + len(ALL), row] == f"{run.estimate('variance').value:.1f}"
    assert "the best 10 of 12 models" in words(figure)


def test_dots_and_whiskers_are_those_of_the_metrics() -> None:
    runs = sorted(several(3, SOME), key=lambda run: -value(run.headline))
    ax = drawn(runs, "drop").axes[0]
    found = [run.estimate("drop", section=name) for name in SECTIONS for run in runs]
    found += [run.estimate("drop") for run in runs]
    assert values(ax, upright=True) == [100 * value(one) for one in found]
    assert whiskers(ax, upright=True) == [[100 * (one.low or 0.0), 100 * (one.high or 0.0)] for one in found]


@pytest.mark.parametrize(("width", "least"), [(0.002, 5), (0.06, 24)])
def test_small_differences_from_english_look_small(width: float, least: float) -> None:
    drops = (pl.col("metric") == "drop") & pl.col("config").is_null()
    run = put(a_run(0, SOME), drops, 0.001, 0.001 - width / 2, 0.001 + width / 2)
    figure = drawn([run], "drop")
    low, high = figure.axes[0].get_ylim()
    assert low < 0 < high
    assert high - low >= least
    with drawing():
        labels = [label.get_text() for label in figure.axes[0].get_yticklabels()]
    assert "English: 0" in labels
    assert f"Their median width is {100 * width:.1f} points." in said(figure)


@pytest.mark.heavy
def test_models_of_different_languages_are_pointed_out() -> None:
    alike, different = report_figures(several(2, SOME)), report_figures([a_run(0, SOME), a_run(1, ALL)])
    assert [stem for stem in languages.FIGURES if stem not in alike] == ["instances"], "it needs three models"
    assert "cover different languages" not in words(alike["languages"])
    for stem in ("languages", "english_and_multilingual", "dimensions", "drop"):
        assert "cover different languages" in said(different[stem])
    assert "Class 5 (1–4)" in words(different["dimensions"])
    assert "Class 0 (" not in words(different["dimensions"])


def test_correlations_need_three_models_that_differ() -> None:
    runs = several(3, SOME)
    alike = [put(run, at("overall"), 0.7, 0.68, 0.72) for run in runs]
    found = [words(drawn(some, "english_and_multilingual")) for some in (runs, runs[:2], alike)]
    assert re.search(r"Pearson's r = -?\d\.\d\d,\sSpearman's ρ = -?\d\.\d\d", found[0])
    assert [("Pearson" in text, "Spearman" in text) for text in found[1:]] == [(False, False)] * 2


@pytest.mark.heavy
def test_no_text_of_many_models_and_languages_lies_on_another() -> None:
    for stem, figure in report_figures(several(12)).items():
        check_texts(figure, stem)


@pytest.mark.heavy
@needs_noto
def test_every_language_is_also_named_in_its_own_script() -> None:
    made = report_figures(several(3), "languages", "consistency")
    for code in ALL:
        for stem in ("languages", "consistency"):
            assert LANGUAGES[code].autonym in words(made[stem])
    labels = made["consistency"].axes[0].get_yticklabels()
    families = {label.get_text().split("  ")[0]: label.get_fontfamily() for label in labels}
    assert families["Arabic"] == ["DejaVu Sans", "sans-serif"]
    assert families["Hindi"][0] == "DejaVu Sans"
    assert families["Hindi"][1].startswith("Noto Sans")
    assert families["Chinese (traditional)"] != families["Chinese (simplified)"], "each has its own forms of characters"


@pytest.mark.heavy
def test_a_language_that_no_font_has_is_named_in_english(no_more_fonts: None, tmp_path: Path) -> None:
    assert unrendered(ALL) == ENGLISH_ONLY
    assert unrendered(["arb_Arab", "xyz_Xyzz", ENGLISH]) == []
    runs = several(1, ("hin_Deva", "jpn_Jpan", "kor_Hang", "zho_Hans", "zho_Hant", "arb_Arab"))
    draw(runs, tmp_path)  # a glyph that is missing would be a warning, and so an error
    labels = [label.get_text() for label in drawn(runs, "consistency").axes[0].get_yticklabels()]
    assert set(ENGLISH_ONLY) <= set(labels)
    assert "Arabic  العربية" in labels


@pytest.fixture
def without_devanagari(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """matplotlib's list of fonts as it was before one for Hindi was installed."""
    from matplotlib.font_manager import fontManager

    old = [font for font in fontManager.ttflist if ord("ह") not in fonts._characters(font.fname, font.index)]
    monkeypatch.setattr(fontManager, "ttflist", old)
    fonts._newly_installed.cache_clear()
    yield
    fonts._newly_installed.cache_clear()


@needs_noto
def test_fonts_installed_since_matplotlib_last_looked_are_found(without_devanagari: None) -> None:
    assert unrendered(["hin_Deva"]) == []


def test_a_language_that_is_not_known_is_its_code() -> None:
    run = a_run(0, SOME)
    run = replace(run, metrics=run.metrics.with_columns(pl.col("config").replace("spa_Latn", "xyz_Xyzz")))
    assert "xyz_Xyzz" in words(drawn([run], "languages"))


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a/$x$ and $", "$x$ and $"),
        ("a/x_{β}\nnew", "x_{β} new"),
        ("模型/报酬-v2\x07", "??-v2?"),
        ("m" * 300, "m" * 20 + "…" + "m" * 15),
    ],
)
def test_a_models_name_is_only_a_name(name: str, shown: str, no_more_fonts: None, tmp_path: Path) -> None:
    run = a_run(0, SOME, model=name)
    figure = drawn([run, a_run(1, SOME)], "drop")
    with drawing():
        assert save(figure, tmp_path, "drop")
    assert series_of([run])[0].label == shown


def kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """As the books have it."""
    n = len(first)
    same = sum(a == b for a, b in zip(first, second, strict=True)) / n
    chance = sum((first.count(label) / n) * (second.count(label) / n) for label in set(first))
    return None if chance == 1 else (same - chance) / (1 - chance)


def test_the_kappa_of_an_item_is_over_the_models_that_labeled_it_twice() -> None:
    runs = several(6, SOME)
    labels = [
        {(config, item): outcome for config, item, outcome in run.items.select("config", "id", "outcome").iter_rows()}
        for run in runs
    ]
    expected = []
    for code in SOME:
        for item in (f"q{number}" for number in range(ITEMS)):
            both = [(own[code, item], own[ENGLISH, item]) for own in labels]
            valid = [pair for pair in both if "invalid" not in pair]
            if len(valid) >= 3:
                expected.append(kappa([a for a, _ in valid], [b for _, b in valid]))
    counts = languages._labels(series_of(runs)).select(pl.col("^n_.*$")).to_numpy()
    found, undefined = languages._kappas(counts)
    defined = sorted(value for value in expected if value is not None)
    assert sorted(found) == pytest.approx(defined)
    assert undefined == len(expected) - len(defined)
    note = said(drawn(runs, "instances"))
    assert f"{len(defined)} items in 3 languages" in note
    assert ("undefined" in note) == (undefined > 0)


def test_a_kappa_that_is_undefined_is_counted_and_not_drawn() -> None:
    alike, opposed, perfect = [3, 0, 0, 3, 0, 0, 3], [3, 0, 0, 0, 0, 3, 0], [2, 1, 0, 2, 1, 0, 3]
    found, undefined = languages._kappas(np.array([alike, opposed, perfect]))
    assert (found.tolist(), undefined) == ([0.0, 1.0], 1)
    runs = several(3, SOME)
    for number, run in enumerate(runs):
        lost = (pl.col("id") == "q0") & (number == 0)
        runs[number] = with_items(run, run.items.with_columns(outcome=pl.when(lost).then(LOSS).otherwise(WIN)))
    figure = drawn(runs, "instances")
    assert sum(patch.get_height() for patch in figure.axes[0].patches) == len(SOME)  # type: ignore[attr-defined]
    assert f"Not shown: {len(SOME) * (ITEMS - 1)} with undefined kappa" in said(figure)
    alone = [with_items(run, run.items.with_columns(outcome=WIN)) for run in runs]
    assert not report_figures(alone, "instances")


@pytest.mark.heavy
def test_the_module_is_cheap_to_import() -> None:
    code = "import sys, pluralbench.reports.figures.draw; sys.exit(bool({'matplotlib', 'scipy'} & {*sys.modules}))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.heavy
def test_a_command_prints_nothing_of_a_home_that_cannot_be_written(tmp_path: Path) -> None:
    home = tmp_path / "file"  # no folder can be made in it, not even by root
    home.touch()
    code = "from pluralbench_runs import run; run(lambda: __import__('matplotlib'), 'pluralbench')"
    unset = dict.fromkeys(("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "")
    env = environment({"HOME": str(home), **unset})
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
