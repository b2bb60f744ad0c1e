"""`leaderboard --from-hub`: results that others published stand beside the runs, marked as not checked."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import yaml
from commands import in_process
from html_runs import Read
from huggingface_hub import HfApi, eval_result_entries_to_yaml
from live_hub import Fault, Hub
from made_runs import changed, keep, scored
from pluralbench.commands.app import main
from pluralbench.errors import RunError
from pluralbench.leaderboard import published
from pluralbench.publishing.evaluation_file import READ_ERRORS, evaluation_entries, read_entries, with_entries
from pluralbench.publishing.model_card import eval_results
from pluralbench.results.runs import Run

Command = Callable[..., tuple[int, str]]
FILE, COMMIT, DATASET = ".eval_results/pluralbench.yaml", "c" * 40, "org/pairs"
HOSTILE = "<script>alert(1)</script>"
EVALUATION = "tasks: [{id: overall}, {id: default, config: default}]\n"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `pluralbench` with these words in this process."""
    return in_process("pluralbench", main, monkeypatch, capsys)


@pytest.fixture
def mine(tmp_path: Path) -> Run:
    """A run on a dataset of the Hub, whose rows are here."""
    rows = [{"id": n, "prompt": f"q{n}", "chosen": "x" * (n + 1), "rejected": "yyy"} for n in range(12)]
    pl.DataFrame(rows).write_ndjson(tmp_path / "pairs.jsonl")
    made = scored("pairs", tmp_path / "pairs.jsonl", tmp_path / "runs/mine")
    return keep(changed(made, data__location=DATASET, data__revision=COMMIT))


def file_of(run: Run, **changes: object) -> bytes:
    """The evaluation file that PluralBench would write of a run, with changes of its overall number."""
    entries = eval_result_entries_to_yaml(evaluation_entries(eval_results(run), run.provenance.finished, None))
    entries[0].update(changes)
    return yaml.safe_dump(entries).encode()


def model(hub: Hub, name: str, file: bytes, card: str = "A model.") -> None:
    hub.create(name, "models").commit({"README.md": card.encode(), FILE: file})


def test_what_others_published_is_shown_apart_and_what_cannot_be_read_is_named(
    run: Command, mine: Run, hub: Hub, tmp_path: Path
) -> None:
    notes = str(yaml.safe_load(file_of(mine))[0]["notes"])
    hub.publish(DATASET, {"eval.yaml": EVALUATION})
    model(hub, "theirs/tuned", file_of(mine, value=61.26), "---\nbase_model: org/base\n---\n")
    model(hub, "theirs/proposed", b"[]")
    repository = hub.repository("theirs/proposed", "models")
    branch = repository.open_pull_request(repository.find("main") or "", "Add", "somebody")
    repository.commit({FILE: file_of(mine, value=70, date="2026-02-03")}, on=branch)
    unlike: dict[str, dict[str, object]] = {
        "theirs/fraction": {"value": 0.61, "notes": f"no-tools {HOSTILE}"},
        "theirs/without": {"notes": None},
        "theirs/points": {"value": 412},
        "theirs/text": {"value": "61 %"},
        "theirs/flag": {"value": True},
        "theirs/nothing": {"value": float("nan")},
        "theirs/other": {"notes": notes.replace("Overall", "Accuracy")},
        "theirs/rule": {"notes": f"{notes} by weights"},
    }
    for name, changes in unlike.items():
        model(hub, name, file_of(mine, **changes))
    model(hub, "theirs/gone", file_of(mine))
    hub.faults.append(Fault("HEAD", "/theirs/gone/resolve", 403, times=9))

    # The Hub hides models with a base model, and the client reads the answer.
    names = {one.model_id for one in HfApi().get_dataset_leaderboard(DATASET)}
    assert {one.model_id for one in HfApi().get_dataset_leaderboard(DATASET, base_model_only=False)} - names == {
        "theirs/tuned"
    }
    data = tmp_path / "pairs.jsonl"
    words = ["leaderboard", tmp_path / "runs", "--any-data", "--data", data, "--site", tmp_path / "site"]
    status, said = run(*words, "--from-hub", DATASET)
    assert status == 0, said
    assert f"2 results on {DATASET} from models' repositories and pull requests on the Hub, in percent" in said
    lines = [line for line in said.splitlines() if line.startswith("Not shown: ")]
    assert {line.split()[2] for line in lines} == {*unlike, "theirs/gone"}
    page = Read((tmp_path / "site/index.html").read_text(encoding="utf-8"))
    shown = page.text[page.text.index("Published on the Hub, not checked") :]
    assert shown.index("theirs/proposed") < shown.index("theirs/tuned")
    for part in ("70.0", "open pull request 1", "2026-02-03", "61.3", "the model's repository", COMMIT[:12]):
        assert part in shown
    assert "0.61" not in shown
    assert all(" ".join(line.split()) in shown for line in lines)
    assert HOSTILE in page.text


@pytest.mark.parametrize(
    ("dataset", "sentence"),
    [
        (
            "org/others",
            "No run is on the Hub's dataset 'org/others', so published results cannot be compared with any;",
        ),
        (DATASET, f"The Hub's leaderboard of {DATASET} cannot be read ("),
    ],
)
def test_a_dataset_without_a_leaderboard_or_without_runs_is_refused(
    run: Command, mine: Run, hub: Hub, tmp_path: Path, dataset: str, sentence: str
) -> None:
    hub.publish(DATASET, {"pairs.jsonl": "{}"})
    words = ["leaderboard", mine.path.parent, "--any-data", "--site", tmp_path / "site", "--from-hub", dataset]
    status, said = run(*words)
    assert (status, f"Error: {sentence}" in said, said.count("\n")) == (2, True, 1), said
    assert not (tmp_path / "site").exists()


@pytest.mark.parametrize(
    "text",
    [
        "- &a0 [lol, lol]\n" + "".join(f"- &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]\n" for n in range(1, 12)),
        "- &a0 {b: 1}\n" + "".join(f"- &a{n} {{<<: [{', '.join([f'*a{n - 1}'] * 10)}]}}\n" for n in range(1, 12)),
        "- {}\n" * 300_000,
        "[" * 100_000,
        "a: 1",
    ],
)
def test_entries_that_could_be_of_any_length_are_refused(text: str) -> None:
    with pytest.raises(READ_ERRORS):
        read_entries(text)


def test_an_evaluation_file_with_a_number_that_cannot_be_written_is_refused() -> None:
    text = "- {dataset: {id: a/b, task_id: c}, value: 0x" + "f" * 6000 + "}\n"
    with pytest.raises(RunError, match=r"m cannot be read \(Exceeds the limit"):
        with_entries(text, [], "m")


@pytest.mark.parametrize("odd", [10**15, 16**6000, -(16**6000), [16**6000], {"a": 1}], ids=range(5))
def test_an_entry_of_any_value_is_named_in_a_few_words(mine: Run, odd: Any) -> None:
    entry = evaluation_entries(eval_results(mine), "2026-01-01", None)[0]
    rules = {mine.config.benchmark.rule}
    for place, said in (("value", "its value is not a number in percent: ("), ("notes", "its notes do not state")):
        reason = published._read_notes(replace(entry, **{place: odd}), rules)
        assert str(reason).startswith(said)
        assert len(str(reason)) < 200
