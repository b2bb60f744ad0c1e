"""Colors of the figures: anyone can tell them apart, on white and in the dark, in files and in pages."""

import re
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
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


SEEN = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


CONES = np.array(
    [
        [0.4122214708, 0.5363325363, 0.0514459929],
        [0.2119034982, 0.6806995451, 0.1073969566],
        [0.0883024619, 0.2817188376, 0.6299787005],
    ]
)


OKLAB = np.array(
    [
        [0.2104542553, 0.7936177850, -0.0040720468],
        [1.9779984951, -2.4285922050, 0.4505937099],
        [0.0259040371, 0.7827717662, -0.8086757660],
    ]
)


def oklab(color: str, seen: Any) -> Any:
    return OKLAB @ np.cbrt(CONES @ np.clip(seen @ linear(color), 0, 1))


@pytest.mark.parametrize("kind", SEEN)
def test_series_differ_for_readers_with_and_without_color_blindness(kind: str) -> None:
    seen = {color: oklab(color, SEEN[kind]) for color in COLORS}
    distances = {pair: float(np.linalg.norm(seen[pair[0]] - seen[pair[1]])) for pair in combinations(COLORS, 2)}
    assert min(distances.values()) > (0.13 if kind == "all cones" else 0.08)
