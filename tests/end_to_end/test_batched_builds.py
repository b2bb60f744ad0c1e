"""What is asked in batches makes what direct calls make: each command that asks chat models."""

import random
from pathlib import Path
from typing import Any

import build_chinese.cli
import build_personalized.cli
import polars as pl
import pytest
import verbs
from batch_server import BatchServer, Plan, serve_batches
from chat_server import Reply, request_digest
from chinese_project import annotated, judge, unlabelled, write_rows, write_taxonomy
from commands import in_process
from downstream_runs import MODELS, World, sampled
from pluralbench_calls import read_ledger
from pluralbench_release import LEDGER, content_digest
from samples import sample
from written_tables import write

KEPT = ("key", "outcome", "text", "model", "finish_reason", "prompt_tokens", "completion_tokens")


def first_expires(number: int) -> Plan:
    """The first batch is worked through by a part, the others as a whole."""
    return Plan(statuses=()) if number else Plan("expired", finished=2, statuses=())


def check_batched(server: BatchServer) -> None:
    assert len(server.batches) > 1
    assert {*server.worked.values()} == {1}
    assert all(len({line["body"]["model"] for line in lines}) == 1 for lines in server.inputs())


def numbered(body: dict[str, Any], _: int) -> Reply:
    name = request_digest(body)
    return Reply(f"{name[:12]} " + "word " * (150 if random.Random(name).random() < 0.2 else 20))


def of_personalized(_: Path) -> tuple[Any, list[object]]:
    return build_personalized.cli.main, ["--source", "sample", "--llm", "m", "--limit", "2"]


def of_chinese(folder: Path) -> tuple[Any, list[object]]:
    write_rows(folder / "more.jsonl", [unlabelled(number) for number in range(10, 12)])
    write_rows(folder / "annotated.jsonl", [annotated(number, name) for number, name in enumerate(("open", "human"))])
    words = ["preference", "--annotated", "annotated.jsonl", "--prompts", "more.jsonl", "--judge", "gpt"]
    return build_chinese.cli.main, [*words, "--no-distant", "--taxonomy", write_taxonomy(folder)]


@pytest.mark.heavy
@pytest.mark.parametrize(("of", "script"), [(of_personalized, numbered), (of_chinese, judge)])
def test_a_build(
    of: Any, script: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    main, words = of(tmp_path)
    run = in_process("build", main, monkeypatch, capsys)

    def built(out: str, server: BatchServer, *more: str) -> Any:
        status, said = run(*words, "--base-url", server.base_url, "--api-key-env", "", *more, "--out", tmp_path / out)
        assert status == 0, said
        tables = sorted((tmp_path / out / "data").rglob("*.parquet"))
        return [content_digest(pl.read_parquet(path)) for path in tables], read_ledger(tmp_path / out / LEDGER).select(
            KEPT
        ).rows()

    with serve_batches(script=script) as server:
        direct = built("direct", server)
        assert not server.batches
    with serve_batches(first_expires, script=script) as server:
        assert built("batched", server, "--batch") == direct
        check_batched(server)


def test_a_judge(tmp_path: Path) -> None:
    rows = [{"id": f"q{n}", "prompt": f"{n}?", "chosen": f"good {n}", "rejected": f"bad {n}"} for n in range(4)]
    data = write(tmp_path / "pairs.jsonl", rows)

    def says(body: dict[str, Any], _: int) -> Reply:
        return Reply(random.Random(request_digest(body)).choice(["[[A]]", "?"]))

    def judged(out: str, server: BatchServer, **more: Any) -> Any:
        reached = {"base_url": server.base_url, "api_key_env": "", **more}
        run = verbs.judge("judge-1", benchmark="pairs", data=data, out=tmp_path / out, **reached)
        return repr(run.items.to_dicts()), run.result.model_dump(exclude={"cost"})

    with serve_batches(first_expires, script=says) as server:
        direct = judged("direct", server)
        assert judged("batched", server, batch=True) == direct
        check_batched(server)


@pytest.mark.heavy
def test_candidates_and_their_judge(tmp_path: Path) -> None:
    data = sample("build-personalized").release

    def found(out: str, server: Any, files: dict[str, Any]) -> Any:
        run = sampled(server, data, tmp_path / out, MODELS, limit=1, n=3, k=(1, 2), files=files)
        return {name: repr(run.frame(name).to_dicts()) for name in ("candidates", "rewards", "outcomes")}

    with serve_batches(script=World()) as server:
        direct = found("direct", server, {})
    with serve_batches(first_expires, script=World()) as server:
        assert found("batched", server, {"batch": True}) == direct
        check_batched(server)
