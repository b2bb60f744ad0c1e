"""Colors of the figures: anyone can tell them apart, on white and in the dark, in files and in pages."""

import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from defusedxml import ElementTree
from drawn_figures import draw
from figure_runs import benchmark_run, with_references
from pluralbench.reports.figures.files import drawing
from pluralbench.reports.figures.report import figures_of
from pluralbench.reports.figures.series import MARKERS, series_of_judges
from pluralbench.reports.figures.theme import BAND, INK, LINE, PAPER, ROLES, SOFT
from pluralbench.reports.html.parts import inlined_figures
from pluralbench_release.figures import COLORS

DARK = {role.light: role.dark for role in ROLES}


def linear(color: str) -> Any:
    from matplotlib.colors import to_rgb

    rgb = np.array(to_rgb(color))
    return np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


def contrast(one: str, other: str) -> float:
    dark, light = sorted(float(linear(color) @ [0.2126, 0.7152, 0.0722]) + 0.05 for color in (one, other))
    return light / dark


def test_series_stand_out_on_white_and_in_the_dark() -> None:
    assert len(set(COLORS)) == 8
    backgrounds = ("#ffffff", PAPER, BAND, "#000000", "#111111", DARK[PAPER], DARK[BAND])
    assert {(color, at) for color in COLORS for at in backgrounds if contrast(color, at) < 3} == set()


def test_ink_is_read_on_paper_in_both_themes() -> None:
    for of in (lambda color: color, DARK.get):
        for text in (INK, SOFT):
            assert all(contrast(str(of(text)), str(of(paper))) >= 4.5 for paper in (PAPER, BAND))
        assert all(contrast(str(of(one)), str(of(other))) > 1.01 for one, other in pairwise((PAPER, BAND, LINE)))


def test_markers_and_lines_go_on_after_eight_colors() -> None:
    looks = [(one.color, one.marker) for one in series_of_judges({f"judge {n:02}": 0.5 for n in range(88)})]
    assert len(set(looks)) == len(COLORS) * len(MARKERS) == 88
    of_first_color = [one for one in series_of_judges({f"j{n:02}": 0.5 for n in range(24)}) if one.color == COLORS[0]]
    assert len({one.marker for one in of_first_color}) == len({one.line for one in of_first_color}) == 3


def test_files_and_pages_follow_the_theme(tmp_path: Path) -> None:
    runs = [with_references(benchmark_run(n, "reward-bench")) for n in range(2)]
    svg = next(path for path in draw(runs, tmp_path) if path.suffix == ".svg").read_text(encoding="utf-8")
    root = ElementTree.fromstring(svg)
    styles = [element.get("style", "") for element in root.iter()]
    used = {color for style in styles for color in re.findall(r"(?:fill|stroke): (#\w{6})", style)}
    assert {INK, SOFT, BAND, PAPER, LINE, *COLORS[:2]} >= used > {INK, SOFT, BAND}, "no white sheet, no black ink"
    texts = [text.get("style", "") for text in root.iter("{http://www.w3.org/2000/svg}text")]
    assert all("fill: " in style for style in texts), "no text is in the reader's default color, which is black"
    (sheet,) = (
        one.text or "" for one in root.iter("{http://www.w3.org/2000/svg}style") if "prefers" in (one.text or "")
    )
    for role in ROLES:
        assert f'[style*="fill: {role.light}"]{{fill:{role.dark} !important}}' in sheet
    with drawing():
        [inlined] = map(str, inlined_figures("key", figures_of(runs)))
    assert not {role.light for role in ROLES} & set(re.findall(r"#\w{6}", inlined))
    assert "fill: var(--ink)" in inlined
    assert "fill: var(--band)" in inlined
