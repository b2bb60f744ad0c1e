"""The command `build-chinese`: the sample through all four steps, and a project of one's own."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
import samples
from build_chinese.tables import pairs_of
from chat_server import Reply, serve
from chinese_project import (
    FIVE,
    TASKS,
    annotated,
    fill,
    judge,
    quality,
    ranked_truly,
    read_rows,
    unlabeled,
    write_prompts,
    write_rows,
)
from pluralbench_calls import read_ledger
from pluralbench_release import LEDGER, RECIPE, content_digest, rebuild
from releases import digests_of

Run = Callable[..., tuple[int, str]]
RANKED = ("open", "human", "preference")
SPLITS = {"open": "test", "human": "test", "preference": "train", "preference_pairs": "train"}
NAME = "chinese-rewardbench"

# What the sample is, for good: change a text, a mark, a reward or a judge's prompt, and these change with it.
DIGESTS = {
    "open": "609406831eacdd9c0dda9f698fc8dfc4d07e5e999d57f65131bdf4bd74fe0975",
    "human": "bf8e27f5cf6017b7981b7b5fac2121490f4b6ca1f718b5931bda5b5dd2f82524",
    "preference": "f81283ebfc44e0c963620b627c6e5d9250df5ba16ea27cfcf958c3c7ca8ee7e4",
    "preference_pairs": "ee6b99a6f23775d0c6e7862979aa7fd8055623593f7c6ea4ba1194af9f887b45",
}


def rows(release: Path, config: str) -> pl.DataFrame:
    return pl.read_parquet(release / f"data/{config}/{SPLITS[config]}.parquet")


@pytest.fixture(scope="module")
def sample() -> tuple[Path, str]:
    """The folder of the sample, not to be changed, and what the bare command wrote."""
    release, said = samples.sample("build-chinese")
    return release.parent, said


@pytest.mark.smoke
def test_all_four_steps_leave_their_files(sample: tuple[Path, str]) -> None:
    dist, said = sample
    left = [f"-annotated.{end}" for end in ("jsonl", "report.json", "review1.csv")] + [
        "-ranked.dropped.jsonl",
        "-ranked.jsonl",
    ]
    assert sorted(path.name for path in dist.iterdir()) == [NAME, *(f"{NAME}{end}" for end in left), f"{NAME}-tasks"]
    for part in (
        f"dist/{NAME}-tasks: 200 tasks on 40 prompts",
        f"dist/{NAME}-annotated.jsonl: 600 judgments on 40 prompts",
        f"dist/{NAME}-ranked.jsonl: 38 prompts ranked",
        "2 prompts dropped: all responses became equal.",
        # Not the ranked file, which has no prompt that was dropped, nor its conflicts.
        f"build-chinese preference --annotated dist/{NAME}-annotated.jsonl",
        f"dist/{NAME}: {NAME} 0.1.0, 300 recorded calls",
        "the reward model agrees",
        f"pluralbench-release verify dist/{NAME}",
        f'datasets.load_dataset("dist/{NAME}", "open", split="test")',
    ):
        assert part in said
    for name in ("figures/longer_response_wins.png", *(f"published/{config}.jsonl" for config in RANKED)):
        assert (dist / NAME / name).is_file()


def test_its_digests_repeat(sample: tuple[Path, str]) -> None:
    release = sample[0] / NAME
    assert digests_of(release) == DIGESTS
    for config in SPLITS:
        assert content_digest(rows(release, config).reverse()) == DIGESTS[config]


def test_the_release_has_the_ranks_that_resolve_gave(sample: tuple[Path, str]) -> None:
    dist = sample[0]
    ranked = {row["id"]: row for row in read_rows(dist / f"{NAME}-ranked.jsonl")}
    for config in RANKED:
        for row in rows(dist / NAME, config).filter(annotated_by="people").iter_rows(named=True):
            own = ranked.pop(row["id"])
            assert {entry["id"]: entry["rank"] for entry in row["rank"]} == own["rank"]
            assert (row["annotations"], row["order"]) == (own["annotations"], own["order"])
            assert row["conflicts"] == sum(own["counts"]["conflicts"].values())
    assert ranked == {}


def test_the_release_has_the_votes_behind_the_ranks_without_names(sample: tuple[Path, str]) -> None:
    dist = sample[0]
    given = {row["id"]: row["votes"] for row in read_rows(dist / f"{NAME}-annotated.jsonl")}
    names = sorted({vote["annotator"] for votes in given.values() for vote in votes})
    assert names == [f"ann-{number}" for number in range(1, 8)]
    numbers = {name: name.replace("ann", "annotator") for name in names}
    for config in RANKED:
        for row in rows(dist / NAME, config).iter_rows(named=True):
            by_people = row["annotated_by"] == "people"
            expected = [vote | {"annotator": numbers[vote["annotator"]]} for vote in given.get(row["id"], [])]
            assert (row["votes"] == expected) is by_people
            assert by_people or {vote["annotator"] for vote in row["votes"]} == {"invented-judge"}
            assert row["votes"] == sorted(row["votes"], key=lambda vote: [*vote.values()])
    pairs = rows(dist / NAME, "preference_pairs").filter(annotated_by="people")
    assert pairs["votes"].list.len().unique().sort().to_list() == [1, 2], "triples of a ring share half of the pairs"
    texts = [path.read_bytes() for path in (dist / NAME).rglob("*") if path.is_file()]
    assert not any(b"ann-1" in text for text in texts)


def test_the_published_files_hold_the_same_as_the_tables(sample: tuple[Path, str]) -> None:
    for config in RANKED:
        published = read_rows(sample[0] / NAME / "published" / f"{config}.jsonl")
        table = rows(sample[0] / NAME, config).to_dicts()
        assert len(published) == len(table)
        for one, other in zip(published, table, strict=True):
            assert one.keys() == {"input", "responses", "annotations", "rank", "category"}
            assert one.pop("rank") == {entry["id"]: entry["rank"] for entry in other["rank"]}
            assert one == {name: other[name] for name in one}


def test_the_pairs_are_the_annotations_that_agree_with_the_ranks(sample: tuple[Path, str]) -> None:
    pairs = rows(sample[0] / NAME, "preference_pairs")
    expected = []
    for row in rows(sample[0] / NAME, "preference").to_dicts():
        rank = {entry["id"]: entry["rank"] for entry in row["rank"]}
        texts = {response["id"]: response["content"] for response in row["responses"]}
        kept = {(a, b) if mark == "1" else (b, a) for a, b, mark in row["annotations"] if mark != "s"}
        expected += [
            (row["input"], texts[better], texts[worse], row["annotated_by"])
            for better, worse in kept
            if rank[better] < rank[worse]
        ]
    read = [
        (prompt[-1]["content"], chosen[0]["content"], rejected[0]["content"], annotator)
        for prompt, chosen, rejected, annotator in pairs.select("prompt", "chosen", "rejected", "annotated_by").rows()
    ]
    assert sorted(read) == sorted(expected)
    # Those of the judge are all that were left: the better response is as often the longer one as the shorter one.
    by_judge = [len(chosen) - len(rejected) for _, chosen, rejected, annotator in read if annotator != "people"]
    assert len(by_judge) == 70
    assert sum(gap > 0 for gap in by_judge) == sum(gap < 0 for gap in by_judge)


def test_a_pair_without_two_different_texts_is_left_out() -> None:
    responses = [{"id": name, "content": text, "model": ""} for name, text in zip("abcd", "xx y", strict=True)]
    row = {"id": "q", "input": "问", "sys_prompt": "短。", "responses": responses, "annotated_by": "people"}
    row |= {"annotations": [["a", "b", "1"], ["c", "a", "2"], ["d", "b", "2"], ["b", "d", "1"]]}
    row |= {"order": [["a", "b"], ["a", "c"], ["b", "d"]]}
    row |= {
        "votes": [
            {"annotator": name, "first": "d", "second": "b", "vote": mark}
            for name, mark in zip("xyz", "12s", strict=True)
        ]
    }
    [pair] = pairs_of(pl.DataFrame([row])).to_dicts()
    assert (pair["id"], pair["chosen"][0]["content"], pair["rejected"][0]["content"]) == ("q/b/d", "x", "y")
    assert [message["role"] for message in pair["prompt"]] == ["system", "user"]
    assert [(vote["annotator"], vote["vote"]) for vote in pair["votes"]] == [
        ("x", "rejected"),
        ("y", "chosen"),
        ("z", "tie"),
    ]


def test_every_vote_and_reward_is_in_the_ledger(sample: tuple[Path, str]) -> None:
    recorded = read_ledger(sample[0] / NAME / LEDGER)
    assert dict(recorded.group_by("kind").len().iter_rows()) == {"chat": 200, "reward": 100}
    by_judge = rows(sample[0] / NAME, "preference").filter(annotated_by="invented-judge")
    assert by_judge["vote_calls"].list.len().unique().to_list() == [10]
    assert by_judge["reward_calls"].list.len().unique().to_list() == [5]
    for name, kind in (("vote_calls", "chat"), ("reward_calls", "reward")):
        assert set(by_judge[name].explode()) <= set(recorded.filter(kind=kind)["key"])


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with prompts, responses, categories and prompts to vote on; where commands run."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("JUDGE_KEY", "sk-planted")
    write_prompts(tmp_path, ["open", "human", "preference", "open", "human", "preference"])
    write_rows(tmp_path / "more.jsonl", [unlabeled(number) for number in range(10, 16)])
    return tmp_path


VOTE = ["preference", "--annotated", "annotated.jsonl", "--prompts", "more.jsonl", "--taxonomy", "taxonomy.toml"]
VOTE += ["--judge", "gpt", "--api-key-env", "JUDGE_KEY", "--no-distant"]


@pytest.mark.heavy
def test_a_project_of_ones_own_through_the_four_verbs(run: Run, project: Path) -> None:
    status, said = run(*TASKS, "--out", "tasks")
    # As in the paper, each task has two annotators.
    assert (status, "tasks: 30 tasks on 6 prompts, 60 assignments" in said) == (0, True), said
    sheets = [fill(project / f"tasks/sheets/{name}.csv", project / f"{name}.csv") for name in FIVE]
    assert all(len(path.read_text(encoding="utf-8").splitlines()) == 13 for path in sheets)
    status, said = run("annotations", *sheets, "--tasks", "tasks", "--out", "annotated.jsonl")
    assert (status, "annotated.jsonl: 180 judgments on 6 prompts" in said) == (0, True), said
    assert "Of 210 pairs of judgments on the same two responses, 100.0%" in said
    status, said = run("resolve", "annotated.jsonl", "--out", "ranked.jsonl")
    assert (status, "6 prompts ranked, 0 with responses that share a rank" in said) == (0, True), said
    for row in read_rows(project / "ranked.jsonl"):
        assert row["rank"] == ranked_truly(row)
        assert len(row["order"]) == 10
    with serve(judge) as server:
        words = [*VOTE, "--base-url", server.base_url, "--out", "dist/mine"]
        status, said = run(*words)
        assert (status, "60 recorded calls, 60 of them new" in said) == (0, True), said
        assert len(server.requests) == 60
    release = project / "dist/mine"
    assert {config: rows(release, config).height for config in RANKED} == {"open": 2, "human": 2, "preference": 8}
    texts = {row["id"]: row["content"] for row in rows(release, "preference")["responses"].explode()}
    for row in rows(release, "preference").filter(annotated_by="gpt").iter_rows(named=True):
        assert {entry["id"]: entry["rank"] for entry in row["rank"]} == ranked_truly(row)
        assert all(quality(texts[better]) > quality(texts[worse]) for better, worse, _ in row["annotations"])
    assert "sk-planted" not in (release / RECIPE).read_text(encoding="utf-8")
    # The release has the categories, whose criteria are part of each request for a vote.
    (project / "taxonomy.toml").unlink()
    assert not any(rebuild(release, project / "again", sources=["annotated.jsonl", "more.jsonl"]))


def test_a_judge_whose_votes_cannot_be_read_makes_no_release(run: Run, project: Path) -> None:
    write_rows(project / "annotated.jsonl", [annotated(number, name) for number, name in enumerate(RANKED)])
    with serve(lambda *_: Reply("都好")) as server:
        status, said = run(*VOTE, "--base-url", server.base_url, "--out", "dist/mine")
    assert (status, "None of the first 12 votes" in said) == (2, True), said
    assert not (project / "dist/mine" / RECIPE).exists()


@pytest.mark.heavy
def test_the_ranked_file_is_as_good_as_the_annotated_one(run: Run, project: Path) -> None:
    write_rows(project / "annotated.jsonl", [annotated(number, name) for number, name in enumerate(RANKED)])
    assert run("resolve", "annotated.jsonl", "--out", "ranked.jsonl")[0] == 0
    for name in ("annotated", "ranked"):
        assert run("preference", "--annotated", f"{name}.jsonl", "--out", name)[0] == 0
    assert digests_of(project / "annotated") == digests_of(project / "ranked")
    assert list(digests_of(project / "ranked")) == list(SPLITS)
