"""A model asked in batches, or by files, leaves what direct calls leave: each command that asks chat models."""

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
from batch_server import Plan, serve_batches
from chat_server import Reply, Script, request_digest, serve
from chinese_project import FIVE, annotated, judge, unlabeled, write_prompts, write_rows, write_taxonomy
from commands import in_process
from downstream_runs import MODELS, World, sampled
from pluralbench_calls import CallsPending, read_ledger
from pluralbench_release import LEDGER, content_digest
from samples import sample
from written_tables import write

More = dict[str, Any]
Work = Callable[[str, str, More], Any]
"""From an output directory, a base URL and further fields of its connection to what is to be the same."""
Otherwise = Callable[[Work, Callable[[], Script]], int]
NO_SERVER = "http://127.0.0.1:9/v1"
ROUNDS = 12
KEPT = ("key", "outcome", "text", "model", "finish_reason", "prompt_tokens", "completion_tokens")
either_way = pytest.mark.parametrize("way", ["files", pytest.param("batches", marks=pytest.mark.heavy)])


@pytest.fixture
def way() -> str:
    """How the model is asked."""
    return "files"


@pytest.fixture
def otherwise(tmp_path: Path, way: str) -> Otherwise:
    """Do a piece of work twice, with direct calls and the other way, and say in how many rounds."""

    def by_files(work: Work, script: Callable[[], Script]) -> int:
        with serve(script()) as server:
            direct = work("direct", server.base_url, {})
        answers, results, said = script(), tmp_path / "results", []
        for number in range(ROUNDS):
            files: More = {"pending": tmp_path / "calls.jsonl"} | ({"results": (results,)} if number else {})
            try:
                assert work("otherwise", NO_SERVER, files) == direct
            except CallsPending as pending:
                said.append(str(pending))
                work_through(tmp_path / "calls.jsonl", results / f"{number}.jsonl", answers)
            else:
                return number
        raise AssertionError(said)

    def in_batches(work: Work, script: Callable[[], Script]) -> int:
        with serve_batches(script=script()) as server:
            direct = work("direct", server.base_url, {})
            assert not server.batches
        with serve_batches(first_expires, script=script()) as server:
            assert work("otherwise", server.base_url, {"batch": True}) == direct
            assert len(server.batches) > 1
            assert {*server.worked.values()} == {1}
            assert all(len({line["body"]["model"] for line in lines}) == 1 for lines in server.inputs())
            return len(server.batches)

    return by_files if way == "files" else in_batches


def first_expires(number: int) -> Plan:
    """The first batch is worked through by a part, the others as a whole."""
    return Plan(statuses=()) if number else Plan("expired", finished=2, statuses=())


def options(base_url: str, more: More) -> list[object]:
    """The connection, as a command is told of it."""
    pending = ["--pending", more["pending"]] if "pending" in more else []
    results = [word for path in more.get("results", ()) for word in ("--import", path)]
    return ["--base-url", base_url, "--api-key-env", "", *pending, *results, *["--batch"] * ("batch" in more)]


@pytest.fixture
def built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Callable[[Any, list[object]], Work]:
    """A builder's command with these words, as work: the content's digests and the recorded calls."""
    monkeypatch.chdir(tmp_path)

    def of(main: Any, words: list[object]) -> Work:
        def work(out: str, base_url: str, more: More) -> Any:
            run = in_process("build", main, monkeypatch, capsys)
            status, said = run(*words, *options(base_url, more), "--out", tmp_path / out)
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


@pytest.mark.heavy
@either_way
def test_pairs_of_answers(otherwise: Otherwise, built: Callable[..., Any]) -> None:
    words = ["--source", "sample", "--llm", "m", "--limit", "1"]
    assert otherwise(built(build_personalized.cli.main, words), lambda: numbered) >= 2


def test_personas(otherwise: Otherwise, built: Callable[..., Any], tmp_path: Path) -> None:
    def sums_up(body: dict[str, Any], _: int) -> Reply:
        said = body["messages"][-1]["content"]
        return Reply("word " * 1_000 if "of 0?" in said else f"Asks about number {re.findall('of (.)[?]', said)[0]}.")

    rows = [
        {"user": f"user {user}", "prompt": f"Question {pair} of {user}?", "chosen": "Yes.", "rejected": "No."}
        for user in range(4)
        for pair in range(2)
    ]
    source = f"table:{write(tmp_path / 'mine.jsonl', rows)}"
    words = ["training", "--source", source, "--against", "none", "--persona-llm", "m"]
    assert otherwise(built(build_personalized.cli.main, words), lambda: sums_up) >= 2


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """What `build-chinese` needs."""
    write_prompts(tmp_path, ["open", "human", "preference"])
    write_rows(tmp_path / "more.jsonl", [unlabeled(number) for number in range(10, 12)])
    write_rows(tmp_path / "annotated.jsonl", [annotated(number, name) for number, name in enumerate(("open", "human"))])
    return write_taxonomy(tmp_path)


def test_responses_of_several_writers(otherwise: Otherwise, built: Callable[..., Any], project: Path) -> None:
    def answers(body: dict[str, Any], _: int) -> Reply:
        asked, model = body["messages"][-1]["content"], body["model"]
        return Reply(f"关于{asked}，{'我看' * 'abc'.index(model)}这座山很高。", model=f"{model}-served")

    writers = [word for name in "abc" for word in ("--writer", name)]
    annotators = [word for name in FIVE for word in ("--annotator", name)]
    words = ["tasks", "--prompts", "prompts.jsonl", "--taxonomy", project, *writers, *annotators]
    assert otherwise(built(build_chinese.cli.main, words), lambda: answers) == 3


@pytest.mark.heavy
@either_way
def test_votes(otherwise: Otherwise, built: Callable[..., Any], project: Path) -> None:
    words = ["preference", "--annotated", "annotated.jsonl", "--prompts", "more.jsonl", "--taxonomy", project]
    words += ["--judge", "gpt", "--no-distant"]
    assert otherwise(built(build_chinese.cli.main, words), lambda: judge) >= 1


@pytest.mark.parametrize(
    ("how", "way"),
    [({"orders": "both"}, "files"), ({"protocol": "pointwise"}, "files"), ({"orders": "both"}, "batches")],
)
def test_a_judge(otherwise: Otherwise, tmp_path: Path, how: dict[str, Any]) -> None:
    rows = [{"id": f"q{n}", "prompt": f"{n}?", "chosen": f"good {n}", "rejected": f"bad {n}"} for n in range(4)]
    data = write(tmp_path / "pairs.jsonl", rows)

    def says(body: dict[str, Any], _: int) -> Reply:
        draw = random.Random(request_digest(body))
        return Reply(
            draw.choice(["no idea", f"[[{draw.choice('123456789')}]]"] if "protocol" in how else ["[[A]]", "?"])
        )

    def work(out: str, base_url: str, more: More) -> Any:
        run = verbs.judge(
            "judge-1",
            benchmark="pairs",
            data=data,
            base_url=base_url,
            api_key_env="",
            out=tmp_path / out,
            **how,
            **more,
        )
        return repr(run.items.to_dicts()), run.result.model_dump(exclude={"cost"})

    assert otherwise(work, lambda: says) >= 2


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["files", "batches"])
def test_candidates_and_their_judge(otherwise: Otherwise, tmp_path: Path) -> None:
    data = sample("build-personalized").release

    def work(out: str, base_url: str, more: More) -> Any:
        server: Any = type("Server", (), {"base_url": base_url})
        found = sampled(server, data, tmp_path / out, MODELS, limit=1, n=3, k=(1, 2), files=more)
        return {name: repr(found.frame(name).to_dicts()) for name in ("candidates", "rewards", "outcomes")}

    assert otherwise(work, World) >= 2
