"""Shards of a run: which items each has, that merged they are the whole run, and what is refused."""

import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pluralbench
import pluralbench.contract
import polars as pl
import pytest
import verbs
from blocks import PAGES, blocks
from chat_server import Reply, serve
from hypothesis import given
from hypothesis import strategies as st
from persona_tables import release, rows
from pluralbench import load_run
from pluralbench.data.clusters import MAX_BLOCK, MIN_BLOCK, Shard, assign_blocks
from pluralbench.errors import RunError
from pluralbench.results import Run
from pluralbench.results.evaluations import EvaluationRunConfig
from pluralbench_calls import Price, read_ledger
from pluralbench_runs import UserError
from verbs import by_text, judging, scoring
from written_tables import write

Rows = list[dict[str, Any]]
Made = Callable[..., Run]
NAMES = [f"prompt {number}" for number in range(12)]
PINNED = [3, 3, 4, 2, 3, 2, 2, 4, 3, 2, 3, 3]
WHERE: Any = {"cost", "shards"}
"""What of a run's result is about the processes that made it."""


def record(run: Run) -> tuple[EvaluationRunConfig, dict[str, Any]]:
    """What was asked, and what was found."""
    return run.config, run.result.model_dump(exclude=WHERE)


def in_shards(make: Made, out: Path, of: int) -> list[Path]:
    """The shards of a run, a directory each."""
    return [make(out=out / f"mine-shard{number}of{of}", shard=f"{number}/{of}").path for number in range(1, of + 1)]


def same(merged: Run, whole: Run) -> None:
    """Items, metrics and settings to the bit, and the record."""
    assert merged.items.schema == whole.items.schema
    assert merged.items.equals(whole.items)
    assert (merged.path / "metrics.json").read_bytes() == (whole.path / "metrics.json").read_bytes()
    assert sorted(path.name for path in merged.path.iterdir()) == sorted(path.name for path in whole.path.iterdir())
    assert record(merged) == record(whole)


def refused(*paths: Path, **options: Any) -> str:
    with pytest.raises(UserError) as caught:
        pluralbench.merge(paths, **options)
    message = str(caught.value)
    assert "\n" not in message
    return message.replace(f"{paths[0].parent}{os.sep}", "")


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("123456")), max_size=30), st.integers(1, 9))
def test_shares_are_disjoint_cover_all_and_keep_together_what_belongs_together(
    items: list[tuple[str, str]], of: int
) -> None:
    frame = pl.DataFrame(items, schema={"cluster": pl.String, "digest": pl.String}, orient="row")
    blocks = assign_blocks(frame)
    shares = [Shard(number + 1, of).select(blocks).arg_true().to_list() for number in range(of)]
    assert sorted(place for share in shares for place in share) == list(range(len(items)))
    assert all(share == sorted(share) for share in shares)
    holder = {place: number for number, share in enumerate(shares) for place in share}
    for column in (0, 1):
        for name in {item[column] for item in items}:
            assert len({holder[place] for place, item in enumerate(items) if item[column] == name}) == 1


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.sampled_from("123456")), max_size=30), st.randoms())
def test_neither_the_order_of_items_nor_names_of_clusters_change_the_blocks(
    items: list[tuple[str, str]], random: Random
) -> None:
    names = [*"abcdef"]
    random.shuffle(names)
    order = random.sample(range(len(items)), len(items))
    renamed = [(names[ord(items[place][0]) - ord("a")], items[place][1]) for place in order]
    first, second = (
        assign_blocks(pl.DataFrame(rows, schema={"cluster": pl.String, "digest": pl.String}, orient="row")).to_list()
        for rows in (items, renamed)
    )
    assert second == [first[place] for place in order]


def test_blocks_are_of_about_the_same_size() -> None:
    for count in (1, 3, 4, 100, 2_000, 20_000):
        frame = pl.DataFrame({"cluster": map(str, range(count)), "digest": map("{:05}".format, range(count))})
        blocks = assign_blocks(frame)
        sizes = blocks.value_counts(sort=True)["count"].to_list()
        assert all(MIN_BLOCK <= size <= MAX_BLOCK for size in sizes[:-1])
        assert len(set(sizes[:-1])) <= 1
        assert blocks.unique(maintain_order=True).to_list() == list(range(len(sizes)))


def test_the_share_of_a_group_is_the_same_for_ever() -> None:
    shares = [next(number for number in range(1, 5) if Shard(number, 4).contains(name)) for name in NAMES]
    assert shares == PINNED


@pytest.mark.parametrize("benchmark", [pytest.param("multilingual", marks=pytest.mark.heavy), "chinese"])
def test_merged_shards_are_the_whole_run(benchmark: str, tmp_path: Path) -> None:
    def make(**options: Any) -> Run:
        return verbs.score(by_text, benchmark=benchmark, data="sample", **options)

    shards = in_shards(make, tmp_path, 3)
    assert [load_run(path, part=True).metrics.height for path in shards] == [0, 0, 0], (
        "which would pass for the whole run's"
    )
    merged = pluralbench.merge(shards[::-1])
    assert merged.path == tmp_path / "mine"
    same(merged, make(out=tmp_path / "whole"))
    assert [(shard.shard, shard.items) for shard in merged.result.shards] == [
        (f"{number}/3", load_run(path, part=True).items.select("config", "id").n_unique())
        for number, path in enumerate(shards, 1)
    ]
    took = [shard.cost.seconds for shard in merged.result.shards if shard.cost is not None]
    assert merged.result.cost is not None
    assert merged.result.cost.seconds == sum(took)


def test_an_empty_shard_loads_no_model_and_is_merged(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    data = write(tmp_path / "p.jsonl", pairs(2))

    def make(**options: Any) -> Run:
        return verbs.score(by_text, benchmark="pairs", data=data, **options)

    shards = in_shards(make, tmp_path, 5)
    assert sorted(load_run(path, part=True).items.height for path in shards)[:3] == [0, 0, 0]
    same(pluralbench.merge(shards), make(out=tmp_path / "whole"))


@pytest.mark.heavy
def test_shards_of_a_model_are_the_whole_run(model: str, pairs: Callable[..., Rows], tmp_path: Path) -> None:
    data = write(
        tmp_path / "p.jsonl", [row | {"chosen": row["chosen"] * (1 + 9 * (row["id"] == "q3"))} for row in pairs(20)]
    )
    longest = {"max_length": 60, "on_overflow": "drop", "device": "cpu", "dtype": "float32"}

    def make(**options: Any) -> Run:
        return verbs.score(model, benchmark="pairs", data=data, **longest, **options)

    merged, whole = pluralbench.merge(in_shards(make, tmp_path, 3)), make(out=tmp_path / "whole")
    assert merged.items.equals(whole.items)
    assert merged.metrics.equals(whole.metrics)
    assert scoring(merged).items_dropped == scoring(whole).items_dropped == 1
    assert verbs.work(merged).conversations == verbs.work(whole).conversations
    measured = {"tolerance", "work", "cost", "shards"}
    assert scoring(merged).model_dump(exclude=measured) == scoring(whole).model_dump(exclude=measured)
    assert merged.result.model == whole.result.model


def by_its_words(body: dict[str, Any], _: int) -> Reply:
    """A judge that says the same whenever it is asked the same; some of it cannot be read."""
    text = json.dumps(body["messages"], ensure_ascii=False)
    number = hashlib.sha256(text.encode()).digest()[0]
    if "[[10]]" in text:
        return Reply(f"[[{1 + number % 10}]]")
    return Reply(["[[A]] [[70]]", "[[B]] [[90]]", "I cannot say."][number % 3])


@pytest.mark.heavy
@pytest.mark.parametrize(
    "how", [{"orders": "both", "attempts": 2}, {"protocol": "pointwise"}], ids=["compared", "rated"]
)
def test_merged_shards_of_a_judge_are_the_whole_run(how: dict[str, Any], tmp_path: Path, pairs: Any) -> None:
    # Two users ask the same about the same answers: one call, which has to be one in shards too.
    table = [row | {"user": f"u{place}"} for place, row in enumerate([*pairs(9), pairs(1)[0] | {"id": "again"}])]
    data = write(tmp_path / "p.jsonl", table)
    with serve(by_its_words) as server:

        def make(**options: Any) -> Run:
            asked = {"base_url": server.base_url, "columns": ("cluster=user",), "price": "1/2"}
            return verbs.judge("judge-1", benchmark="pairs", data=data, **asked, **how, **options)

        whole = make(out=tmp_path / "whole")
        merged = pluralbench.merge(in_shards(make, tmp_path, 2))
    same(merged, whole)
    assert judging(whole).invalid_reasons or how.get("protocol")
    mine, theirs = (read_ledger(run.path / "ledger.parquet").drop("recorded_at") for run in (merged, whole))
    assert mine.equals(theirs)
    cost = merged.result.cost
    assert cost is not None
    assert cost.price == Price(input=1, output=2)
    assert cost.dollars == pytest.approx((judging(whole).prompt_tokens + 2 * judging(whole).completion_tokens) / 1e6)


@pytest.mark.heavy
@pytest.mark.parametrize(
    "how", [{"variables": "none", "orders": "both"}, {"limit": 4, "setting": "certainty"}], ids=str
)
def test_merged_shards_of_a_judge_of_personas_are_the_whole_run(how: dict[str, Any], tmp_path: Path) -> None:
    alike = {"context": "What?", "option_a": "a", "option_b": "b"}  # which without a persona all read the same
    prism = [row | alike for row in rows("prism", 6, ties=1)]
    data = release(tmp_path / "data", prism=prism, opinion_qa=rows("opinion_qa", 5))
    with serve(by_its_words) as server:

        def make(**options: Any) -> Run:
            return verbs.judge_personas("judge-1", data=data, base_url=server.base_url, **how, **options)

        whole = make(out=tmp_path / "whole")
        shards = in_shards(make, tmp_path, 2)
        merged = pluralbench.merge(shards)
    same(merged, whole)
    assert (merged.path / "verdicts.csv").read_bytes() == (whole.path / "verdicts.csv").read_bytes()
    assert not [path for path in shards if (path / "verdicts.csv").exists()], "which would pass for the whole run's"
    users = [set(load_run(path, part=True).items["user"]) for path in shards]
    assert sum(map(len, users)) == len(set().union(*users)), "a person is in one shard"


@pytest.fixture
def shards(tmp_path: Path, pairs: Callable[..., Rows]) -> Callable[..., list[Path]]:
    """`shards("a", 2)`: the directories of the shards of a run."""
    data = write(tmp_path / "p.jsonl", pairs(8))

    def make(name: str, of: int, by: Any = by_text, **options: Any) -> list[Path]:
        return [
            verbs.score(
                by, benchmark="pairs", data=data, out=tmp_path / f"{name}{number}", shard=f"{number}/{of}", **options
            ).path
            for number in range(1, of + 1)
        ]

    return make


def longest(groups: Sequence[pluralbench.contract.Group]) -> list[list[float]]:
    return [[float(len(text)) for text in group.responses] for group in groups]


@pytest.mark.heavy
def test_mixed_up_shards_are_refused(shards: Callable[..., list[Path]], tmp_path: Path) -> None:
    ours, others, fewer = shards("a", 3), shards("b", 3, limit=5), shards("c", 2)
    a1, a2, a3 = ours
    whole = verbs.score(by_text, benchmark="pairs", data=tmp_path / "p.jsonl", out=tmp_path / "whole").path
    copied = shutil.copytree(a2, tmp_path / "copy")
    by_others = shards("d", 3, longest)
    assert refused(a1, others[1], a3) == "a1 and b2 are not shards of one run: settings differ (limit none, now 5)."
    assert refused(a1, by_others[1]).startswith("a1 and d2 are not shards of one run: settings differ (model.name ")
    assert refused(a1) == ("2 of 3 shards are missing (2/3, 3/3); run or resume them, then pass all 3.")
    assert refused(a1, a2, copied, a3) == "a2 and copy are both shard 2/3; pass one of them."
    assert refused(a1, fewer[1]) == ("a1 is shard 1/3 and c2 is shard 2/2; pass shards of one split.")
    assert refused(a1, whole) == "whole is a complete run and not a shard; leave it out."
    assert refused(*ours) == (
        "The shards' directories have no common name for the joined run; choose one with `out=...`."
    )
    write(tmp_path / "p.jsonl", [{"id": "q0", "prompt": "p", "chosen": "c", "rejected": "r"}])
    out = tmp_path / "out"
    assert "p.jsonl has changed since a1 was made" in refused(*ours, out=out)
    (tmp_path / "p.jsonl").unlink()
    assert refused(*ours, out=out).endswith("If the data has moved, give its location with `data=...`.")
    assert not out.exists()
    assert not out.with_name("out.work").exists()


@pytest.mark.parametrize("text", ["0/8", "9/8", "2", "2/0", "a/b", "-1/2", "1/2/3", "", "٢/٨"])
def test_what_is_no_share_is_refused(text: str) -> None:
    with pytest.raises(UserError) as caught:
        verbs.score(by_text, data="sample", shard=text)
    assert str(caught.value) == f"The shard `{text}` is not of the form I/N with I from 1 to N, such as 2/8."


def test_a_shard_never_passes_for_a_whole_run(shards: Callable[..., list[Path]], run: Any, tmp_path: Path) -> None:
    shard, other = shards("a", 2)
    said = (
        "is shard 1/2 of a run and has no metrics; merge all 2 with `pluralbench merge RUN...` and give the merged run."
    )
    with pytest.raises(RunError, match="is shard 1/2 of a run and has no metrics"):
        load_run(shard)
    for words in (
        ["report", shard],
        ["report", shard, "--push", "me/results"],
        ["report", shard, "--model-card", "me/model"],
        ["compare", shard, other],
        ["check", shard],
        ["leaderboard", shard, "--site", tmp_path / "site"],
        ["show", shard],
        ["correlate", shard, other],
    ):
        status, _, errors = run(*words)
        assert (status, said in " ".join(errors.split())) == (2, True), (words, errors)
    status, told, _ = run("merge", shard, other, "--out", tmp_path / "whole")
    assert status == 0
    assert "Merged from 2 shards." in told
    alone, among = (run("report", path, "--format", "csv") for path in (tmp_path / "whole", tmp_path))
    assert alone[0] == 0
    assert among == alone, "in a folder with runs, shards are passed over"


def test_a_shard_goes_on_only_as_that_shard(shards: Callable[..., list[Path]], tmp_path: Path) -> None:
    first, _ = shards("a", 2)
    with pytest.raises(UserError, match=r"made with other settings \(shard 1/2, now 2/2\)"):
        verbs.score(by_text, benchmark="pairs", data=tmp_path / "p.jsonl", out=first, shard="2/2")


def test_shards_of_other_machines_are_merged_but_not_those_of_another_dtype(
    shards: Callable[..., list[Path]], tmp_path: Path
) -> None:
    paths = shards("a", 2)
    changed = json.loads((paths[0] / "run.json").read_text(encoding="utf-8"))
    changed["provenance"]["packages"]["numpy"] = "1.0"
    changed["result"]["model"]["device"] = "cuda"
    (paths[0] / "run.json").write_text(json.dumps(changed), encoding="utf-8")
    merged = pluralbench.merge(paths, out=tmp_path / "whole")
    assert merged.result.model.device == "cuda"
    changed["result"]["model"]["dtype"] = "bfloat16"
    (paths[0] / "run.json").write_text(json.dumps(changed), encoding="utf-8")
    assert refused(*paths, out=tmp_path / "other") == (
        "a1 and a2 have different models (dtype bfloat16 and None); rerun the shards of one of them."
    )


@pytest.mark.heavy
def test_the_script_of_a_job_array_runs_as_its_tasks_do(
    model: str, sample: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Any
) -> None:
    page = next(page for page in PAGES if page.name == "job-array.md")
    (block,) = (one.code for one in blocks(page) if one.language == "bash")
    block = block.replace("of=8", "of=2").replace("--array=1-8", "--array=1-2")
    job, command = tmp_path / "score.sbatch", tmp_path / "bin/pluralbench"
    job.write_text(block, encoding="utf-8")
    command.parent.mkdir()
    command.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n', encoding="utf-8")  # it says what it was called with
    command.chmod(0o755)
    (tmp_path / "path/to").mkdir(parents=True)
    (tmp_path / "path/to/model").symlink_to(model)
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist/personalized-rewardbench").symlink_to(sample)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", f"{command.parent}{os.pathsep}{os.environ['PATH']}")
    for number in "12":
        task = os.environ | {"SLURM_ARRAY_TASK_ID": number}
        called = subprocess.run(["bash", job], env=task, check=True, capture_output=True, text=True)
        assert run(*called.stdout.splitlines())[0] == 0
    merged = pluralbench.merge(sorted((tmp_path / "runs").glob("mine-shard*")), data=str(sample))
    assert merged.path == tmp_path / "runs/mine"
    assert merged.items.height == 24
    assert merged.headline.value is not None
