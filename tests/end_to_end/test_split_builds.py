"""A build that is split from its model makes what the direct one makes: each command that asks chat models."""

import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import build_chinese.cli
import build_personalized.cli
import polars as pl
import pytest
import verbs
from batch_results import work_through
from chat_server import Reply, Script, request_digest, serve
from chinese_project import FIVE, annotated, judge, unlabelled, write_prompts, write_rows, write_taxonomy
from commands import in_process
from downstream_runs import MODELS, World, sampled
from pluralbench_calls import CallsPending, read_ledger
from pluralbench_release import LEDGER, content_digest
from samples import sample
from written_tables import write

Files = dict[str, Any]
Split = Callable[[Callable[[str, str, Files], Any], Callable[[], Script]], int]
NO_SERVER = "http://127.0.0.1:9/v1"
ROUNDS = 12
KEPT = ("key", "outcome", "text", "model", "finish_reason", "prompt_tokens", "completion_tokens")


@pytest.fixture
def split(tmp_path: Path) -> Split:
    """Do a piece of work twice, with a server and split from it, and say in how many rounds of files.

    work: from an output directory, a base URL and fields of its connection to what is to be the same.
    """

    def both(work: Callable[[str, str, Files], Any], script: Callable[[], Script]) -> int:
        with serve(script()) as server:
            direct = work("direct", server.base_url, {})
        answers, results, said = script(), tmp_path / "results", []
        for number in range(ROUNDS):
            files: Files = {"pending": tmp_path / "calls.jsonl"} | ({"results": (results,)} if number else {})
            try:
                assert work("split", NO_SERVER, files) == direct
            except CallsPending as pending:
                said.append(str(pending))
                work_through(tmp_path / "calls.jsonl", results / f"{number}.jsonl", answers)
            else:
                return number
        raise AssertionError(said)

    return both


def options(base_url: str, files: Files) -> list[object]:
    """The connection, as a command is told of it."""
    pending = [word for path in [files.get("pending")] if path for word in ("--pending", path)]
    return [
        "--base-url",
        base_url,
        *pending,
        *(word for path in files.get("results", ()) for word in ("--import", path)),
    ]


@pytest.fixture
def built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Any, list[object]], Callable[[str, str, Files], Any]]:
    """A builder's command with these words, as work for `split`: the content's digests and the recorded calls."""
    monkeypatch.chdir(tmp_path)

    def of(main: Any, words: list[object]) -> Callable[[str, str, Files], Any]:
        def work(out: str, base_url: str, files: Files) -> Any:
            run = in_process("build", main, monkeypatch, capsys)
            status, said = run(*words, *options(base_url, files), "--out", tmp_path / out)
            if status == 75:
                raise CallsPending(said)
            assert status == 0, said
            release = tmp_path / out
            tables = sorted((release / "data").rglob("*.parquet"))
            calls = read_ledger(release / LEDGER).select(KEPT).rows()
            rows = [content_digest(pl.read_parquet(path)) for path in tables] or (release / "prompts.jsonl").read_text(
                "utf-8"
            )
            assert not [path for path in release.rglob("*") if path.is_file() and b"calls.jsonl" in path.read_bytes()]
            return rows, calls

        return work

    return of


def numbered(body: dict[str, Any], _: int) -> Reply:
    """An answer that names its request; now and then one over the word limit, one that is refused or cut off."""
    name = request_digest(body)
    kind = random.Random(name).random()
    if kind < 0.15:
        return Reply("I cannot.", refusal="No.")
    if kind < 0.3:
        return Reply("to the", finish_reason="length")
    return Reply(f"{name[:12]} " + "word " * (150 if kind < 0.5 else 20))


def test_pairs_of_answers(split: Split, built: Callable[..., Any]) -> None:
    words = ["--source", "sample", "--llm", "m", "--api-key-env", "", "--limit", "1"]
    assert split(built(build_personalized.cli.main, words), lambda: numbered) >= 2


def test_personas(split: Split, built: Callable[..., Any], tmp_path: Path) -> None:
    def sums_up(body: dict[str, Any], _: int) -> Reply:
        said = body["messages"][-1]["content"]
        return Reply("word " * 1_000 if "of 0?" in said else f"Asks about number {re.findall('of (.)[?]', said)[0]}.")

    rows = [
        {"user": f"user {user}", "prompt": f"Question {pair} of {user}?", "chosen": "Yes.", "rejected": "No."}
        for user in range(4)
        for pair in range(2)
    ]
    source = f"table:{write(tmp_path / 'mine.jsonl', rows)}"
    words = ["training", "--source", source, "--against", "none", "--persona-llm", "m", "--api-key-env", ""]
    assert split(built(build_personalized.cli.main, words), lambda: sums_up) >= 2


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What `build-chinese` needs."""
    write_prompts(tmp_path, ["open", "human", "preference"])
    write_rows(tmp_path / "more.jsonl", [unlabelled(number) for number in range(10, 12)])
    write_rows(tmp_path / "annotated.jsonl", [annotated(number, name) for number, name in enumerate(("open", "human"))])
    return write_taxonomy(tmp_path)


def test_responses_of_several_writers(split: Split, built: Callable[..., Any], project: Path) -> None:
    def answers(body: dict[str, Any], _: int) -> Reply:
        asked, model = body["messages"][-1]["content"], body["model"]
        return Reply(f"关于{asked}，{'我看' * 'abc'.index(model)}这座山很高。", model=f"{model}-served")

    writers = [word for name in "abc" for word in ("--writer", name)]
    annotators = [word for name in FIVE for word in ("--annotator", name)]
    words = ["tasks", "--prompts", "prompts.jsonl", "--taxonomy", project, *writers, *annotators, "--api-key-env", ""]
    assert split(built(build_chinese.cli.main, words), lambda: answers) == 3


def test_votes(split: Split, built: Callable[..., Any], project: Path) -> None:
    words = ["preference", "--annotated", "annotated.jsonl", "--prompts", "more.jsonl", "--taxonomy", project]
    words += ["--judge", "gpt", "--api-key-env", "", "--no-distant"]
    assert split(built(build_chinese.cli.main, words), lambda: judge) >= 1


@pytest.mark.parametrize("how", [{"orders": "both"}, {"pointwise": True}])
def test_a_judge(split: Split, tmp_path: Path, how: dict[str, Any]) -> None:
    rows = [{"id": f"q{n}", "prompt": f"{n}?", "chosen": f"good {n}", "rejected": f"bad {n}"} for n in range(4)]
    data = write(tmp_path / "pairs.jsonl", rows)

    def says(body: dict[str, Any], _: int) -> Reply:
        draw = random.Random(request_digest(body))
        return Reply(
            draw.choice(["no idea", f"[[{draw.choice('123456789')}]]"] if "pointwise" in how else ["[[A]]", "?"])
        )

    def work(out: str, base_url: str, files: Files) -> Any:
        run = verbs.judge(
            "judge-1",
            benchmark="pairs",
            data=data,
            base_url=base_url,
            api_key_env="",
            out=tmp_path / out,
            **how,
            **files,
        )
        return repr(run.items.to_dicts()), run.result.model_dump(exclude={"cost"})

    assert split(work, lambda: says) >= 2


@pytest.mark.heavy
def test_candidates_and_their_judge(split: Split, tmp_path: Path) -> None:
    data = sample("build-personalized").release

    def work(out: str, base_url: str, files: Files) -> Any:
        server: Any = type("Server", (), {"base_url": base_url})
        found = sampled(server, data, tmp_path / out, MODELS, limit=1, n=3, k=(1, 2), files=files)
        return {name: repr(found.frame(name).to_dicts()) for name in ("candidates", "rewards", "outcomes")}

    assert split(work, World) == 2
