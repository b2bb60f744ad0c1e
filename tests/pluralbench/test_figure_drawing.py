"""The drawing function: what is missing, what is few, names in every script, and fonts."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from commands import environment
from drawn_figures import check_texts, draw, drawn, markers, words
from figure_runs import benchmark_run, chinese_runs, language_run
from pluralbench.reports.figures import fonts
from pluralbench.reports.figures.chart import Chart, Mark, Panel, Point
from pluralbench.reports.figures.files import write
from pluralbench.reports.figures.fonts import unrendered
from pluralbench.reports.figures.report import figures_of, font_notes
from pluralbench.reports.figures.series import series_of, series_of_judges
from pluralbench.reports.figures.theme import PAPER
from pluralbench_schemas import ENGLISH, LANGUAGES

ALL = tuple(code for code in LANGUAGES if code != ENGLISH)
ENGLISH_ONLY = ["Hindi", "Japanese", "Korean", "Chinese (simplified)", "Chinese (traditional)"]
ONE, TWO = series_of_judges({"one": None, "two": None})
needs_noto = pytest.mark.usefixtures("_noto")


@pytest.fixture
def _noto() -> None:
    if unrendered(LANGUAGES):
        pytest.skip("fonts-noto-core and -cjk are not installed")


@pytest.fixture
def no_more_fonts(monkeypatch: pytest.MonkeyPatch) -> None:
    """No font but the one that matplotlib brings."""
    monkeypatch.setattr(fonts, "_family", lambda sign, wanted="": None)


def forget_fonts() -> None:
    fonts._newly_installed.cache_clear()
    fonts._family.cache_clear()


def of_panel(*marks: Mark, **options: Any) -> Any:
    return drawn({"chart": Chart("A title", [Panel(marks, **options)])})["chart"]


@pytest.mark.parametrize("upright", [False, True])
def test_a_missing_value_is_a_dash_and_one_of_few_is_hollow(upright: bool) -> None:
    figure = of_panel(
        Mark("row", Point(50.0, 40.0, 60.0), ONE),
        Mark("row", Point(), TWO),
        Mark("other", Point(70.0, few=True), ONE),
        upright=upright,
    )
    shown = words(figure)
    assert "–: missing." in shown
    assert "Hollow: fewer than 10 prompts or users." in shown
    assert "Whiskers: 95% intervals." in shown
    at = int(upright)
    values = {dots.get_markerfacecolor() == PAPER: [*dots.get_data()[at]] for dots in markers(*figure.axes)}
    assert values == {False: [50.0], True: [70.0]}
    [whisker] = [path.vertices[:, at].tolist() for one in figure.axes[0].collections for path in one.get_paths()]
    assert whisker == [40.0, 60.0]
    check_texts(figure, "chart")


def test_a_line_joins_no_value_that_is_missing_or_of_few() -> None:
    points = [Point(1.0), Point(2.0, few=True), Point(3.0), Point(), Point(5.0)]
    figure = of_panel(*(Mark(f"{n}", one, ONE) for n, one in enumerate(points)), upright=True, joined=True)
    [line] = [line for line in figure.axes[0].lines if line not in markers(*figure.axes)]
    assert np.isfinite(line.get_ydata()).tolist() == [True, False, True, False, True]


@pytest.mark.parametrize(("width", "least"), [(0.2, 5), (6.0, 18)])
def test_small_differences_look_small(width: float, least: float) -> None:
    figure = of_panel(Mark("row", Point(0.1, 0.1 - width / 2, 0.1 + width / 2), ONE), lines={0: "--"})
    low, high = figure.axes[0].get_xlim()
    assert low < 0 < high
    assert high - low >= least


@pytest.mark.heavy
def test_many_series_have_no_whiskers_and_fit_on_a_page() -> None:
    models = series_of_judges(dict.fromkeys(f"org/model-{n}" for n in range(20)))
    figure = of_panel(*(Mark(f"row {row}", Point(50.0, 40.0, 60.0), one) for row in range(25) for one in models))
    assert "Intervals: see the tables." in words(figure)
    check_texts(figure, "chart")


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("a/$x$ and $", "$x$ and $"),
        ("a/x_{β}\nnew", "x_{β} new"),
        ("模型/报酬-v2\x07", "??-v2?"),
        ("m" * 300, "m" * 18 + "…" + "m" * 17),
    ],
)
def test_a_models_name_is_only_a_name(name: str, shown: str, no_more_fonts: None, tmp_path: Path) -> None:
    run = language_run(0, ("arb_Arab",), model=name)
    assert series_of([run])[0].label == shown
    assert write({"own": figures_of([run, language_run(1, ("arb_Arab",))])["consistency"]}, tmp_path)


@pytest.mark.heavy
@needs_noto
def test_languages_and_categories_are_named_in_their_own_script() -> None:
    figure = drawn({"own": figures_of([language_run(0)])["consistency"]})["own"]
    assert all(LANGUAGES[code].autonym in words(figure) for code in ALL)
    labels = figure.axes[0].get_yticklabels()
    families = {label.get_text(): label.get_fontfamily() for label in labels}
    assert families["Arabic العربية"] == ["DejaVu Sans", "sans-serif"]
    assert families["Hindi हिन्दी"][1].startswith("Noto Sans")
    chinese = {tuple(own) for label, own in families.items() if label.startswith("Chinese")}
    assert len(chinese) == 2, "each has its own forms of characters"
    by_category = drawn({"own": figures_of(chinese_runs(1))["categories_open"]})["own"]
    of_label = {label.get_text(): label.get_fontfamily() for label in by_category.axes[0].get_yticklabels()}
    assert of_label["推理"] == ["DejaVu Sans", "Noto Sans CJK SC", "sans-serif"], "as they are written in China"
    assert font_notes(chinese_runs(1)) == []


@pytest.mark.heavy
def test_names_that_no_font_has_are_in_english(no_more_fonts: None, tmp_path: Path) -> None:
    assert [language.name for language in unrendered(ALL)] == ENGLISH_ONLY
    assert unrendered(["arb_Arab", "xyz_Xyzz", ENGLISH]) == []
    runs = [language_run(0, ("hin_Deva", "jpn_Jpan", "kor_Hang", "zho_Hans", "zho_Hant", "arb_Arab"))]
    consistency = figures_of(runs)["consistency"]
    write({"consistency": consistency}, tmp_path)  # a missing glyph would be a warning, and so an error
    rows = {mark.at for mark in consistency.marks}
    assert rows == {*ENGLISH_ONLY, "Arabic  العربية"}
    runs = chinese_runs(1, renamed={"其他": "我的类别"})
    assert {mark.at for mark in figures_of(runs)["categories_open"].marks} == {
        "Mean of categories", "Reasoning", "Part 1"
    }  # fmt: skip
    [note] = font_notes(runs)
    assert note == (
        "No installed font has all characters of some names, so figures show Creative writing for 创作, Complex "
        "instructions for 复杂指令, Reasoning for 推理, Mathematics for 数学, Comprehension for 理解, Knowledge "
        "questions for 知识问答, Part 1 for 我的类别; install Noto fonts (Debian: fonts-noto-core, fonts-noto-cjk)."
    )
    assert "org/????-???? for org/奖励模型-七十二亿" in font_notes(chinese_runs(3))[0]


@pytest.fixture
def without_devanagari(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """matplotlib's list of fonts as it was before one for Hindi was installed."""
    from matplotlib.font_manager import fontManager

    old = [font for font in fontManager.ttflist if ord("ह") not in fonts._characters(font.fname, font.index)]
    monkeypatch.setattr(fontManager, "ttflist", old)
    forget_fonts()
    yield
    forget_fonts()


@needs_noto
def test_fonts_installed_since_matplotlib_last_looked_are_used(without_devanagari: None) -> None:
    assert unrendered(["hin_Deva"]) == []


@pytest.mark.heavy
def test_threads_that_draw_at_once_make_the_same_bytes(tmp_path: Path) -> None:
    runs = [benchmark_run(0, "reward-bench")]
    with ThreadPoolExecutor() as threads:
        made = list(threads.map(lambda name: draw(runs, tmp_path / name), ("c", "d")))
    assert len({tuple(path.read_bytes() for path in paths) for paths in made}) == 1


@pytest.mark.heavy
def test_figures_are_cheap_to_import_and_quiet_without_a_home(tmp_path: Path) -> None:
    home = tmp_path / "file"  # no folder can be made in it, not even by root
    home.touch()
    code = """
import sys
import pluralbench.reports.figures.report
from pluralbench_runs import run
assert not {"matplotlib", "scipy"} & {*sys.modules}
run(lambda: __import__("matplotlib"), "pluralbench")
"""
    unset = dict.fromkeys(("MPLCONFIGDIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "")
    env = environment({"HOME": str(home), **unset})
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout + done.stderr) == (0, "")
