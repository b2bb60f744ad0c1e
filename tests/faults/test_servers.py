"""Every fault of a server: a sentence and exit status 2, or a result in which it is counted, and no key anywhere."""

import random
import shutil
import subprocess
import time
from collections.abc import Mapping, Sequence
from importlib.resources import files
from pathlib import Path

import grpc
import project_files
import pytest
import tomli_w
import translation_server
from bad_servers import FAULTS, KEY, misbehaving
from children import Ended, ended
from commands import command
from conftest import Tried
from translation_server import Fault, by_words
from written_tables import write

pytestmark = [pytest.mark.faults, pytest.mark.timeout(3600)]
PATIENCE = 90.0
ENVIRONMENT = {"PLANTED_KEY": KEY, "HF_TOKEN": KEY, "HF_HUB_DISABLE_XET": "1", "HF_HUB_OFFLINE": "0"}
ONCE = {"connection": {"timeout": 3.0, "max_retries": 1}}
ASKED = ("--api-key-env", "PLANTED_KEY", "--out", "out")
NAMES = [*FAULTS]


def told(tried: Tried, number: int, folder: Path, result: Ended, fault: str) -> None:
    """Count what a fault led to: a sentence, or a result; the key is nowhere."""
    tried.end(number, result, f"[{fault}]")
    if result.status != 0 and sum(line.startswith("Error: ") for line in result.said.splitlines()) != 1:
        tried.failure(number, "lost", f"[{fault}] status {result.status} without one sentence: {result.last_line}")
    # `home` is the Hub's client's own, which keeps there what the Hub says.
    files = [path for path in folder.rglob("*") if path.is_file() and "home" not in path.relative_to(folder).parts]
    leaks = [path for path in files if KEY.encode() in path.read_bytes()]
    if KEY in result.said or leaks:
        tried.failure(number, "lost", f"[{fault}] the key stands in {[str(path) for path in leaks] or 'the output'}")


def fault_of(tried: Tried, number: int) -> str:
    """Each in turn, in an order of the seed, so that small shares try others with each seed."""
    return random.Random(tried.seed).sample(NAMES, len(NAMES))[number % len(NAMES)]


@pytest.mark.parametrize("after", [0, 3], ids=["from the first request", "from the fourth request"])
@pytest.mark.parametrize("asking", ["build", "judge"])
def test_chat(asking: str, after: int, tried: Tried) -> None:
    for number, _, folder in tried.cases(len(NAMES)):
        fault = fault_of(tried, number)
        make = _building if asking == "build" else _judging
        with misbehaving(FAULTS[fault], after) as url:
            result = ended(make(folder, f"{url}/v1"), folder, env=ENVIRONMENT, patience=PATIENCE)
        told(tried, number, folder, result, fault)


def _building(folder: Path, url: str) -> Sequence[str]:
    sample = files("build_personalized") / "recipes/sample.toml"
    text = sample.read_text(encoding="utf-8") + tomli_w.dumps(ONCE)
    (folder / "recipe.toml").write_text(text, encoding="utf-8")
    (folder / "beer.Posts.xml").write_text(project_files.posts(), encoding="utf-8")
    source = ("--recipe", "recipe.toml", "--source", "stack-exchange:beer.Posts.xml", "--limit", "2")
    return ("build-personalized", *source, "--llm", "m", "--base-url", url, *ASKED)


def _judging(folder: Path, url: str) -> Sequence[str]:
    write(folder / "pairs.jsonl", project_files.PAIRS)
    return ("judge_once", "pairs.jsonl", url)


HUB: dict[str, Sequence[str]] = {
    "publish": ("pluralbench-release", "publish", "release", "org/name", "--create"),
    "load": ("build-multilingual", "--source", "org/name@" + "a" * 40, "--language", "spa_Latn"),
}


@pytest.mark.parametrize("verb", [*HUB])
def test_hub(verb: str, tried: Tried, tmp_path_factory: pytest.TempPathFactory) -> None:
    made = tmp_path_factory.mktemp("good")
    assert ended(["build-personalized", "--out", "release"], made, patience=PATIENCE).status == 0
    for number, _, folder in tried.cases(len(NAMES)):
        fault = fault_of(tried, number)
        shutil.copytree(made / "release", folder / "release")
        # A chat's answer is no dataset; what matters is that the Hub's client meets the same faults.
        with misbehaving(lambda _, name=fault: FAULTS[name](CHAT)) as url:  # type: ignore[misc]
            result = _alone(HUB[verb], folder, ENVIRONMENT | {"HF_ENDPOINT": url, "HF_HOME": str(folder / "home")})
        told(tried, number, folder, result, fault)


def _alone(words: Sequence[str], folder: Path, env: Mapping[str, str]) -> Ended:
    """In a process of its own: the Hub's client reads its environment when it is imported."""
    began = time.monotonic()
    try:
        done = command(*words, cwd=folder, env=env, timeout=PATIENCE)
    except subprocess.TimeoutExpired as hung:
        return Ended(-9, str(hung.stderr), PATIENCE, hung=True)
    return Ended(done.returncode, done.stdout + done.stderr, time.monotonic() - began)


CHAT = (
    b'{"usage": {"prompt_tokens": 10, "completion_tokens": 5}, "model": "m", '
    b'"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}]}'
)


def _first_alone(texts: Sequence[str], source: str, target: str) -> Sequence[str]:
    return by_words(texts[:1], source, target)


def test_translation(tried: Tried) -> None:
    faults: list[tuple[str, translation_server.Translate, Fault | None]] = [
        (code.name, by_words, Fault(code, f"You sent {KEY}."))
        for code in grpc.StatusCode
        if code is not grpc.StatusCode.OK
    ]
    faults += [
        ("too few", _first_alone, None),
        ("too many", lambda texts, *_: [*texts, "more"], None),
        ("the key", lambda texts, *_: [KEY for _ in texts], None),
        ("nothing", lambda texts, *_: ["" for _ in texts], None),
    ]
    for number, _, folder in tried.cases(len(faults)):
        name, translate, fault = random.Random(tried.seed).sample(faults, len(faults))[number % len(faults)]
        with translation_server.serve(translate, lambda *_, fault=fault: fault) as server:
            result = ended(_translating(folder, server.endpoint), folder, env=ENVIRONMENT, patience=PATIENCE)
        told(tried, number, folder, result, name)


def _translating(folder: Path, endpoint: str) -> Sequence[str]:
    write(folder / "pairs.jsonl", project_files.PAIRS)
    connection = {"endpoint": endpoint, "project": "mine", "retry_seconds": 5.0}
    asked = {"languages": ["spa_Latn"], "source": {"location": "pairs.jsonl"}, "translator": {"name": "google"}}
    values = {"name": "mine", "version": "0.1.0", "seed": 1, **asked, "connection": connection}
    (folder / "recipe.toml").write_text(tomli_w.dumps(values), encoding="utf-8")
    return ("build-multilingual", "--recipe", "recipe.toml", "--out", "out")
