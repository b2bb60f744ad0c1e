"""Results on the Hub: runs as a dataset that loads, and numbers on a model's card."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import cast

import polars as pl
import pytest
import yaml
from commands import in_process
from full_disk import no_file_beyond
from huggingface_hub import EvalResultEntry, ModelCard, ModelCardData, parse_eval_result_entries
from live_hub import READER, Fault, Hub, point_clients
from made_runs import changed, keep, scored
from pluralbench.commands.app import main
from pluralbench.errors import RunError
from pluralbench.publishing import fetch_results, push_results, write_model_card
from pluralbench.publishing.model_card import TITLE
from pluralbench.reports.runs import report_frame
from pluralbench.results.finding import find_runs
from pluralbench.results.runs import Run

Command = Callable[..., tuple[int, str]]


@pytest.fixture
def report(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """Run `pluralbench` with these words in this process."""
    return in_process("pluralbench", main, monkeypatch, capsys)


@pytest.fixture
def run_of(tmp_path: Path) -> Callable[..., Run]:
    """`run_of("a")`: a run on six pairs in `runs/a`, of the model of this name."""
    rows = [{"id": n, "prompt": f"q{n}", "chosen": "x" * (n + 1), "rejected": "yyy"} for n in range(6)]
    pl.DataFrame(rows).write_ndjson(tmp_path / "pairs.jsonl")

    def make(name: str, model: str = "m", folder: str = "runs", reverse: bool = False) -> Run:
        def by(_: str, responses: Sequence[str]) -> list[float]:
            return [(-1.0 if reverse else 1.0) * len(response) for response in responses]

        return scored("pairs", tmp_path / "pairs.jsonl", tmp_path / folder / name, by, model=model)

    return make


def test_runs_are_pushed_loaded_and_fetched(
    report: Command, run_of: Callable[..., Run], hub: Hub, tmp_path: Path
) -> None:
    runs = [run_of("a"), run_of("b", "n", reverse=True)]
    status, said = report("report", tmp_path / "runs/a", "--push", "org/my-results", "--create")
    assert (status, "org/my-results has 1 run, 1 of them new: http" in said) == (0, True), said
    repository = hub.repository("org/my-results")
    card = repository.files()["README.md"].decode() + "\n## Ours\n\nBy hand.\n"
    repository.commit({"README.md": card.encode(), "notes.txt": b"mine"})
    pushed = push_results([tmp_path / "runs"], "org/my-results")
    assert (pushed.new, pushed.names) == (["b"], ["a", "b"])
    files = repository.files()
    assert files["README.md"].decode().endswith("## Ours\n\nBy hand.\n")
    assert files["notes.txt"] == b"mine"
    for run in runs:
        for path in run.path.iterdir():
            assert files[f"runs/{run.path.name}/{path.name}"] == path.read_bytes()
    metrics = pl.read_parquet(files["data/metrics/test.parquet"])
    expected = report_frame(runs).with_columns(pl.col("run").str.split("/").list.last())
    assert metrics.sort(metrics.columns).equals(expected.select(metrics.columns).sort(metrics.columns))
    items = pl.read_parquet(files["data/pairs_items/test.parquet"])
    assert dict(items.group_by("run").len().iter_rows()) == {"a": 6, "b": 6}
    # As others read it.
    fetched = find_runs([fetch_results("org/my-results")]).runs
    assert {run.path.name: run.headline for run in fetched} == {run.path.name: run.headline for run in runs}
    assert len(find_runs([fetch_results("org/my-results", repository.messages()[-2][0])]).runs) == 1
    # The same again is no commit.
    before = repository.find("main")
    assert push_results([tmp_path / "runs"], "org/my-results").new == []
    assert repository.find("main") == before


@pytest.mark.heavy
def test_results_load_by_config(
    run_of: Callable[..., Run], hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import datasets

    point_clients(monkeypatch, hub, tmp_path / "home")
    run = run_of("a")
    push_results([run.path], "org/my-results", create=True)
    assert datasets.get_dataset_config_names("org/my-results") == ["metrics", "pairs_items"]
    metrics = datasets.load_dataset("org/my-results", "metrics", split="test")
    assert len(metrics) == run.metrics.height
    assert set(datasets.load_dataset("org/my-results", "pairs_items", split="test")["run"]) == {"a"}


def test_another_run_of_the_name_and_two_of_one_name_are_refused(
    report: Command, run_of: Callable[..., Run], hub: Hub, tmp_path: Path
) -> None:
    push_results([run_of("a").path], "org/my-results", create=True)
    wrote = hub.wrote()
    other = run_of("a", folder="other", reverse=True).path
    assert report("report", other, "--push", "org/my-results")[1].endswith(
        f"Error: org/my-results has another run named a; rename {other}.\n"
    )
    with pytest.raises(RunError, match=r"a and .*a are both named a; rename one of them\.$"):
        push_results([tmp_path / "runs", other], "org/my-results")
    assert hub.wrote() == wrote


def test_a_secret_in_a_run_is_not_pushed(run_of: Callable[..., Run], hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_of("a")
    monkeypatch.setenv("MY_API_KEY", "sk-0123456789")
    (run.path / "notes.txt").write_text("It is sk-0123456789.", encoding="utf-8")
    with pytest.raises(RunError, match=r"notes\.txt contains a key, token or password of this environment"):
        push_results([run.path], "org/my-results", create=True)
    assert hub.asked == []


def test_what_the_hub_does_not_have_is_told(
    report: Command, run_of: Callable[..., Run], hub: Hub, tmp_path: Path
) -> None:
    run = run_of("a")
    status, said = report("report", run.path, "--push", "org/my-results")
    assert (status, said.rpartition("Error: ")[2]) == (
        2,
        "The dataset org/my-results does not exist on the Hub, or you may not read it; fix the name, or create it "
        "with `--create`.\n",
    )
    hub.create("org/plain")
    with pytest.raises(RunError, match="org/plain on the Hub has no directory `runs`, so it contains no runs"):
        fetch_results("org/plain")
    with pytest.raises(RunError, match=r"'plain' is not the name of a dataset on the Hub \(ORG/NAME\)"):
        fetch_results("plain")


def somebody_elses(text: str = "A card.") -> str:
    return f"""---
license: mit
model-index:
- name: Theirs
  results:
  - task:
      type: text-classification
    dataset:
      name: Tea
      type: tea
    metrics:
    - type: accuracy
      value: 0.5
---
{text}
"""


def metadata(card: str) -> ModelCardData:
    return cast("ModelCardData", ModelCard(card).data)


def accuracies(card: str) -> dict[tuple[str, str | None], float]:
    results = metadata(card).eval_results or []
    return {(one.dataset_type, one.dataset_config): one.metric_value for one in results}


@pytest.mark.parametrize("on_hub", [False, True])
def test_numbers_stand_on_a_models_card(
    report: Command, run_of: Callable[..., Run], hub: Hub, tmp_path: Path, on_hub: bool
) -> None:
    run, again = run_of("a"), run_of("b", reverse=True)
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "README.md").write_text(somebody_elses(), encoding="utf-8")
    repository = hub.create("org/model", "models")
    repository.commit({"README.md": somebody_elses().encode()})

    def card() -> str:
        return repository.files()["README.md"].decode() if on_hub else (folder / "README.md").read_text("utf-8")

    where = "org/model" if on_hub else str(folder)
    if on_hub:
        hub.faults.append(Fault("POST", "/commit/", first=lambda: repository.commit({"notes.txt": b"mine"})))
    status, said = report("report", run.path, "--model-card", where)
    assert (status, f"Wrote the results to the card of {where}: " in said) == (0, True), said
    found = ModelCard(card())
    assert (metadata(card()).license, metadata(card()).model_name, found.text.strip()) == ("mit", "Theirs", "A card.")
    assert accuracies(card())["tea", None] == 0.5
    assert accuracies(card())["pairs", None] == pytest.approx(run.headline.value, abs=1e-6)
    args = next(one for one in metadata(card()).eval_results or [] if one.dataset_type == "pairs").metric_args
    assert args is not None
    assert (args["low"], args["high"], args["level"]) == (run.headline.low, run.headline.high, 0.95)
    write_model_card([again], where)  # the same benchmark: in its place
    assert len(accuracies(card())) == len(metadata(card()).eval_results or [])
    assert accuracies(card())["pairs", None] == pytest.approx(again.headline.value, abs=1e-6)


FILE, COMMIT = ".eval_results/pluralbench.yaml", "a" * 40
THEIRS = "- dataset: {id: cais/hle, task_id: default}\n  value: 20.9\n  notes: no-tools\n  later: 1\n"


def on_hub(run: Run, **changes: object) -> Run:
    """The run as one on a dataset of the Hub."""
    return keep(changed(run, data__location="org/pairs", data__revision=COMMIT, **changes))


def entries_of(text: str | bytes) -> dict[tuple[str, str], EvalResultEntry]:
    return {(one.dataset_id, one.task_id): one for one in parse_eval_result_entries(yaml.safe_load(text))}


def test_a_models_evaluation_file_is_what_the_hub_reads(
    report: Command, run_of: Callable[..., Run], tmp_path: Path
) -> None:
    folder = tmp_path / "model"
    (folder / ".eval_results").mkdir(parents=True)
    (folder / FILE).write_text(THEIRS, encoding="utf-8")
    local = run_of("local")
    assert report("report", local.path, "--model-card", folder)[0] == 0
    assert (folder / FILE).read_text("utf-8") == THEIRS  # the file has no place for data outside the Hub
    run = on_hub(run_of("a"))
    for _ in range(2):
        status, said = report("report", run.path, "--model-card", folder)
        assert (status, f"{folder / 'README.md'}, {folder / FILE}\n" in said) == (0, True), said
    text = (folder / FILE).read_text("utf-8")
    found = entries_of(text)
    assert len(found) == len(yaml.safe_load(text)) == 2 + len(run.configs)
    assert yaml.safe_load(text)[0] == yaml.safe_load(THEIRS)[0]
    overall, headline = found["org/pairs", "overall"], run.headline
    assert headline.value is not None
    assert headline.low is not None
    assert headline.high is not None
    assert overall.value == pytest.approx(100 * headline.value, abs=1e-3)
    assert (overall.dataset_revision, overall.date) == (COMMIT, run.provenance.finished)
    assert overall.source_url is None
    interval = f"95% interval {100 * headline.low:.2f} to {100 * headline.high:.2f}"
    for part in ("; percent; ", interval, f"n = {headline.n}", f"rule: {run.config.benchmark.rule}"):
        assert part in (overall.notes or "")
    write_model_card([on_hub(run_of("told"), prompt__profile="raw")], str(folder))  # other settings stand beside it
    assert len(yaml.safe_load((folder / FILE).read_text("utf-8"))) == 1 + 2 * (1 + len(run.configs))
    before = (folder / "README.md").read_bytes()
    (folder / FILE).write_text("- value: 1\n", encoding="utf-8")
    with pytest.raises(RunError, match=r"pluralbench\.yaml cannot be read \(.*\); fix or delete it\.$"):
        write_model_card([run], str(folder))
    assert (folder / "README.md").read_bytes() == before


def test_results_are_proposed_to_a_model_of_others(
    report: Command, run_of: Callable[..., Run], hub: Hub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    repository = hub.create("theirs/model", "models")
    head = repository.commit({FILE: THEIRS.encode()})
    monkeypatch.setenv("HF_TOKEN", READER)
    status, said = report("report", run_of("local").path, "--create-pr", "theirs/model")
    assert (status, "None of the runs has a number on a dataset of the Hub" in said) == (2, True), said
    status, said = report("report", on_hub(run_of("a")).path, "--create-pr", "theirs/model")
    assert (status, f"{hub.url}/theirs/model/discussions/1" in said) == (0, True), said
    assert repository.find("main") == head
    assert set(entries_of(repository.files("refs/pr/1")[FILE])) >= {("cais/hle", "default"), ("org/pairs", "overall")}
    assert "README.md" not in repository.files("refs/pr/1")
    # Others' pull requests are others'.
    hub.repository("theirs/model", "models").open_pull_request(head, TITLE, "somebody")
    told = on_hub(run_of("told"), prompt__profile="raw")
    for name, does in (("a", "Found the same results in"), ("told", "Updated the open pull request to")):
        status, said = report("report", tmp_path / "runs" / name, "--create-pr", "theirs/model")
        assert (status, f"{does} theirs/model: {hub.url}/theirs/model/discussions/1" in said) == (
            0,
            True,
        ), said
    entries = yaml.safe_load(repository.files("refs/pr/1")[FILE])
    assert len(entries) == 1 + 2 * (1 + len(told.configs))
    assert len(repository.pull_requests) == 2


def test_entries_say_where_the_runs_are_and_are_not_proposed_again(
    report: Command, run_of: Callable[..., Run], hub: Hub
) -> None:
    repository = hub.create("org/model", "models")
    words = ["--push", "org/runs", "--create", "--model-card", "org/model", "--create-pr", "org/model"]
    status, said = report("report", on_hub(run_of("a")).path, *words)
    commit = repository.find("main")
    assert (status, f"Found the same results in org/model: {hub.url}/org/model/tree/{commit}" in said) == (0, True), (
        said
    )
    assert not repository.pull_requests
    entry = entries_of(repository.files()[FILE])["org/pairs", "overall"]
    source = f"{hub.url}/datasets/org/runs/tree/{hub.repository('org/runs').find('main')}"
    assert (entry.source_url, entry.source_name) == (source, "PluralBench runs")


def test_a_card_of_several_models_or_of_none_is_refused(run_of: Callable[..., Run], tmp_path: Path) -> None:
    runs = [run_of("a"), run_of("b", "n")]
    with pytest.raises(
        RunError, match=r"takes runs of one model, but the runs are of m, n; pass only the runs of x\.$"
    ):
        write_model_card(runs, "x")
    with pytest.raises(RunError, match=r"x is neither a model directory nor a model on the Hub \(ORG/NAME\)"):
        write_model_card(runs[:1], "x")
    write_model_card(runs[:1], str(tmp_path))
    assert metadata((tmp_path / "README.md").read_text("utf-8")).model_name == tmp_path.name


def test_a_card_stays_whole_on_a_full_disk(run_of: Callable[..., Run], report: Command, tmp_path: Path) -> None:
    path, run = tmp_path / "README.md", run_of("a")
    card = somebody_elses("By hand. " * 4000)
    for name in ("README.md", "page.html", "table.md"):
        (tmp_path / name).write_text(card, encoding="utf-8")
    written = ("--model-card", tmp_path), ("--html", tmp_path / "page.html"), ("--out", tmp_path / "table.md")
    for option, place in written:
        with no_file_beyond(60 if option == "--out" else 20_000):
            assert report("report", run.path, option, place)[0] == 2
    for name in ("README.md", "page.html", "table.md"):
        assert (tmp_path / name).read_text(encoding="utf-8") == card
    assert not list(tmp_path.glob("*.new"))
    path.write_text("\ufeff" + card.replace("\n", "\r\n"), encoding="utf-8", newline="")
    write_model_card([run], str(tmp_path))
    written_card = path.read_bytes().decode()
    assert written_card.count("license: mit") == 1
    assert written_card.count("---\r\n") == 2
    assert "pairs" in {one.dataset_type for one in metadata(written_card).eval_results or []}


OTHERS = """---
# Ours.
license: mit
tags: [b, a]
base_model: &base org/base  # not a guess
model-index:
- name: First
  note: of ours
  results:
  - task: {type: text-classification, of: us}
    dataset: {name: Tea, type: tea}
    metrics: [{type: accuracy, value: 0.5, seed: 1}]
    by: us
  - task: {type: text-classification}
    dataset: {name: Coffee, type: coffee}
    metrics: []
# When it was made.
date: 2024-01-02
version: 1.10
model_name: Ours
again: *base
---
Text.

---
A rule.
"""
LAST = "model-index" + OTHERS.partition("model-index")[2].partition("# When")[0]


@pytest.mark.parametrize("others", [OTHERS, OTHERS.replace("---\n", "---  \n", 2), OTHERS.replace(LAST, "") + LAST])
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_all_of_a_card_but_its_results_stays_as_it_is_written(
    run_of: Callable[..., Run], tmp_path: Path, line_break: str, others: str
) -> None:
    if others.endswith(LAST):
        others = others.removesuffix(LAST).replace("---\nText", f"{LAST}---\nText")
    path = tmp_path / "README.md"
    path.write_text(others.replace("\n", line_break), encoding="utf-8", newline="")
    for _ in range(2):
        write_model_card([run_of("a")], str(tmp_path))
    card = path.read_bytes().decode()
    before, after = (yaml.safe_load(text.split("---")[1])["model-index"] for text in (others, card))
    assert after[0]["results"][:2] == before[0]["results"]
    assert {one["dataset"]["type"] for one in after[0]["results"][2:]} == {"pairs"}
    assert after[0] | {"results": 0} == before[0] | {"results": 0}
    kept = others.replace("\n", line_break).partition(LAST.replace("\n", line_break))
    assert card.startswith(kept[0])
    assert card.endswith(kept[2])


@pytest.mark.parametrize(
    ("card", "said"),
    [
        ("---\rlicense: mit\r---\rText", "README.md begins with --- but its YAML has no end"),
        ("---\nmodel-index:\n- {name: a}\n- {name: b}\n---\n", "`model-index` has 2 models (a, b), none or several"),
        ("---\nmodel-index: &a\n- {name: a}\nb: *a\n---\n", "README.md cannot be read (found undefined alias"),
        ("---\nmodel-index:\n- {name: a, results: [5]}\n---\n", "README.md cannot be read"),
        ("---\n- a\n---\n", "README.md cannot be read (it has no keys)"),
        ("---\nlicense: mit\n---\nGr\udcfcn", "README.md is not UTF-8; save it as UTF-8."),
        pytest.param(
            "---\na: " + "[" * 1200 + "\n---\n",
            "README.md cannot be read (maximum recursion depth exceeded",
            marks=pytest.mark.heavy,
        ),
    ],
)
def test_a_card_that_cannot_be_read_or_changed_without_a_loss_stays(
    run_of: Callable[..., Run], tmp_path: Path, card: str, said: str
) -> None:
    path = tmp_path / "README.md"
    path.write_bytes(card.encode(errors="surrogateescape"))
    with pytest.raises(RunError, match=re.escape(said)):
        write_model_card([run_of("a")], str(tmp_path))
    assert path.read_bytes() == card.encode(errors="surrogateescape")


def test_runs_are_found_once_and_only_below_the_folder(run_of: Callable[..., Run], tmp_path: Path) -> None:
    run_of("a")
    elsewhere = run_of("b", folder="elsewhere/deep").path
    runs = tmp_path / "runs"
    for number in range(12):  # each leads to a folder that holds all of them
        (runs / f"again{number}").mkdir()
        for other in range(12):
            (runs / f"again{number}" / f"to{other}").symlink_to(runs / f"again{other}")
    (runs / "out").symlink_to(tmp_path)
    (runs / "away").symlink_to(elsewhere.parent.parent)
    assert [run.path.name for run in find_runs([runs]).runs] == ["a"]
    (runs / "linked").symlink_to(elsewhere)  # a run itself
    assert [run.path.name for run in find_runs([runs]).runs] == ["a", "linked"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(RunError, match=r"The directory .*loop does not exist\."):
        find_runs([tmp_path / "loop"])


def test_names_are_no_formulas_tags_or_controls_in_any_form(
    report: Command, run_of: Callable[..., Run], tmp_path: Path
) -> None:
    run_of("a", "=1+1")
    run_of("b", "<img src=x>\x1b[2J")
    shown = {form: report("report", tmp_path / "runs", "--format", form)[1] for form in ("csv", "markdown", "json")}
    assert "'=1+1" in shown["csv"]
    assert "&lt;img src=x>" in shown["markdown"]
    assert not set("".join(shown.values())) & {"\x1b"}


def test_a_run_in_a_folder_that_cannot_be_read_is_left_out_and_named(
    report: Command, run_of: Callable[..., Run], tmp_path: Path
) -> None:
    run_of("a")
    bad = run_of("b", "n").path
    (bad / "items.parquet").write_bytes(b"PAR1 no more")
    status, said = report("report", tmp_path / "runs", "--format", "json")
    assert (status, f"Skipped: {bad / 'items.parquet'} cannot be read" in said, '"m"' in said) == (0, True, True), said
    assert report("report", bad)[0] == 2
