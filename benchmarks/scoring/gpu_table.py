"""The table of `gpu.py`: a row for each model, workload and strategy."""

from dataclasses import dataclass
from itertools import combinations
from statistics import median
from typing import Any

import torch

FAST, EXACT, SDPA, FLASH = "ours, fast", "ours, exact", "padded loop, SDPA", "padded loop, flash attention 2"
EMBEDDING, TRAINING, VLLM = "ours, embeddings", "ours, training", "vLLM, pooling"
ALONE = "one at a time"
Scores = list[list[float]]
GB = 1e9
# Peak of dense matrix products in half precision, by a part of the GPU's name; the first match counts.
PEAK_FLOPS = {
    "B200": 2250e12,
    "H200": 989e12,
    "GH200": 989e12,
    "H100 PCIe": 756e12,
    "H100 NVL": 835e12,
    "H100": 989e12,
    "A100": 312e12,
    "L40S": 362e12,
    "RTX 6000 Ada": 364e12,
    "RTX 4090": 165e12,
    "RTX A6000": 155e12,
    "A40": 150e12,
    "A10": 125e12,
    "L4": 121e12,
    "V100": 125e12,
    "T4": 65e12,
}


@dataclass(frozen=True)
class Timing:
    """One run of a strategy: seconds, computed tokens, peak memory in bytes, and scores."""

    seconds: float
    computed: int
    memory: int
    scores: Scores


@dataclass(frozen=True)
class Row:
    """A row of the table; `flops` are those of a computed token, three times as many in training."""

    model: str
    workload: str
    strategy: str
    tokens: int
    timings: list[Timing]
    flops: float
    changed: str


def forward_flops(config: Any) -> float:
    """Return the floating-point operations a token of the matrix products of a decoder's layers, without attention."""
    width = config.head_dim or config.hidden_size // config.num_attention_heads
    projections = 2 * width * (config.num_attention_heads + config.num_key_value_heads)
    return float(2 * config.num_hidden_layers * config.hidden_size * (projections + 3 * config.intermediate_size))


def table(made: list[Row], device: str) -> list[str]:
    """Format rows as lines of a Markdown table."""
    card = "" if device == "cpu" else torch.cuda.get_device_name(device)
    peak = next((flops for name, flops in PEAK_FLOPS.items() if name in card), None)
    clock = "CPU s" if device == "cpu" else "s"
    lines = [
        f"| model | workload | strategy | {clock} | tokens a second | times the padded loop | computed / all "
        "| % of the peak | GB | decisions changed |",
        "|---|---|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    loops = {(row.model, row.workload): row.timings for row in made if row.strategy == SDPA}
    for row in made:
        if not row.timings:
            continue
        seconds = median(timing.seconds for timing in row.timings)
        computed = row.timings[0].computed
        pairs = zip(loops[row.model, row.workload], row.timings, strict=False)
        ratio = median(slow.seconds / timing.seconds for slow, timing in pairs)
        share = "" if peak is None else f"{100 * row.flops * computed / seconds / peak:.0f}"
        memory = max(timing.memory for timing in row.timings)
        lines.append(
            f"| {row.model} | {row.workload} | {row.strategy} | {seconds:.3g} | {row.tokens / seconds:,.0f} "
            f"| {'' if row.strategy in {TRAINING, EMBEDDING} else f'{ratio:.2f}'} | {computed / row.tokens:.2f} "
            f"| {share} | {f'{memory / GB:.1f}' if memory else ''} | {row.changed} |"
        )
    return lines


def changed_decisions(expected: Scores, scores: Scores) -> str:
    """Count the decisions between two responses that differ from the expected ones."""
    if not scores:
        return ""
    decided = [
        [(row[a] > row[b]) - (row[a] < row[b]) for row in several for a, b in combinations(range(len(row)), 2)]
        for several in (expected, scores)
    ]
    return f"{sum(left != right for left, right in zip(*decided, strict=True))} of {len(decided[0])}"
