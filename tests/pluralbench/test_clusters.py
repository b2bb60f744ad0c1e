"""Which items belong together: what is told of repeated prompts and pairs, and how it widens intervals."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_runs import scored
from pluralbench import compare, find_benchmark, load_run
from pluralbench.data.clusters import connected_groups
from pluralbench.errors import RunError
from pluralbench_release.similarity import normalized
from verbs import by_length, load_items, score
from written_tables import write

Command = Callable[..., tuple[int, str, str]]
ROWS = 600
PROMPTS = 211


def shared_prompts() -> list[dict[str, Any]]:
    """600 pairs on 211 prompts, whose pairs all go one way: the longer answer is right, or the shorter one."""
    drawn = random.Random(7)
    way = [drawn.random() < 0.7 for _ in range(PROMPTS)]
    rows = []
    for number in range(ROWS):
        prompt = number % PROMPTS
        texts = [f"long answer {number}", f"no {number}"]
        chosen, rejected = texts if way[prompt] else reversed(texts)
        # The third row of a prompt is typed otherwise.
        text = f"What is {prompt}?" if number < 2 * PROMPTS else f" WHAT  is\n{prompt}？ "
        rows.append({"prompt": text, "chosen": chosen, "rejected": rejected, "row": str(number)})
    return rows


def resampled(prompts: list[int], won: list[bool]) -> tuple[float, float]:
    """A plain bootstrap over prompts: the middle 95 % of the accuracies of prompts drawn anew."""
    wins, sizes = (np.zeros(PROMPTS) for _ in range(2))
    for prompt, right in zip(prompts, won, strict=True):
        wins[prompt] += right
        sizes[prompt] += 1
    drawn = np.random.default_rng(3).integers(0, PROMPTS, (4000, PROMPTS))
    low, high = np.quantile(wins[drawn].sum(1) / sizes[drawn].sum(1), [0.025, 0.975])
    return float(low), float(high)


def test_rows_that_share_a_prompt_widen_the_interval_as_a_bootstrap_over_prompts_does(tmp_path: Path) -> None:
    data = write(tmp_path / "p.jsonl", shared_prompts())
    run = scored("pairs", data, tmp_path / "by prompt")
    alone = scored("pairs", data, tmp_path / "by row", columns=("cluster=row",))
    found, narrow = run.headline, alone.headline
    assert (found.clusters, narrow.clusters) == (PROMPTS, ROWS)
    low, high = resampled([n % PROMPTS for n in range(ROWS)], (run.items["outcome"] == "win").to_list())
    assert found.low is not None and found.high is not None and narrow.low is not None and narrow.high is not None  # noqa: PT018
    assert found.low == pytest.approx(low, abs=0.008)
    assert found.high == pytest.approx(high, abs=0.008)
    # By Kish's design effect for rows that say nothing new: 178 prompts of three rows and 33 of two.
    expected = ((178 * 3**2 + 33 * 2**2) / ROWS) ** 0.5
    assert (found.high - found.low) / (narrow.high - narrow.low) == pytest.approx(expected, abs=0.05)


def test_a_report_says_what_was_drawn_and_what_repeats(run: Command, tmp_path: Path) -> None:
    pairs = [("a", "b"), ("A ", " b"), ("b", "a"), ("c", "d")]
    rows = [{"prompt": "Why?", "chosen": one, "rejected": other} for one, other in pairs]
    rows += [{"prompt": "When?", "chosen": "a", "rejected": "b"}]
    data = write(tmp_path / "p.jsonl", rows)
    done = score(by_length, benchmark="pairs", data=data, out=tmp_path / "run")
    clusters = done.config.data.clusters
    assert clusters is not None
    assert clusters.model_dump() == {
        "column": None,
        "clusters": 2,
        "repeated_prompts": 3,
        "repeated_pairs": 1,
        "mirrored_pairs": 1,
    }
    assert load_run(tmp_path / "run").config == done.config
    repeats = "3 items with a repeated prompt, 1 repeated pair, 1 mirrored pair (chosen and rejected swapped)"
    status, told, _ = run("report", tmp_path / "run")
    words = " ".join(told.split())
    assert status == 0
    assert "Intervals are over: 2 prompts of 5 items." in words
    assert f"Repeated in the data: {repeats}." in words


def test_items_of_one_prompt_or_one_id_are_one_cluster_in_all_configs(tmp_path: Path) -> None:
    def row(number: int, prompt: str) -> dict[str, str]:
        return {"id": str(number), "prompt": prompt, "chosen": f"yes {number}", "rejected": "no"}

    write(tmp_path / "d/deu_Latn.jsonl", [row(1, "Eins?"), row(2, "Zwei?"), row(3, "")])
    write(tmp_path / "d/fra_Latn.jsonl", [row(1, "Un?"), row(2, "Deux?"), row(4, "un ?"), row(5, "UN?"), row(6, "")])
    items = load_items(find_benchmark("pairs"), str(tmp_path / "d"), on_empty="keep")
    assert items.frame["cluster"].to_list() == ["1", "2", "3", "1", "2", "4", "1", "6"]
    assert items.frame["person"].to_list() == items.frame["id"].to_list(), "who asks the same is another person"
    assert items.source["clusters"].repeated_prompts == 1


def test_prompts_that_differ_in_case_space_or_form_of_characters_are_one_cluster(tmp_path: Path) -> None:
    drawn = random.Random(2)
    characters = " \t\n\x0b\x0c\r\x1c\x1f\x85\xa0aABß①1İ\x7f"
    texts = ["".join(drawn.choices(characters, k=drawn.randint(1, 5))) for _ in range(2000)]
    first: dict[str, int] = {}
    expected = [first.setdefault(normalized(text) or str(number), number) for number, text in enumerate(texts)]
    rows = [{"prompt": text, "chosen": f"yes {number}", "rejected": "no"} for number, text in enumerate(texts)]
    items = load_items(find_benchmark("pairs"), str(write(tmp_path / "p.parquet", rows)), on_empty="keep")
    assert [int(name.removeprefix("p, row ")) for name in items.frame["cluster"]] == expected
    assert 100 < items.source["clusters"].clusters < 1000


def test_runs_on_other_clusters_are_refused_and_those_with_more_items_are_not(tmp_path: Path) -> None:
    rows = shared_prompts()[:300]
    data = write(tmp_path / "p.jsonl", rows)
    by_prompt = scored("pairs", data, tmp_path / "a")
    by_row = scored("pairs", data, tmp_path / "b", columns=("cluster=row",))
    with pytest.raises(RunError) as refused:
        compare(by_prompt, by_row)
    assert str(refused.value) == (
        f"The clusters of {tmp_path / 'a'} are prompts and those of {tmp_path / 'b'} are values of the column `row`; "
        "rerun one of them with the same cluster column."
    )
    few = scored("pairs", data, tmp_path / "c", limit=PROMPTS)
    assert compare(by_prompt, few).clusters == PROMPTS
    alone = scored("pairs", data, tmp_path / "d", limit=PROMPTS, columns=("cluster=row",))
    assert compare(few, alone).clusters == PROMPTS, "clusters of one item each are the same by any name"


def test_a_prompt_that_only_one_run_knows_to_be_shared_joins_clusters_in_a_comparison(tmp_path: Path) -> None:
    texts = {"deu_Latn": ["Ja?", "Nein?", "Gut?"], "fra_Latn": ["Oui?", "oui?", "Bien?"]}
    for config, prompts in texts.items():
        write(
            tmp_path / "d" / f"{config}.jsonl",
            [{"id": str(n), "prompt": p, "chosen": f"{n}" * (n + 1), "rejected": "xx"} for n, p in enumerate(prompts)],
        )
    both = scored("pairs", tmp_path / "d", tmp_path / "both")
    one = scored("pairs", tmp_path / "d", tmp_path / "one", configs=("deu_Latn",))
    assert (both.config.data.clusters, one.config.data.clusters) != (None, None)
    found = compare(both, one)
    assert (found.decisions, found.clusters) == (3, 2)


KEY = st.none() | st.integers(0, 8)


@given(st.lists(st.tuples(KEY, KEY, KEY), max_size=12))
def test_entries_are_together_where_a_chain_of_shared_keys_leads(rows: list[tuple[int | None, ...]]) -> None:
    entries = [{(kind, key) for kind, key in enumerate(row) if key is not None} for row in rows]
    reach = [{n} for n in range(len(entries))]
    for _ in entries:
        reach = [{k for m in own for k in range(len(entries)) if k == m or entries[k] & entries[m]} for own in reach]
    keys = pl.DataFrame(rows, dict.fromkeys("abc", pl.Int64), orient="row")
    assert connected_groups(keys).to_list() == [min(own) for own in reach]
