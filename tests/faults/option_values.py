"""Commands that end in seconds, and the values that a person or a script may give each of their options."""

import random
import re
import shlex
from functools import cache
from pathlib import Path
from typing import Any

import made_runs
import project_files
import small_world
import written_verdicts
from children import ended
from command_options import commands
from reward_models import save_classifier, save_language_model
from written_tables import write

NUMBERS = (
    *("0", "-1", "1", "2", "0.5", "007", "1e3", "0x10", "1_000", " 1", "1 ", "\uff11", "", "-0", "+1", "1,5", "None"),
    *map(str, (2**31, 2**53 - 1, 2**53, 2**63, 2**64, 10**30, 10**400, 1_760_000_000_123_456_789)),
    *("nan", "inf", "-inf", "1e309", "1e-320", "1e18", "1e308", "-1e308", "1e-9"),
)
TEXTS = (
    *(
        "",
        " ",
        "\x1b[31mred",
        "\u202eright",
        "a\nb",
        "a" * 300,
        "a" * 100_000,
        "\udcff\udcfe",
        "\u4e2d\u6587",
        "~",
        "-",
    ),
    *("--", ".", "..", "/", "a/b", "a//b/", "./a/../b", "\U0001f375", "=", "a=", "=a", "a=b", "a=b=c", ",", "a,b", ":"),
    *("a:b", "@", "org/name@main", "*", "[red]", "%s{0}", "$HOME", "'", '"', "=1+1", "\\", "&", "<b>", "1/2", "0/0"),
    *("2/1", "1/2/3", "nan", "None", "null", "sample", "local", "http://", "http://[", "http://127.0.0.1:9/v1"),
    *("http://a:99999", "ftp://a", "file:///etc/passwd", "CON", "\u2028", "e\u0301", "\x7f", "0", "-1", "1e309"),
)
PLACES = (
    *("missing", "missing/deeper/file", "folder", "folder/", "empty", "empty.csv", "empty.jsonl", "empty.parquet"),
    *("file/inside", "dangling", "loop", "/dev/null", "/dev/full", "/sys/x", "n" * 300, "../x", "a\nb", "\udcff.csv"),
    *("pairs.jsonl", "pairs.jsonl/", "model", "out", "runs", "runs/a", "out.work", "bytes.bin", "bytes.json"),
)
VERBS = ("pluralbench", "pluralbench-release", "build-chinese", "build-persona-judge", "build-personalized")
SLOW = {"--epochs", "--max-steps", "--requests-per-minute", "--tokens-per-minute", "--n", "--k", "--seeds"}
UNTRIED = {"--install-completion", "--show-completion", "--version", "--push", "--cluster", *SLOW}
"""Options that change the shell, end at once, start a cluster, or rightly take as long as their value says."""

CHAT = "--base-url {server} --api-key-env ''"
PAIRS = "--benchmark pairs --data pairs.jsonl --out out"
PEOPLE = "--data people.jsonl --out out"
SMALL = "--epochs 1 --batch-size 2 --device cpu"
BEST = (
    "pluralbench best-of-n --policy m --policy-base-url {server} --policy-api-key-env '' --judge rubric-overlap "
    "--reward a=./model --device cpu --data people.jsonl --profile none --n 2"
)
LINES = (
    f"pluralbench score ./model {PAIRS} --device cpu",
    f"pluralbench score ./model {PEOPLE} --profile raw --device cpu",
    "pluralbench suite ./model --suite suite.toml --device cpu --out out",
    f"pluralbench judge m {PAIRS} {CHAT}",
    f"pluralbench judge m {PEOPLE} --profile raw {CHAT}",
    f"pluralbench judge-personas m --data sample --limit 3 --out out {CHAT}",
    "pluralbench judge-metrics verdicts.csv",
    "pluralbench merge runs/shard-1 runs/shard-2 --data pairs.jsonl --out out",
    "pluralbench report runs/a runs/b",
    "pluralbench show runs/a --data pairs.jsonl",
    "pluralbench compare runs/a runs/b",
    "pluralbench contamination pairs.jsonl --benchmark pairs --data pairs=pairs.jsonl",
    "pluralbench agree runs/a --published runs/b --data pairs.jsonl --rescore 0",
    "pluralbench list",
    f"pluralbench train ./base {PAIRS} {SMALL} --gradient-accumulation-steps 1",
    "pluralbench personalize ./base --data sample --device cpu --methods bt --epochs 1 --out out",
    f"pluralbench plan m {PEOPLE} {CHAT}",
    f"pluralbench synthesize m {PEOPLE} {CHAT}",
    f"{BEST} --out out",
    "pluralbench optimize --policy ./base --reward ./model --device cpu --train-data people.jsonl --profile none "
    "--data people.jsonl --judge rubric-overlap --max-steps 1 --batch-size 2 --mini-batch-size 2 --max-tokens 4 "
    "--out out",
    "pluralbench correlate benchmark.csv downstream.csv",
    "pluralbench study study.toml --show",
    "pluralbench check runs/a --data pairs.jsonl",
    "pluralbench leaderboard runs --data pairs.jsonl --any-data --site site",
    "build-multilingual --language spa_Latn --limit 2 --out out",
    "build-persona-judge --retriever bm25 --out out",
    "build-persona-judge label --export sheets --release persona --task prism --annotator a --annotator b "
    "--annotator c",
    "build-personalized --out out",
    "build-personalized rate --export sheets --release personal --annotator a --annotator b",
    "build-personalized training --out out",
    "build-chinese --out out",
    f"build-chinese preference --judge m {CHAT} --no-distant --limit 2 --out out",
    "pluralbench-release verify personal",
    "pluralbench-release diff personal personal",
)
READERS = {
    "run.json": ("pluralbench report out --detail", "pluralbench report out --html read.html"),
    "provenance": ("pluralbench-release verify out",),
}
"""What reads a result `out` to its end, by a file or folder in it."""
MADE = (
    "build-personalized --out personal",
    "build-persona-judge --retriever bm25 --out persona",
    *(
        f"pluralbench score ./model --benchmark pairs --data pairs.jsonl --shard {n}/2 --out runs/shard-{n}"
        for n in "12"
    ),
    f"{BEST} --out best",
)
"""What commands make for others: releases, shards and a run of best-of-n."""
SUITE = """\
title = "Mine"
columns = [{ name = "Pairs", benchmarks = [{ name = "pairs", location = "pairs.jsonl" }] }]
"""


def make_written(folder: Path) -> None:
    """Files, models and runs that `LINES` name, and odd places."""
    for name in ("empty", "folder"):
        (folder / name).mkdir()
    (folder / "folder/file.txt").write_text("text", encoding="utf-8")
    for suffix in ("csv", "jsonl", "parquet"):
        (folder / f"empty.{suffix}").touch()
    for suffix in ("bin", "json"):
        (folder / f"bytes.{suffix}").write_bytes(bytes(range(256)))
    (folder / "file").write_text("text\n", encoding="utf-8")
    (folder / "dangling").symlink_to("nowhere")
    (folder / "loop").symlink_to("loop")
    pairs = write(folder / "pairs.jsonl", project_files.PAIRS)
    small_world.people_file(folder / "people.jsonl", 4)
    save_classifier(folder / "model", **project_files.TINY)
    save_language_model(folder / "base", **project_files.TINY)
    for name in ("a", "b"):
        made_runs.scored("pairs", pairs, folder / "runs" / name, model=name)
    written_verdicts.written(folder)
    project_files.downstream(folder)
    (folder / "suite.toml").write_text(SUITE, encoding="utf-8")
    text = project_files.STUDY.replace("dist/personalized-rewardbench", "people.jsonl")
    (folder / "study.toml").write_text(text.replace('policy = "policy"', 'policy = "./base"'), encoding="utf-8")


def make_made(folder: Path, server: str) -> None:
    """What commands make for others: releases, shards and a run of best-of-n."""
    for line in MADE:
        done = ended(shlex.split(line.format(server=server)), folder, patience=120)
        assert done.status == 0, done.said


def drawn_words(words: list[str], draw: random.Random) -> list[str]:
    """The words of a command with one or two options more."""
    options = _options()[tuple(words)[: 2 if words[0] in VERBS and not words[1].startswith("-") else 1]]
    added: list[str] = []
    for _ in range(draw.choice((1, 1, 1, 2))):
        flag, values = draw.choice(options)
        added += [flag, *([draw.choice(values)] if values else [])]
    return [*words, *added]


@cache
def _options() -> dict[tuple[str, ...], list[tuple[str, tuple[str, ...]]]]:
    """The options of each command by its words, with the values to draw from; none for a switch."""
    found = {}
    for words, command in commands():
        options = [one for one in command.params if one.opts[0].startswith("-") and one.opts[0] not in UNTRIED]
        found[tuple(words.split())] = [(one.opts[0], _values(one)) for one in options]
    return found


def _values(option: Any) -> tuple[str, ...]:
    kind = str(option.type_descriptor.annotation)
    if option.is_flag:
        return ()
    choices = tuple(re.findall(r"'([^']+)'", kind)) if "Literal" in kind else ()
    if choices:
        return (*choices, *choices, "", " ", choices[0].upper())
    if "int" in kind or "float" in kind:
        return NUMBERS
    return PLACES if "Path" in kind else (*TEXTS, *NUMBERS, *PLACES)
