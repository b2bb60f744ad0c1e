"""Every long job, small: what it needs, what it asks of whom, and what of its result no two runs may have otherwise."""

import shlex
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple

import chat_server
import chinese_project as chinese
import project_files
import pytest
import small_world
import translation_server
from children import Child, start
from inputs import LEARNED
from killed_child import kill_at, operations
from reward_models import save_classifier, save_language_model
from written_tables import write


@dataclass(frozen=True)
class Job:
    """A job. make: writes what it needs. line: the command, but for `--out out`.

    same: the files of its result that are the same in every run, as globs. asked: who is asked, `chat` or
    `translation`; nobody without it.
    """

    name: str
    make: Callable[[Path], object]
    line: str
    same: tuple[str, ...]
    asked: str = ""


@dataclass(frozen=True)
class Servers:
    """What both servers were asked so far."""

    chat: chat_server.ChatServer
    translation: translation_server.TranslationServer

    def words(self, job: Job, out: str = "out") -> list[str]:
        """The words of a job, with the servers' addresses in them."""
        line = job.line.format(server=self.chat.base_url, translation=self.translation.endpoint)
        return [*shlex.split(line), "--out", out]

    def asked(self, job: Job) -> int:
        """How many answers were given: texts that were translated, or requests."""
        return len(self.translation.texts() if job.asked == "translation" else self.chat.requests)


@contextmanager
def serving() -> Iterator[Servers]:
    """Both servers on loopback, which take their time."""
    with ExitStack() as stack:
        chat = stack.enter_context(chat_server.serve(_slowly))
        yield Servers(chat, stack.enter_context(translation_server.serve(translation_server.by_words)))


def recorded(out: Path) -> int:
    """How many answers the ledgers of an unfinished job hold."""
    count = 0
    for path in out.with_name(f"{out.name}.work").rglob("*.sqlite"):
        with closing(sqlite3.connect(path)) as database:
            if database.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchone():
                # Rankings and rewards are recorded too, and no server is asked for them.
                asked = "SELECT count(*) FROM calls WHERE kind IN ('chat', 'translation')"
                count += database.execute(asked).fetchone()[0]
    return count


def result(job: Job, out: Path) -> dict[str, bytes]:
    """What may not differ, by path."""
    return {str(path.relative_to(out)): path.read_bytes() for glob in job.same for path in sorted(out.glob(glob))}


NEVER = 1 << 40
PATIENCE = 120.0


class Whole(NamedTuple):
    """A run that nothing disturbed."""

    result: dict[str, bytes]
    asked: int
    operations: int
    seconds: float


def begun(job: Job, servers: Servers, folder: Path, last: int = NEVER, **options: Any) -> Child:
    """Start a job, which kills itself at its file operation of this number."""
    return start(servers.words(job), folder, before=kill_at, arguments=(last, "out"), **options)


@contextmanager
def undisturbed(job: Job, factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Servers, Whole]]:
    """A folder with what a job needs, the servers that it asks, and a run of it to its end."""
    good = factory.mktemp("good")
    job.make(good)
    with serving() as servers:
        folder = shutil.copytree(good, factory.mktemp("whole") / "job")
        done = begun(job, servers, folder).end(PATIENCE)
        assert done.status == 0, done.said
        found = result(job, folder / "out")
        assert found, f"{job.name} has none of the files {job.same}"
        yield good, servers, Whole(found, servers.asked(job), operations(folder), done.seconds)


def _slowly(body: dict[str, object], number: int) -> chat_server.Reply:
    reply = project_files.answer(body, number)
    return chat_server.Reply(reply.text, delay=0.01)


def _pairs(folder: Path) -> None:
    rows = [
        row | {"id": f"{row['id']}-{copy}", "prompt": f"{row['prompt']} {copy}"}
        for copy in range(4)
        for row in project_files.PAIRS
    ]
    write(folder / "pairs.jsonl", rows)


def _scored(folder: Path) -> None:
    _pairs(folder)
    save_classifier(folder / "model", **project_files.TINY)


def _trained(folder: Path) -> None:
    _pairs(folder)
    save_language_model(folder / "base", **project_files.TINY)


def _ranked(folder: Path) -> None:
    chinese.write_taxonomy(folder)
    chinese.write_rows(folder / "annotated.jsonl", [chinese.annotated(number) for number in range(12)])
    chinese.write_rows(folder / "more.jsonl", [chinese.unlabeled(number, 3) for number in range(20, 24)])
    save_language_model(folder / "base", **project_files.TINY)
    text = (files("build_chinese") / "recipes/paper.toml").read_text(encoding="utf-8")
    for value in ("batch_size", "gradient_accumulation_steps"):
        text = text.replace(f"{value} = 16", f"{value} = 4")
    (folder / "recipe.toml").write_text(text, encoding="utf-8")


def _questions(folder: Path) -> None:
    (folder / "beer.stackexchange.com").mkdir()
    (folder / "beer.stackexchange.com/Posts.xml").write_text(project_files.posts(), encoding="utf-8")


def _people(folder: Path) -> None:
    small_world.people_file(folder / "people.jsonl", 3)
    save_classifier(folder / "model", **project_files.TINY)


CHAT = "--base-url {server} --api-key-env ''"
DATA = "--benchmark pairs --data pairs.jsonl"
GOOGLE = "--translator google --endpoint {translation} --project mine"
SAMPLED = "--policy-base-url {server} --policy-api-key-env '' --judge-base-url {server}"
QUICK = "--epochs 3 --batch-size 8 --gradient-accumulation-steps 1 --save-steps 2 --device cpu"
RELEASE = ("data/**/*.parquet", "provenance/recipe.toml", "provenance/row_digests.parquet")
RUN = ("items.parquet", "metrics.parquet")
DOWNSTREAM = ("candidates.parquet", "rewards.parquet", "selected.parquet", "metrics.parquet")
JOBS = [
    Job("score", _scored, f"pluralbench score ./model {DATA} --device cpu", RUN),
    Job("judge", _pairs, f"pluralbench judge m {DATA} {CHAT}", RUN, "chat"),
    Job("train", _trained, f"pluralbench train ./base {DATA} {QUICK}", ("model.safetensors",)),
    Job(
        "multilingual build",
        _pairs,
        f"build-multilingual --source pairs.jsonl --language spa_Latn {GOOGLE}",
        RELEASE,
        "translation",
    ),
    Job(
        "preference build",
        _ranked,
        f"build-chinese preference --recipe recipe.toml {LEARNED} --judge m {CHAT} --reward-base ./base",
        RELEASE,
        "chat",
    ),
    Job(
        "personalized build",
        _questions,
        f"build-personalized --source stack-exchange:beer.stackexchange.com/Posts.xml --llm m {CHAT} --retriever bm25",
        RELEASE,
        "chat",
    ),
    Job(
        "best-of-N",
        _people,
        f"pluralbench best-of-n --policy m {SAMPLED} --judge m --reward a=./model --device cpu --data people.jsonl "
        "--profile none --n 4 --k 1 --k 4",
        DOWNSTREAM,
        "chat",
    ),
]
