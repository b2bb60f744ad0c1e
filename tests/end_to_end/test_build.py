"""The promises of a build in a process of its own: `datasets` reads it, kills lose nothing, secrets are not written."""

import json
import random
import re
import signal
import sqlite3
import subprocess
import time
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from build_personalized.cli import main
from chat_server import Reply, request_digest, serve
from commands import command, environment, in_process, script
from pluralbench_release import read_manifest, verify
from samples import sample

SECRET = "sk-planted-4d1f9c77e2"  # noqa: S105 - planted to be searched for
KILLS = 2
IDENTIFIER = re.compile(r"answer-[0-9a-f]{16}")


def digests(release: Path) -> dict[str, str]:
    manifest = json.loads((release / "provenance/manifest.json").read_text(encoding="utf-8"))
    return {f"{table['config']}/{table['split']}": table["digest"] for table in manifest["tables"]}


def numbered(body: dict[str, Any], _: int) -> Reply:
    """An answer that names its request; now and then one over the word limit."""
    name = f"answer-{request_digest(body)[:16]}"
    return Reply(f"{name} " + "word " * (150 if int(name[-1], 16) < 4 else 20), delay=0.05)


def recipe(path: Path, base_url: str) -> Path:
    """The sample's questions, answered by a server; seeds make each attempt a request of its own."""
    path.write_text(
        f"""
        [source]
        locations = ["sample"]
        [llm]
        provider = "scripted"
        model = "scripted"
        seeded = true
        [connection]
        base_url = "{base_url}"
        api_key_env = "PLANTED_KEY"
        concurrency = 4
        """,
        encoding="utf-8",
    )
    return path


@pytest.mark.heavy
def test_datasets_loads_a_config_of_each_shape_in_each_sample(tmp_path: Path) -> None:
    releases = [
        sample(f"build-{name}").release for name in ("personalized", "multilingual", "chinese", "persona-judge")
    ]
    code = (
        "import json, sys; from datasets import load_dataset\n"
        "for directory, config, split in json.loads(sys.argv[1]):\n"
        "    print(json.dumps(load_dataset(directory, config, split=split).to_list()))\n"
    )
    shapes = {
        (str(release), str(pl.read_parquet_schema(release / table.path))): table
        for release in releases
        for table in read_manifest(release).tables
    }
    tables = [(release, table) for (release, _), table in shapes.items()]
    asked = json.dumps([(directory, table.config, table.split) for directory, table in tables])
    loaded = command("python", "-c", code, asked, env={"HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1"})
    assert loaded.returncode == 0, loaded.stderr
    found = [json.loads(line) for line in loaded.stdout.splitlines()]
    assert len(found) == len(tables) >= len(releases)
    for (directory, table), rows in zip(tables, found, strict=True):
        assert rows == pl.read_parquet(Path(directory) / table.path).to_dicts()


def test_a_server_that_dies_halfway_loses_nothing_and_no_secret_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = in_process("build-personalized", main, monkeypatch, capsys)
    monkeypatch.setenv("PLANTED_KEY", SECRET)
    out = tmp_path / "out"
    dead = [10_000]

    def script_(body: dict[str, Any], number: int) -> Reply:
        if number >= dead[0]:
            return Reply(f"no such key {SECRET}", status=401)
        return Reply(f"answer {number} " + "word " * 10, headers={"X-Echo": SECRET})

    with serve(script_) as server:
        asked = recipe(tmp_path / "recipe.toml", server.base_url)
        dead[0] = 20
        status, stopped = run("--recipe", asked, "--out", out)
        assert status == 2
        for part in ("Error: ", "does not accept the key in PLANTED_KEY", "20 of 24 chosen answers are recorded"):
            assert part in stopped
        assert not out.exists()
        dead[0] = 10_000
        status, built = run("--recipe", asked, "--out", out)
        assert status == 0, built
        repeats = Counter(server.digests())
        assert set(repeats.values()) <= {1, 2}, "only what was in flight may be sent twice"
        assert sum(count - 1 for count in repeats.values()) <= 4
        assert {header["authorization"] for header in server.headers} == {f"Bearer {SECRET}"}
    written = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    assert SECRET not in stopped + built


@pytest.mark.heavy
@pytest.mark.timeout(900)
def test_kills_at_random_moments_lose_and_repeat_no_recorded_call(tmp_path: Path) -> None:
    draws = random.Random(20260101)
    with serve(numbered) as server:
        asked, env = recipe(tmp_path / "recipe.toml", server.base_url), {"PLANTED_KEY": SECRET}
        started = time.monotonic()
        assert command("build-personalized", "--recipe", asked, "--out", tmp_path / "whole", env=env).returncode == 0
        whole_seconds = time.monotonic() - started
        expected = digests(tmp_path / "whole")
        calls = len(server.requests)

        out, kills, repeated = tmp_path / "out", 0, 0
        server.requests.clear()
        while True:
            recorded = recorded_calls(out)
            seen = len(server.requests)
            killed = kill_after(draws.uniform(0.3, whole_seconds) if kills < KILLS else None, asked, out, env)
            sent = {f"answer-{digest[:16]}" for digest in server.digests()[seen:]}
            repeated += len(sent & recorded)
            if not killed:
                assert digests(out) == expected
                if kills >= KILLS:
                    break
                if draws.random() < 0.5:  # another build from the start, so that early moments are hit as well
                    subprocess.run(["rm", "-r", str(out)], check=True)
            kills += killed
        assert kills == KILLS
        assert repeated == 0
        assert calls > 48  # some answers were over the limit and asked for again
    assert verify(out) == []
    assert not out.with_name("out.work").exists()


def kill_after(seconds: float | None, asked: Path, out: Path, env: dict[str, str]) -> bool:
    """Start the build and kill it after so many seconds; whether it was still running. None lets it finish."""
    process = subprocess.Popen(
        [script("build-personalized"), "--recipe", str(asked), "--out", str(out)],
        env=environment(env),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        status = process.wait(seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return True
    assert status == 0
    return False


def recorded_calls(out: Path) -> set[str]:
    """The names in the answers that the working ledger holds."""
    ledger = out.with_name("out.work") / "ledger.sqlite"
    if not ledger.exists():
        return set()
    with closing(sqlite3.connect(ledger)) as database:
        try:
            texts = [row[0] for row in database.execute("SELECT text FROM calls WHERE kind = 'chat'")]
        except sqlite3.OperationalError:  # killed before the table was made
            return set()
    return {match.group() for text in texts if (match := IDENTIFIER.search(text))}
