"""What every builder promises: the same content from the same calls, none asked twice, and mistakes that cost nothing.

Each promise is tested once, over all builders; what is a builder's own is in its own folder.
"""

import json
import math
import shlex
import shutil
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn

import build_chinese.cli
import build_multilingual.cli
import build_persona_judge.cli
import build_personalized.cli
import pluralbench.commands.app
import pluralbench_release.cli
import pytest
from case_marks import heavy
from commands import by_apertium, in_process, refused
from members import ROOT
from pluralbench_calls import Answer, CallsError, Ledger
from pluralbench_release import LEDGER, read_manifest, rebuild, verify
from releases import files_of
from samples import Sample, sample

Words = list[str | Path]
Run = Callable[..., tuple[int, str]]
ROW_DIGESTS = "provenance/row_digests.parquet"
PAIRS = [
    {"prompt": "Is it so?", "chosen": "Yes, it is.", "rejected": "No, it is not.", "subset": "donotanswer"},
    {"prompt": "How many?", "chosen": "There are seven.", "rejected": "A lot.", "subset": "mt-bench-easy"},
]


@dataclass(frozen=True)
class Builder:
    """A builder.

    verb: of its command, where it has several builders. asks: what its command is given so that it asks for `calls`
    answers, which come from this process or this machine.
    other: what asks for other content than the sample, by the key `key`. mistake: what nobody can build.
    """

    name: str
    main: Callable[[], NoReturn]
    asks: Words
    calls: int
    other: Words
    key: str
    mistake: Words
    verb: tuple[str, ...] = ()

    @property
    def sample(self) -> Sample:
        return sample(self.name, *self.verb)


BUILDERS = [
    Builder(
        "build-personalized",
        build_personalized.cli.main,
        [],
        72,
        ["--limit", "7"],
        "source.limit",
        ["--source", "nowhere"],
    ),
    Builder(
        "build-multilingual",
        build_multilingual.cli.main,
        ["--source", "pairs.jsonl", "--language", "spa_Latn", "--language", "por_Latn"],
        12,
        ["--seed", "7"],
        "seed",
        ["--source", "nowhere"],
    ),
    Builder(
        "build-persona-judge",
        build_persona_judge.cli.main,
        ["--retriever", "bm25"],
        17,
        ["--seed", "7"],
        "seed",
        ["--prism", "nowhere"],
    ),
]
CHINESE = Builder(
    "build-chinese",
    build_chinese.cli.main,
    ["preference", "--limit", "6"],
    60,
    ["preference", "--no-length"],
    "preference.length",
    ["preference", "--annotated", "nowhere"],
)
TRAINING = Builder(
    "build-personalized",
    build_personalized.cli.main,
    [],
    12,
    ["--limit", "7"],
    "source.limit",
    ["--source", "nowhere"],
    ("training",),
)
pytestmark = pytest.mark.parametrize(
    "builder",
    [*BUILDERS, *heavy(CHINESE, TRAINING)],
    ids=lambda builder: "-".join([builder.name, *builder.verb]),
)


@pytest.fixture
def run(builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Run the builder's command in this process and in a folder with what it may ask."""
    by_apertium(tmp_path, monkeypatch)
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PAIRS), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    words = in_process(builder.name, builder.main, monkeypatch, capsys)
    return lambda *given: words(*builder.verb, *given)


class Recorder:
    """Notes the key of each answer that is recorded, and fails like a server that is gone after `most` of them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.keys: list[str] = []
        self.most = math.inf
        record = Ledger.record

        def noted(ledger: Ledger, *answers: Answer) -> None:
            if len(self.keys) + len(answers) > self.most:
                raise CallsError("The server is gone.")
            self.keys += [answer.key for answer in answers]
            record(ledger, *answers)

        monkeypatch.setattr(Ledger, "record", noted)


@pytest.fixture
def recorder(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> Recorder:
    assert builder.sample.release.is_dir()  # made before, as it records calls too
    return Recorder(monkeypatch)


def test_the_sample_verifies_and_rebuilds_and_says_what_is_next(builder: Builder, tmp_path: Path) -> None:
    release, said = builder.sample
    manifest = read_manifest(release)
    for part in (
        f"{manifest.name} {manifest.version}, {manifest.ledger.calls:,} recorded calls",
        *(table.digest[:16] for table in manifest.tables),
        "Next:",
    ):
        assert part in said
    assert not release.with_name(f"{release.name}.work").exists()
    assert verify(release) == []
    assert not any(rebuild(release, tmp_path / "again"))
    assert files_of(tmp_path / "again")[ROW_DIGESTS] == files_of(release)[ROW_DIGESTS]


def test_the_lines_that_say_what_is_next_run_as_they_stand(
    builder: Builder, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    release, said = builder.sample
    shutil.copytree(release, tmp_path / "dist" / release.name)
    monkeypatch.chdir(tmp_path)
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["dependency-groups"]
    commands = {"pluralbench-release": pluralbench_release.cli.main, "pluralbench": pluralbench.commands.app.main}
    ran = []
    for line in said.rpartition("Next:")[2].splitlines():
        words = shlex.split(line, comments=True)
        if words[:2] != ["uv", "run"]:
            assert line in {"", f"  read dist/{release.name}/README.md, the card"}
            continue
        words = words[2:]
        if words[0] == "--group":
            assert words[1] in groups
            words = words[2:]
        name, *given = words
        ran.append(name)
        if name == "python":
            exec(given[1], {})  # noqa: S102 - what the builder prints
            assert "num_rows" in capsys.readouterr().out
            continue
        run = in_process(name, commands[name], monkeypatch, capsys)
        status, text = run(*(tmp_path if word == "MODEL" else word for word in given))
        if name == "pluralbench":
            assert (status, f"{tmp_path} is not a model folder" in text) == (2, True), text
        else:
            assert (status, "match the manifest" in text) == (0, True), text
    assert ran[:2] == ["pluralbench-release", "python"]


def test_the_same_command_again_asks_nothing_and_writes_the_same_bytes(
    builder: Builder, run: Run, recorder: Recorder, tmp_path: Path
) -> None:
    made = builder.sample.release
    shutil.copytree(made, tmp_path / "dist" / made.name)
    recorder.most = 0
    status, said = run()
    assert (status, ", 0 of them new" in said) == (0, True), said
    assert files_of(tmp_path / "dist" / made.name) == files_of(made)


def test_a_replay_of_a_ledger_asks_nobody(builder: Builder, run: Run, recorder: Recorder, tmp_path: Path) -> None:
    made = builder.sample.release
    recorder.most = 0
    (tmp_path / "bin/apertium").unlink()
    status, said = run("--replay", made / LEDGER, "--out", tmp_path / "out")
    assert (status, ", 0 of them new" in said) == (0, True), said
    assert files_of(tmp_path / "out")[ROW_DIGESTS] == files_of(made)[ROW_DIGESTS]


def test_an_interrupted_build_goes_on_and_asks_nothing_twice(
    builder: Builder, run: Run, recorder: Recorder, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    recorder.most = builder.calls // 2
    refused(run(*builder.asks, "--out", out), "The server is gone.", "are recorded; rerun the same command to resume")
    assert not out.exists()
    assert 0 < len(recorder.keys) < builder.calls
    recorder.most = math.inf
    assert run(*builder.asks, "--out", out)[0] == 0
    assert len(recorder.keys) == len({*recorder.keys}) == builder.calls
    assert (verify(out), out.with_name("out.work").exists()) == ([], False)

    recorder.most = 0
    assert run(*builder.asks, "--replay", out, "--out", tmp_path / "replayed")[0] == 0
    assert files_of(tmp_path / "replayed")[ROW_DIGESTS] == files_of(out)[ROW_DIGESTS]


def test_another_recipe_is_refused_by_name_and_fresh_starts_over(builder: Builder, run: Run, tmp_path: Path) -> None:
    out = shutil.copytree(builder.sample.release, tmp_path / "out")
    before = files_of(out)
    key = builder.key.rpartition(".")[2]
    refused(run(*builder.other, "--out", out), f"{out} was made with other settings ({key} ")
    assert files_of(out) == before
    assert run(*builder.other, "--out", out, "--fresh")[0] == 0
    assert verify(out) == []
    assert files_of(out)[ROW_DIGESTS] != before[ROW_DIGESTS]


def test_a_mistake_costs_nothing(builder: Builder, run: Run, recorder: Recorder, tmp_path: Path) -> None:
    before = files_of(tmp_path)
    recorder.most = 0
    refused(run(*builder.mistake, "--out", tmp_path / "new"), "nowhere")
    assert files_of(tmp_path) == before
    out = shutil.copytree(builder.sample.release, tmp_path / "out")
    refused(run(*builder.mistake, "--out", out, "--fresh"), "nowhere")
    assert files_of(out) == files_of(builder.sample.release)


@pytest.mark.parametrize("fresh", [[], ["--fresh"]], ids=["", "fresh"])
def test_what_somebody_else_made_is_left_alone(
    builder: Builder, run: Run, tmp_path: Path, fresh: Sequence[str]
) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/thesis.txt").write_text("mine", encoding="utf-8")
    before = files_of(tmp_path)
    refused(run(*builder.asks, "--out", "mine", *fresh), "mine has files that no build wrote")
    refused(run(*builder.asks, "--out", "mine/thesis.txt", *fresh), "thesis.txt is a file")
    assert files_of(tmp_path) == before
