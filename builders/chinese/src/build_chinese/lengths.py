"""Size of each config (CHEEMS, table 1), and length and position bias of its annotators (appendix D.3, figure 15)."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from math import inf
from pathlib import Path
from typing import Any

import polars as pl
from pluralbench_measures.agreement import share_of
from pluralbench_release import share_text, text_table
from pluralbench_release.figures import COLORS
from pluralbench_runs import output_file

from build_chinese.audit import Pairs
from build_chinese.rankings import Row

SIZES = "Size: comparisons without ties, and mean lengths in characters"
LENGTHS = "How often the longer response wins, by how many characters longer it is (95 % intervals)"
FIGURE = "figures/longer_response_wins.png"
EDGES = (1, 25, 50, 100, 200, 400, inf)
GRAY = "#8a8a8a"


def size_figures(rows: Sequence[Row], pairs: Pairs) -> dict[str, Any]:
    """Compute the figures of the paper's table 1, JSON.

    Lengths are means in characters; those of chosen and rejected responses are over pairs.
    """
    lengths = [{response["id"]: len(response["content"]) for response in row["responses"]} for row in rows]
    sides = [
        (by_id[better], by_id[worse])
        for by_id, row_pairs in zip(lengths, pairs, strict=True)
        for better, worse in row_pairs
    ]
    return {
        "prompts": len(rows),
        "responses": _mean([len(by_id) for by_id in lengths]),
        "comparisons": len(sides),
        "prompt_length": _mean([len(row["input"]) for row in rows]),
        "chosen_length": _mean([chosen for chosen, _ in sides]),
        "rejected_length": _mean([rejected for _, rejected in sides]),
    }


def strict_marks(rows: Sequence[Row]) -> list[tuple[int, bool]]:
    """For each annotation that prefers one response: by how much the first is longer, and whether it is preferred."""
    marks = []
    for row in rows:
        length = {response["id"]: len(response["content"]) for response in row["responses"]}
        marks += [(length[a] - length[b], mark == "1") for a, b, mark in row["annotations"] if mark != "s"]
    return marks


def length_figures(strict: Sequence[tuple[int, bool]]) -> list[dict[str, Any]]:
    """Compute how often the longer of two responses is preferred, by how much longer it is (`strict_marks`).

    Returns:
        JSON values, one entry per bin: `from` and `to` (None: or more) in characters, and `longer`, a share with
        Wilson's 95 % interval.
    """
    bins = []
    for low, high in pairwise(EDGES):
        longer = [(difference > 0) == first for difference, first in strict if low <= abs(difference) < high]
        to = None if high == inf else int(high) - 1
        bins.append({"from": int(low), "to": to, "longer": share_of(sum(longer), len(longer))})
    return bins


def size_table(sizes: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Format `size_figures` by annotator and config, as in the paper's table 1."""
    names = ["config", "prompts", "responses", "comparisons", "prompt", "chosen", "rejected"]
    lengths = ("prompt_length", "chosen_length", "rejected_length")
    rows = [
        (
            part_name(entry),
            entry["prompts"],
            f"{entry['responses']:.2f}",
            entry["comparisons"],
            *(f"{entry[name]:.2f}" for name in lengths),
        )
        for entry in sizes
    ]
    return text_table(names, rows)


def length_table(annotators: Sequence[Mapping[str, Any]]) -> pl.DataFrame:
    """Format `length_figures` by annotator and config."""
    bins = _used_bins(annotators)
    columns = {"characters longer": [_bin_label(annotators[0]["by_length"][place]) for place in bins]}
    for entry in annotators:
        shares = [entry["by_length"][place]["longer"] for place in bins]
        columns[part_name(entry)] = [share_text(share) for share in shares]
    return pl.DataFrame(columns)


def draw_lengths(annotators: Sequence[Mapping[str, Any]], path: Path) -> None:
    """Draw `length_figures` and the share of wins of the response shown first, by annotator and config."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    bins = _used_bins(annotators)
    figure = Figure(figsize=(9, 4), dpi=150, layout="constrained")
    FigureCanvasAgg(figure)
    axes, places = figure.subplots(1, 2, sharey=True, width_ratios=(7, 2))
    for number, entry in enumerate(annotators):
        shift = (number - (len(annotators) - 1) / 2) * 0.08
        own = [entry["by_length"][place]["longer"] for place in bins]
        for panel, points in (
            (axes, [(place + shift, share) for place, share in enumerate(own) if share["of"]]),
            (places, [(shift, entry["first"])] if entry["first"]["of"] else []),
        ):
            shares = [share["share"] for _, share in points]
            panel.errorbar(
                [x for x, _ in points],
                shares,
                yerr=[
                    [share["share"] - share["low"] for _, share in points],
                    [share["high"] - share["share"] for _, share in points],
                ],
                label=part_name(entry),
                color=COLORS[number % len(COLORS)],
                marker="os^Dv"[number % 5],
                markersize=5,
                capsize=2,
                linewidth=1.2,
            )
    for panel in (axes, places):
        panel.axhline(0.5, color=GRAY, linewidth=0.8, linestyle="--")
        panel.spines[["top", "right"]].set_visible(False)
    places.set_xticks([0], ["shown first"])
    places.set_xlim(-0.5, 0.5)
    axes.set_xticks(range(len(bins)), [_bin_label(annotators[0]["by_length"][place]) for place in bins])
    axes.set_ylim(0, 1)
    axes.set_xlabel("characters by which the longer response is longer")
    axes.set_ylabel("share of marks that prefer it")
    axes.legend(frameon=False, fontsize=8, loc="best")
    path.parent.mkdir(parents=True, exist_ok=True)
    with output_file(path) as new:
        figure.savefig(new, format="png", metadata={"Software": None})


def part_name(entry: Mapping[str, Any]) -> str:
    """Label of a config and its annotator in tables and figures."""
    return f"{entry['config']} ({entry['annotator']})" if entry["annotator"] else str(entry["config"])


def _used_bins(annotators: Sequence[Mapping[str, Any]]) -> list[int]:
    """Indices from the first to the last bin that has marks of any annotator."""
    bins = range(len(annotators[0]["by_length"]))
    used = [place for place in bins if any(entry["by_length"][place]["longer"]["of"] for entry in annotators)]
    return list(range(min(used, default=0), max(used, default=-1) + 1))


def _mean(values: Sequence[int]) -> float:
    return round(sum(values) / len(values), 4) if values else 0.0


def _bin_label(entry: Mapping[str, Any]) -> str:
    return f"{entry['from']} or more" if entry["to"] is None else f"{entry['from']} to {entry['to']}"
