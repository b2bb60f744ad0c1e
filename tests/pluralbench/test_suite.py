"""`suite`: the runs of `score` with one loaded model, the row of their numbers, and what is refused."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pluralbench
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from killing import killed_at, stopped_at
from pluralbench import DataConfig, LocalModel, PromptConfig
from pluralbench.config import ScoringConfig
from pluralbench.contract import Group
from pluralbench.data.metric_key import MetricKey
from pluralbench.data.suites import Suite, find_suite, known_suites
from pluralbench.errors import BenchmarkError, EvaluationError, RunError
from pluralbench.evaluation.compare_suites import compare_suites
from pluralbench.metrics.frame import metrics_frame
from pluralbench.results import Run
from pluralbench.results.suite import SUITE_FILE, SuiteRecord, SuiteRun, load_suite
from pluralbench_measures.bootstrap import Estimate
from pluralbench_rewards import FunctionModel, ModelRecord, RewardModel
from pluralbench_runs import OutputError, UserError
from verbs import by_length, by_text
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]


@pytest.fixture
def small(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    """The file of a suite of two columns, the second of two benchmarks."""
    for seed, name in enumerate("abc"):
        write(tmp_path / f"{name}.jsonl", pairs(9, seed=seed))
    entries = {name: f'{{ name = "pairs", run = "{name}", location = "{tmp_path}/{name}.jsonl" }}' for name in "abc"}
    return written(
        tmp_path,
        f'title = "Small"\n[[columns]]\nname = "First"\nbenchmarks = [{entries["a"]}]\n'
        f'[[columns]]\nname = "Others"\nbenchmarks = [{entries["b"]}, {entries["c"]}]\n',
    )


def written(folder: Path, text: str) -> Path:
    path = folder / "small.toml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture
def loads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the models that were loaded."""
    names: list[str] = []

    def load(model: LocalModel, _: ScoringConfig) -> RewardModel:
        names.append(model.name)
        return FunctionModel(by_text)

    monkeypatch.setattr("pluralbench_local.loading.load_to_score", load)
    return names


@pytest.fixture
def folder(tmp_path: Path) -> str:
    """A model's folder, to be loaded by `loads`."""
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_text("weights", encoding="utf-8")
    (folder / "config.json").write_text("{}", encoding="utf-8")
    return str(folder)


@pytest.mark.heavy
def test_each_run_is_that_of_score_to_the_digit(tmp_path: Path) -> None:
    done = pluralbench.suite(by_text, "plural", data="sample", only=["Chinese", "PersonalRewardBench"], out=tmp_path)
    assert list(done.runs) == ["chinese", "arena-personalized", "prism-personalized"]
    for name, run in done.runs.items():
        alone = pluralbench.score(by_text, benchmark=name, data="sample", out=tmp_path / "alone" / name)
        assert run.config == alone.config
        assert run.metrics.equals(alone.metrics)
        assert run.items.equals(alone.items)
    own = [done.runs[name].headline.value or 0 for name in done.runs]
    columns = [done.column(column).value for column in done.suite.columns]
    assert columns == [None, None, own[0], pytest.approx((own[1] + own[2]) / 2)]
    assert done.mean.estimate.value == pytest.approx((own[0] + (own[1] + own[2]) / 2) / 2)
    assert (done.mean.columns, done.mean.total) == (2, 4)


def test_the_suite_of_releases_has_every_shape() -> None:
    suite = known_suites()["release"]
    assert len(suite.columns) == 7
    assert len(next(column for column in suite.columns if column.name == "PPE correctness").benchmarks) == 5
    for benchmark in suite.benchmarks:
        assert pluralbench.load_items(benchmark.name, "sample").frame.height


def test_one_model_is_loaded_and_none_for_a_finished_suite(
    small: Path, folder: str, loads: list[str], tmp_path: Path
) -> None:
    first = pluralbench.suite(folder, small, only=["Others"], out=tmp_path / "out")
    assert loads == [folder]
    assert first.column(first.suite.columns[0]).value is None
    whole = pluralbench.suite(folder, small, out=tmp_path / "out")
    assert loads == [folder] * 2
    assert (whole.mean.columns, whole.mean.total) == (2, 2)
    again = pluralbench.suite(folder, small, out=tmp_path / "out")
    assert loads == [folder] * 2, "nothing was left to score"
    assert [run.provenance for run in again.runs.values()] == [run.provenance for run in whole.runs.values()]


def test_a_stopped_suite_goes_on(small: Path, tmp_path: Path) -> None:
    whole = pluralbench.suite(by_text, small, out=tmp_path / "whole")
    with stopped_at(2, FunctionModel, "score"):
        pluralbench.suite(by_text, small, out=tmp_path / "out")
    [run] = load_suite(tmp_path / "out").runs.values()
    made = (run.path / "run.json").read_bytes()
    done = pluralbench.suite(by_text, small, out=tmp_path / "out")
    assert (run.path / "run.json").read_bytes() == made
    assert done.mean == whole.mean
    for name, one in done.runs.items():
        assert one.items.equals(whole.runs[name].items)


def test_options_for_every_benchmark_and_for_one(small: Path, tmp_path: Path) -> None:
    done = pluralbench.suite(
        by_text,
        small,
        data={"b": str(tmp_path / "a.jsonl")},
        options=DataConfig(limit=4),
        out=tmp_path / "out",
    )
    assert [run.items.height for run in done.runs.values()] == [4, 4, 4]
    assert done.runs["b"].headline == done.runs["a"].headline
    assert done.runs["a"].config.data.limit == 4


@pytest.mark.heavy
def test_user_context_is_for_benchmarks_that_have_some(tmp_path: Path) -> None:
    done = pluralbench.suite(
        by_text,
        "plural",
        only=["personalized", "chinese", "arena-personalized"],
        data="sample",
        prompt=PromptConfig(profile="raw", profile_size=2),
        out=tmp_path / "out",
    )
    profiles = {name: run.config.prompt.profile for name, run in done.runs.items()}
    assert profiles == {"personalized": "raw", "chinese": "none", "arena-personalized": "raw"}


@pytest.mark.heavy
def test_shards_of_a_suite_are_merged_into_its_row(small: Path, tmp_path: Path) -> None:
    exact: dict[str, Any] = {"out": tmp_path / "out"}
    shards = [pluralbench.suite(by_text, small, shard=f"{number}/2", **exact) for number in (1, 2)]
    assert shards[0].shard == "1/2"
    assert load_suite(tmp_path / "out").runs == {}
    for name in "abc":
        pluralbench.merge([shard.runs[name].path for shard in shards])
    whole = pluralbench.suite(by_text, small, out=tmp_path / "whole")
    assert pluralbench.suite(by_text, small, **exact).mean == whole.mean


VALUES = st.floats(0, 1) | st.none()


def suite_of(values: Sequence[Sequence[float | None]], ran: Callable[[int, int], bool]) -> SuiteRun:
    """A suite whose columns have these overall numbers."""
    keys = {(column, place): f"{column}-{place}" for column, own in enumerate(values) for place in range(len(own))}
    columns = [
        {"name": str(column), "benchmarks": [{"name": "pairs", "run": keys[column, at]} for at in range(len(own))]}
        for column, own in enumerate(values)
    ]
    record = SuiteRecord(
        suite=Suite.model_validate({"title": "t", "columns": columns}), model=ModelRecord(name="m", kind="function")
    )
    nothing: Any = None
    runs: dict[str, Run] = {}
    for (column, place), key in keys.items():
        if ran(column, place):
            metrics = metrics_frame([(MetricKey("overall"), Estimate(values[column][place]))])
            config: Any = SimpleNamespace(data=SimpleNamespace(digest=key))
            runs[key] = Run(Path(key), config, nothing, nothing, metrics)
    return SuiteRun(Path("x"), record, runs)


@given(st.lists(st.lists(VALUES, min_size=1, max_size=5), min_size=1, max_size=6), st.data())
def test_the_mean_is_over_columns_whose_benchmarks_all_have_a_number(
    values: list[list[float | None]], data: st.DataObject
) -> None:
    left_out = data.draw(st.sets(st.sampled_from([(c, p) for c, own in enumerate(values) for p in range(len(own))])))
    done = suite_of(values, lambda column, place: (column, place) not in left_out)
    expected: list[float] = []
    for place, (column, own) in enumerate(zip(done.suite.columns, values, strict=True)):
        known = [value for at, value in enumerate(own) if value is not None and (place, at) not in left_out]
        if len(known) < len(own):
            assert done.column(column).value is None
        else:
            expected.append(sum(known) / len(known))
            assert done.column(column).value == pytest.approx(expected[-1])
    mean = done.mean
    assert (mean.columns, mean.total) == (len(expected), len(values))
    assert mean.estimate.value == (pytest.approx(sum(expected) / len(expected)) if expected else None)


@pytest.mark.heavy
def test_every_format_has_the_same_numbers(small: Path, model: str, run: Command, tmp_path: Path) -> None:
    words = ["suite", model, "--suite", small, "--device", "cpu", "--out", tmp_path / "out"]
    status, table, log = run(*words)
    assert status == 0
    assert [f"Benchmark {number} of 3: {name} (9 items)" in log for number, name in enumerate("abc", 1)] == [True] * 3
    done = load_suite(tmp_path / "out")
    mean = done.mean.estimate
    assert mean.value is not None
    assert mean.low is not None
    shown = f"{100 * mean.value:.1f} [{100 * mean.low:.1f}, "
    assert "mean of 2 of 2" in table
    assert "Mean over 2 of 2 columns, unweighted." in " ".join(table.split())
    reports = run("report", tmp_path / "out")[1]
    assert f"\n\n{table.strip()}" in reports  # after the table of each benchmark, an empty line between
    for form, head in (("table", "First"), ("markdown", "| model"), ("latex", r"\begin{tabular}")):
        status, text, log = run(*words, "--format", form)
        assert status == 0
        assert head in text
        assert shown in text
    [row] = json.loads(run(*words, "--format", "json")[1])
    assert (row["mean"]["value"], row["mean"]["columns"], row["mean"]["of"]) == (mean.value, 2, 2)
    assert row["columns"]["Others"]["items"] == 18
    assert row["columns"]["Others"]["benchmarks"]["b"]["value"] == done.runs["b"].headline.value
    page = tmp_path / "page.html"
    csv = tmp_path / "row.csv"
    csv.write_text(run(*words, "--format", "csv", "--html", page)[1], encoding="utf-8")
    assert pl.read_csv(csv)["mean.value"].to_list() == [mean.value]
    assert pl.read_csv(csv)["columns.First.value"].to_list() == [done.runs["a"].headline.value]
    assert '">Suites' in page.read_text(encoding="utf-8")
    assert "mean of 2 of 2" in page.read_text(encoding="utf-8")
    assert "mean of 2 of 2" in run("report", tmp_path / "out")[1]
    assert "mean of 2 of 2" not in run("report", tmp_path / "out" / "a")[1]


def test_a_row_of_some_columns_says_which_are_missing(small: Path, model: str, run: Command, tmp_path: Path) -> None:
    words = ["suite", model, "--suite", small, "--device", "cpu", "--out", tmp_path / "out"]
    status, table, _ = run(*words, "--only", "First", "--only", "b")
    assert status == 0
    assert "mean of 1 of 2" in table
    assert "Mean over 1 of 2 columns (without Others), unweighted." in " ".join(table.split())
    missing = "Columns without a number, because benchmarks were not run: Others (1 of 2: c)."
    assert missing in " ".join(table.split())


@pytest.mark.heavy
def test_two_suites_are_compared_by_their_benchmarks_and_means(small: Path, run: Command, tmp_path: Path) -> None:
    suites = [
        pluralbench.suite(one, small, only=only, out=tmp_path / one.__name__)
        for one, only in ((by_text, ["a", "b", "c"]), (by_length, ["a", "b"]))
    ]
    both = [tmp_path / "by_text", tmp_path / "by_length"]
    found = json.loads(run("compare", *both, "--json")[1])
    assert list(found["benchmarks"]) == ["a", "b"]
    assert (list(found["means"]), found["left_out"]) == (["First", "mean"], ["c"])
    pluralbench.suite(by_length, small, out=both[1])
    found = json.loads(run("compare", *both, "--json")[1])
    numbers = [{key: one.headline.value or 0.0 for key, one in load_suite(path).runs.items()} for path in both]
    for name, own in found["benchmarks"].items():
        assert own["headline"] == pluralbench.compare(suites[0].runs[name].path, both[1] / name).as_dict()["headline"]
    by_hand = [first["a"] / 2 + (first["b"] + first["c"]) / 4 for first in numbers]
    mean = found["means"]["mean"]
    assert [mean["first"], mean["second"], mean["difference"]] == pytest.approx([*by_hand, by_hand[1] - by_hand[0]])
    assert mean["low"] < mean["difference"] < mean["high"]
    assert (mean["p_value"] < 0.05) == (mean["low"] > 0 or mean["high"] < 0)
    status, said, _ = run("compare", *both)
    assert (status, " on 3 benchmarks" in " ".join(said.split())) == (0, True)
    with pytest.raises(RunError, match="are different suites"):
        compare_suites(
            suites[0], pluralbench.suite(by_text, "plural", only=["Chinese"], data="sample", out=tmp_path / "o")
        )


def test_benchmarks_of_the_same_data_count_once(pairs: Callable[..., Rows], tmp_path: Path) -> None:
    data = {name: write(tmp_path / f"{name}.jsonl", pairs(count)) for name, count in (("many", 30), ("two", 2))}
    names = {"first": "many", "second": "many", "third": "many", "small": "two"}
    entries = [f'{{ name = "pairs", run = "{name}", location = "{data[own]}" }}' for name, own in names.items()]
    columns = [
        f'[[columns]]\nname = "{name}"\nbenchmarks = [{own}]\n'
        for name, own in (("Same", ", ".join(entries[:3])), ("Few", entries[3]))
    ]
    suite = written(tmp_path, 'title = "Same"\n' + "".join(columns))
    done = [pluralbench.suite(one, suite, out=tmp_path / one.__name__) for one in (by_text, by_length)]
    found = compare_suites(*done)
    alone = found.benchmarks["first"].headline
    same = found.means["Same"]
    assert (same.low, same.high, same.p_value) == pytest.approx((alone.low, alone.high, alone.p_value))
    mean, whole = done[0].column(done[0].suite.columns[0]), done[0].runs["first"].headline
    assert (mean.low, mean.high, mean.n) == pytest.approx((whole.low, whole.high, whole.n))
    assert found.sentence.endswith(" on 4 benchmarks, of which small has no interval.")


def test_a_suite_file_includes_suites_and_takes_benchmark_files(tmp_path: Path) -> None:
    own = tmp_path / "mine.toml"
    own.write_text('title = "Mine"\n[columns]\nprompt = ["question"]\n', encoding="utf-8")
    path = written(
        tmp_path,
        f'title = "t"\nincludes = ["plural"]\ncolumns = [{{ name = "Mine", benchmarks = [{{ name = "{own}" }}] }}]\n',
    )
    found = find_suite(path)
    assert [column.name for column in found.columns][-2:] == ["PersonalRewardBench", "Mine"]
    assert [*found.benchmarks][-1].key == "mine"
    every = known_suites()
    assert every["all"].columns == every["release"].columns + every["plural"].columns


COLUMN = '[[columns]]\nname = "A"\nbenchmarks = [{ name = "pairs" }]\n'
BAD = {
    "no column": ('title = "t"\n', "the suite has no columns"),
    "no benchmark": ('title = "t"\n[[columns]]\nname = "A"\nbenchmarks = []\n', "`columns.0.benchmarks` is empty"),
    "one column twice": ('title = "t"\n' + COLUMN + COLUMN, "two columns have the name `A`"),
    "one benchmark twice": (
        'title = "t"\n' + COLUMN + COLUMN.replace('"A"', '"B"'),
        "two benchmarks have the name `pairs`; give one of them a `run = ...`",
    ),
    "an unknown benchmark": ('title = "t"\n' + COLUMN.replace("pairs", "pair"), "did you mean `pairs`?"),
    "an unknown suite": ('title = "t"\nincludes = ["relase"]\n' + COLUMN, "did you mean `release`?"),
    "an unknown key": ('title = "t"\n' + COLUMN.replace("name =", "nam =", 1), "unknown key `columns.0.nam`"),
    "a run that is no name": (
        'title = "t"\n' + COLUMN.replace('"pairs"', '"pairs", run = "../x"'),
        "`columns.0.benchmarks.0.run`",
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_a_bad_suite_file_is_refused_in_one_sentence(tmp_path: Path, case: str) -> None:
    text, part = BAD[case]
    with pytest.raises(BenchmarkError) as caught:
        find_suite(written(tmp_path, text))
    assert part in str(caught.value)
    assert "\n" not in str(caught.value)
    assert "small.toml" in str(caught.value)


def test_unknown_names_are_refused(small: Path, tmp_path: Path) -> None:
    with pytest.raises(BenchmarkError, match=r"Unknown suite 'relase'; did you mean `release`\? choose release, "):
        find_suite("relase")
    out: dict[str, Any] = {"out": tmp_path / "out"}
    for options, part in (
        ({"only": ["Other"]}, "`only=Other`: no such benchmark is chosen"),
        ({"data": {"d": "x"}}, "`data=d`: no such benchmark is chosen; choose from a, b, c"),
        ({"data": {"a": "x"}, "only": ["b"]}, "choose from b"),
        ({"data": str(tmp_path)}, "is for a single benchmark, but 3 are chosen"),
        ({"options": DataConfig(split="train")}, "`split='train'` belongs to a single benchmark"),
        ({"shard": "3/2"}, "is not of the form I/N"),
    ):
        with pytest.raises(EvaluationError) as caught:
            pluralbench.suite(by_text, small, **options, **out)
        assert part in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_all_data_that_cannot_be_read_are_named_before_a_model_is_loaded(
    small: Path, folder: str, loads: list[str], run: Command, tmp_path: Path
) -> None:
    (tmp_path / "a.jsonl").unlink()
    write(tmp_path / "c.jsonl", [{"id": "1", "prompt": "p", "chosen": "c"}])
    status, shown, log = run("suite", folder, "--suite", small, "--out", tmp_path / "out")
    assert (status, shown, loads) == (2, "", [])
    first, *others = log.splitlines()
    assert first.startswith("Error: 2 of 3 benchmarks cannot be loaded, and nothing was scored")
    assert "`--data`" in first
    assert [line.partition(":")[0] for line in others] == ["- a", "- c"]
    assert "rejected" in others[1]
    assert not (tmp_path / "out").exists()


def test_another_model_or_suite_in_a_directory_is_refused_by_name(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out"
    pluralbench.suite(by_text, small, only=["a"], out=out)
    with pytest.raises(OutputError, match=r"model\.name by_text, now by_length"):
        pluralbench.suite(by_length, small, out=out)
    with pytest.raises(OutputError, match="other settings"):
        pluralbench.suite(by_text, "plural", data="sample", out=out)
    with pytest.raises(OutputError, match="is the run of a single benchmark"):
        pluralbench.suite(by_text, small, out=out / "a")
    (out / "a" / "notes.txt").write_text("mine", encoding="utf-8")
    done = pluralbench.suite(by_length, small, out=out, fresh=True)
    assert {run.name for run in done.runs.values()} == {"by_length"}
    [kept] = tmp_path.glob("out.kept-*")
    assert f"The suite of by_text that was in {out} is in {kept} now." in " ".join(capsys.readouterr().err.split())
    assert (kept / "a" / "notes.txt").read_text(encoding="utf-8") == "mine"
    assert [*load_suite(kept).runs] == ["a"]


@pytest.mark.parametrize("mistake", ["data", "model"])
def test_a_mistake_replaces_nothing(
    small: Path, folder: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mistake: str
) -> None:
    def unreadable(*_: Any) -> RewardModel:
        raise UserError("the model cannot be loaded")

    monkeypatch.setattr("pluralbench_local.loading.load_to_score", unreadable)
    out = tmp_path / "out"
    before = pluralbench.suite(by_text, small, out=out)
    with pytest.raises(UserError):
        pluralbench.suite(folder, small, data={"b": "typo"} if mistake == "data" else None, out=out, fresh=True)
    assert [run.provenance for run in load_suite(out).runs.values()] == [run.provenance for run in before.runs.values()]
    assert not [*tmp_path.glob("out.kept-*")]


@pytest.mark.heavy
@pytest.mark.parametrize("name", ["..", "../x.toml/..", ".work.toml"])
def test_a_suite_from_elsewhere_names_no_folder_outside_its_own(small: Path, tmp_path: Path, name: str) -> None:
    out = tmp_path / "v" / "out"
    pluralbench.suite(by_text, small, only=["a"], out=out)
    (tmp_path / "v" / "run.json").write_text("{}", encoding="utf-8")
    record = json.loads((out / SUITE_FILE).read_text(encoding="utf-8"))
    record["config"]["suite"]["columns"][1]["benchmarks"][0] = {"name": name}
    (out / SUITE_FILE).write_text(json.dumps(record), encoding="utf-8")
    with pytest.raises(RunError, match=r"suite\.columns\.1\.benchmarks\.0.*the name"):
        load_suite(out)
    pluralbench.suite(by_length, small, out=out, fresh=True)
    assert {path.name for path in (tmp_path / "v").iterdir()} == {"out", "run.json"}


def test_a_run_with_other_settings_is_refused_before_any_benchmark_is_scored(small: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    pluralbench.suite(by_text, small, only=["c"], options=DataConfig(limit=3), out=out)
    with pytest.raises(OutputError, match="limit 3, now none"):
        pluralbench.suite(by_text, small, out=out)
    assert [*load_suite(out).runs] == ["c"]


def test_two_models_of_one_name_have_directories_of_their_own(
    small: Path, loads: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folders = [tmp_path / parent / "model" for parent in ("a", "b")]
    for place, folder in enumerate(folders):
        folder.mkdir(parents=True)
        (folder / "model.safetensors").write_text(f"weights {place}", encoding="utf-8")
        (folder / "config.json").write_text("{}", encoding="utf-8")
    done = [pluralbench.suite(str(folder), small, only=["a"]) for folder in folders]
    assert done[0].path.name == "small-model"
    assert done[1].path.name.startswith("small-model-")
    assert loads == [str(folder) for folder in folders]
    assert pluralbench.suite(str(folders[1]), small, only=["a"]).path == done[1].path


def test_a_directory_without_a_suite_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="has no suite"):
        load_suite(tmp_path)
    (tmp_path / "suite.json").write_text("{}", encoding="utf-8")
    with pytest.raises(RunError, match=r"suite\.json"):
        load_suite(tmp_path)


@pytest.mark.heavy
@pytest.mark.parametrize("change", range(0, 40, 6))
def test_a_suite_killed_at_any_change_of_files_goes_on(
    small: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: int
) -> None:
    with killed_at(change, monkeypatch) as killed:
        pluralbench.suite(by_text, small, out=tmp_path / "out")
    assert killed()
    done = pluralbench.suite(by_text, small, out=tmp_path / "out")
    assert len(done.runs) == 3
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["a", "b", "c", "suite.json"]


@pytest.mark.heavy
def test_what_was_scored_before_an_interruption_is_not_scored_again(small: Path, tmp_path: Path) -> None:
    class Interrupted(RuntimeError):
        pass

    def some(self: FunctionModel, groups: Sequence[Group], **rest: Any) -> Any:
        rest["on_scored"](dict(enumerate(by_text(groups[:4]))))
        raise Interrupted

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(FunctionModel, "score", some)
        with pytest.raises(Interrupted):
            pluralbench.suite(by_text, small, out=tmp_path / "out")
    done = pluralbench.suite(by_text, small, out=tmp_path / "out")
    assert [run.scored.items_resumed for run in done.runs.values() if run.scored] == [4, 0, 0]


@pytest.mark.heavy
def test_a_server_that_dies_leaves_what_was_scored(small: Path, model: str, run: Command, tmp_path: Path) -> None:
    from engine_server import imitate

    words = ["suite", model, "--suite", small, "--device", "cpu", "--out", tmp_path / "out"]
    words += ["--batch-size", "2", "--concurrency", "1", "--verify-items", "1", "--max-retries", "0"]
    with imitate("vllm", model, ends_after=14) as dying:
        status, _, log = run(*words, "--server", dying.url)
    assert status == 2
    assert "rerun the same command to resume" in log
    finished = load_suite(tmp_path / "out").runs
    assert 0 < len(finished) < 3
    assert f"{len(finished)} of 3 benchmarks are finished in {tmp_path / 'out'}" in log
    with imitate("vllm", model) as server:
        assert run(*words, "--server", server.url)[0] == 0
    assert len(load_suite(tmp_path / "out").runs) == 3


@pytest.mark.heavy
def test_a_run_of_another_model_in_the_directory_is_refused_by_name(small: Path, tmp_path: Path) -> None:
    pluralbench.suite(by_text, small, out=tmp_path / "one")
    pluralbench.suite(by_length, small, out=tmp_path / "other")
    (tmp_path / "one" / "a").rename(tmp_path / "old")
    (tmp_path / "other" / "a").rename(tmp_path / "one" / "a")
    with pytest.raises(RunError, match=r"is a run of by_length, but .* has a suite of by_text"):
        load_suite(tmp_path / "one")
    with pytest.raises(UserError, match="was made with other settings"):
        pluralbench.suite(by_text, small, out=tmp_path / "one")
