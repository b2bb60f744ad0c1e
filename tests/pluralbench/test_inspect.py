"""Judges through inspect_ai: its providers get the requests of `judge`, and a log becomes the run of `judge`."""

import copy
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import reduce
from pathlib import Path
from typing import Any, NamedTuple

import inspect_evals
import polars as pl
import pytest
import verbs
from chat_server import ChatServer, serve
from hypothesis import example, given, settings
from hypothesis import strategies as st
from inspect_evals import by_text
from pluralbench import UserError, check_submission
from pluralbench.evaluation.inspect_logs import import_inspect
from pluralbench.results import Run
from pluralbench_calls import read_ledger
from polars.testing import assert_frame_equal
from written_tables import write

SENT = ("messages", "temperature", "top_p", "max_tokens", "reasoning_effort", "logprobs", "top_logprobs")
NOT_CALLS = ~pl.selectors.starts_with("calls")
JUDGED: dict[str, dict[str, Any]] = {
    "personalized": {"profile": "raw", "limit": 2},
    "chinese": {"protocol": "pointwise", "limit": 2},
    "multilingual": {"samples": 3, "temperature": 0.5, "orders": "one", "limit": 2},
    "pairs": {"reply_format": "structured", "max_tokens": 64, "extra": {"reasoning_effort": "low"}, "limit": 2},
    "probabilities": {"benchmark": "personalized", "logprobs": True, "tie_margin": 0.05, "limit": 2},
}
"""Arguments of `judge`, which are those of the task of the name, or of `judge` with the benchmark."""
ROWS = [
    {
        "id": f"q{number}",
        "prompt": f"Question {number}?{' REJECT ME' * (number == 2)}",
        "chosen": "Yes.",
        "rejected": "No.",
    }
    for number in range(5)
]


class Logs(NamedTuple):
    """Logs by name, and the requests behind them."""

    files: dict[str, Path]
    requests: set[str]


def sent(body: dict[str, Any]) -> str:
    """What a request asks, and how."""
    schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
    return json.dumps({"schema": schema} | {name: body.get(name) for name in SENT}, sort_keys=True)


@pytest.fixture(scope="module")
def server() -> Iterator[ChatServer]:
    with serve(by_text) as served:
        yield served


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("data") / "own.jsonl", ROWS)


@pytest.fixture(scope="module", autouse=True)
def _key_and_hook() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HERE_API_KEY", "none")
        patch.setattr(sys, "excepthook", sys.excepthook)  # inspect_ai puts its own there, once a process
        yield


@pytest.fixture
def inspect(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., tuple[int, str]]:
    """Run `inspect` with these words in this process: its exit status, and what it wrote."""

    def words_to_result(*words: str | Path) -> tuple[int, str]:
        from inspect_ai._cli.main import main

        monkeypatch.setattr(sys, "argv", ["inspect", *map(str, words)])
        status = 1
        with inspect_evals.own_settings():
            try:
                main()
            except SystemExit as exit_:
                status = int(exit_.code or 0)
            except Exception as error:  # noqa: BLE001 - Python shows any by this hook
                sys.excepthook(type(error), error, error.__traceback__)
        written = capsys.readouterr()
        return status, written.out + written.err

    return words_to_result


@pytest.fixture(scope="module")
def logs(server: ChatServer, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Logs:
    """Logs by name, of the tasks of `JUDGED`, and of others."""
    folder = tmp_path_factory.mktemp("logs")
    own = {"tasks": "pluralbench/judge", "task_args": {"benchmark": "pairs", "data": str(data)}}
    sample = {"tasks": "pluralbench/personalized", "task_args": {"data": "sample"}}
    evaluations: dict[str, dict[str, Any]] = {
        **{
            name: {
                "tasks": f"pluralbench/{'judge' if 'benchmark' in arguments else name}",
                "task_args": {"data": "sample", **arguments},
            }
            for name, arguments in JUDGED.items()
        },
        "mock": sample | {"model": "mock", "model_base_url": None, "temperature": 0.25, "limit": 5},
        "failed": own | {"fail_on_error": False},
        "stopped": sample | {"token_limit": 20, "limit": 1},  # a reply takes 15
        "epochs": own | {"epochs": 2},
    }
    common = {"model": "openai-api/here/judge-1", "model_base_url": server.base_url, "log_dir": str(folder)}
    with inspect_evals.own_settings():
        made = {name: inspect_evals.evaluate(**common | own) for name, own in evaluations.items()}
    statuses = [log.status for log in made.values()]
    assert statuses == ["success"] * (len(made) - 1) + ["error"]
    return Logs({name: Path(log.location) for name, log in made.items()}, {*map(sent, server.requests)})


def judged(server: ChatServer, name: str, out: Path, **options: Any) -> Run:
    return verbs.judge("judge-1", base_url=server.base_url, out=out, **{"benchmark": name, "data": "sample", **options})


def same_run(ours: Run[Any, Any], other: Run) -> None:
    """Assert that two runs have the same replies, verdicts and numbers; the names of their judges differ."""
    named = pl.col("judge").str.strip_prefix("here/")
    assert_frame_equal(ours.metrics.with_columns(named), other.metrics, check_exact=True)
    assert_frame_equal(ours.items.select(NOT_CALLS), other.items.select(NOT_CALLS), check_exact=True)
    if other.votes is not None:
        replies = [run.frame("replies").select(NOT_CALLS).drop("judge") for run in (ours, other)]
        assert_frame_equal(*replies, check_exact=True)
    left, right = (verbs.judging(run).model_dump(exclude={"model", "cost"}) for run in (ours, other))
    assert left == right
    columns = ("label", "outcome", "text", "prompt_tokens", "completion_tokens", "cached_tokens", "logprobs")
    calls = [read_ledger(run.path / "ledger.parquet").select(columns).sort(columns) for run in (ours, other)]
    assert_frame_equal(*calls)
    assert (ours.config.judging, ours.config.data) == (getattr(other.config, "judging", None), other.config.data)


@pytest.mark.heavy
@pytest.mark.parametrize("name", JUDGED)
def test_a_log_becomes_the_run_of_judge(name: str, logs: Logs, server: ChatServer, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    run, before = import_inspect(logs.files[name], out=tmp_path / "run"), len(server.requests)
    same_run(run, judged(server, name, tmp_path / "judge", **JUDGED[name]))
    assert {*map(sent, server.requests[before:])} <= logs.requests
    assert check_submission(run).state == "checked"
    results = read_eval_log(str(logs.files[name]), header_only=True).results
    assert results is not None
    shown = {number: metric.value for number, metric in results.scores[0].metrics.items()}
    overall = run.estimate("overall")
    expected = {"overall": overall.value, "overall_low": overall.low, "overall_high": overall.high}
    assert {number: shown.get(number) for number in expected} == expected
    assert shown["invalid"] == run.count("invalid")


@pytest.mark.heavy
def test_a_mocked_judge_of_the_first_samples_with_the_options_of_inspect(
    logs: Logs, server: ChatServer, tmp_path: Path
) -> None:
    run = import_inspect(logs.files["mock"], out=tmp_path / "run")
    config = run.items["config"][0]
    other = judged(server, "personalized", tmp_path / "judge", configs=[config], limit=5, temperature=0.25)
    assert_frame_equal(run.metrics, other.metrics, check_exact=True)
    assert_frame_equal(run.items.select(NOT_CALLS), other.items.select(NOT_CALLS), check_exact=True)
    assert run.config.data == other.config.data
    assert (run.config.model.provider, run.config.model.model) == ("mockllm", "judge-1")
    assert run.config.judging.temperature == run.config.model.temperature == 0.25
    assert check_submission(run).state == "checked"


@pytest.mark.heavy
def test_failed_samples_are_counted_as_invalid(logs: Logs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = import_inspect(logs.files["failed"], out=tmp_path / "run")
    assert "1 sample of 5 failed in the log and count as invalid (q2)." in capsys.readouterr().err
    outcomes = dict(run.items.select("id", "outcome").iter_rows())
    assert outcomes["q2"] == "invalid"
    assert run.items.height == len(ROWS)
    assert verbs.judging(run).invalid_reasons["rejected by the server"] == 1
    assert check_submission(run).state == "checked"


@pytest.mark.heavy
def test_data_that_moved_is_read_where_it_is_now(logs: Logs, data: Path, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / data.name
    moved.parent.mkdir()
    moved.write_bytes(data.read_bytes())
    run = import_inspect(logs.files["failed"], data=str(moved), out=tmp_path / "run")
    assert run.config.data.location == str(moved)
    write(moved, ROWS[:-1])
    with pytest.raises(UserError, match=r"was made from other data than .*elsewhere"):
        import_inspect(logs.files["failed"], data=str(moved), out=tmp_path / "other")


@pytest.mark.heavy
def test_a_second_log_does_not_pass_for_the_first(logs: Logs, tmp_path: Path) -> None:
    out = tmp_path / "run"
    first = import_inspect(logs.files["pairs"], out=out).items
    assert_frame_equal(import_inspect(logs.files["pairs"], out=out).items, first)
    other = edited(logs.files["pairs"], tmp_path / "other.eval", lambda log: swap_letters(log.samples))
    with pytest.raises(UserError, match="is a run of another log with the same settings"):
        import_inspect(other, out=out)
    assert not import_inspect(other, out=out, fresh=True).items.equals(first)


def swap_letters(samples: Any) -> None:
    for sample in samples:
        for call in sample.store["pluralbench"]["calls"]:
            call["text"] = call["text"].translate(str.maketrans("AB", "BA"))


def edited(log: Path, path: Path, change: Callable[[Any], object]) -> Path:
    """A copy of a log with a change."""
    from inspect_ai.log import read_eval_log, write_eval_log

    found = read_eval_log(str(log), resolve_attachments=True)
    change(found)
    write_eval_log(found, str(path))
    return path


def drop_replies(log: Any) -> None:
    log.samples[1].store["pluralbench"]["calls"] = log.samples[1].store["pluralbench"]["calls"][:-1]


def two_judges(log: Any) -> None:
    log.samples[1].store["pluralbench"]["judges"]["model"]["temperature"] = 0.5


REFUSED: dict[str, tuple[Callable[[Any], object], str]] = {
    "canceled": (lambda log: setattr(log, "status", "cancelled"), "its status is cancelled; finish it with"),
    "another task": (lambda log: log.eval.metadata.clear(), "which is no task of pluralbench"),
    "epochs": (lambda log: log.samples.append(log.samples[0].model_copy(update={"epoch": 2})), "has several epochs"),
    "other data": (
        lambda log: log.eval.metadata["pluralbench"]["data"].update(digest="0" * 64),
        "was made from other data than .*data.digest 00000000…, now",
    ),
    "other prompts": (
        lambda log: log.eval.metadata["pluralbench"].update(prompts_digest="0" * 64),
        "prompts in .* differ from those of this version",
    ),
    "other items": (lambda log: log.samples.pop(0), "and not the first ones of each config; choose items with"),
    "a reply is missing": (drop_replies, "has no reply for the verdict on"),
    "several judges": (two_judges, "has replies of several judges"),
    "no samples": (lambda log: log.samples.clear(), "has no replies"),
}


@pytest.mark.heavy
@pytest.mark.parametrize("case", REFUSED)
def test_a_log_that_is_not_of_a_run_is_refused_in_a_sentence(case: str, logs: Logs, tmp_path: Path) -> None:
    change, sentence = REFUSED[case]
    with pytest.raises(UserError, match=sentence):
        import_inspect(edited(logs.files["pairs"], tmp_path / "log.eval", change), out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.heavy
def test_a_sample_that_a_limit_stops_keeps_its_replies(logs: Logs, tmp_path: Path) -> None:
    from inspect_ai.log import read_eval_log

    stopped: Any = read_eval_log(str(logs.files["stopped"]))
    [sample] = stopped.samples
    assert sample.limit is not None
    assert [call["outcome"] for call in sample.store["pluralbench"]["calls"]] == ["answer"]
    with pytest.raises(UserError, match="has only failed samples"):
        import_inspect(logs.files["stopped"], out=tmp_path / "run")


def test_no_sample_has_no_numbers() -> None:
    from pluralbench.evaluation.inspect_tasks import run_metrics

    assert run_metrics("pairs")([]) == {}  # inspect_ai asks for it, and would warn of an error


ODD = [None, 5, -1, 2**70, "x", "", [], [1], {}, {"a": None}, "../..", "@gone@"]


def places(value: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The keys that lead to each value in a value, and to itself."""
    yield place
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, one in inside:
        yield from places(one, (*place, key))


@pytest.mark.heavy
def test_a_log_with_a_value_of_another_kind_is_read_or_refused_in_a_sentence(
    logs: Logs, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No log, whoever wrote it, is an internal error: what the task writes is changed in one place."""
    from inspect_ai import log as inspect_log

    log: Any = inspect_log.read_eval_log(str(logs.files["pairs"]), resolve_attachments=True)
    kept: dict[str, Any] = {
        "metadata": log.eval.metadata,
        "sample": log.samples[1].metadata,
        "store": log.samples[1].store,
        "stats": {"started_at": log.stats.started_at, "completed_at": log.stats.completed_at},
    }
    runs, changes = (
        0,
        st.tuples(st.sampled_from([place for place in places(kept) if len(place) > 1]), st.sampled_from(ODD)),
    )

    @given(changes)
    @example((("stats", "started_at"), ""))
    @example((("store", "pluralbench", "calls", 0, "prompt_tokens"), 2**70))
    @example((("store", "pluralbench", "calls", 0, "text"), 5))
    @example((("store", "pluralbench", "judges"), "@gone@"))
    @example((("sample", "config"), []))
    @example((("metadata", "pluralbench", "judging"), "x"))
    @settings(max_examples=60, deadline=None, database=None)
    def one_change(change: tuple[tuple[Any, ...], Any]) -> None:
        nonlocal runs
        runs += 1
        (*way, last), odd = change
        values = copy.deepcopy(kept)
        around = reduce(lambda value, key: value[key], way, values)
        if odd == "@gone@":
            del around[last]
        else:
            around[last] = odd
        changed = log.model_copy(deep=True)
        changed.eval.metadata = values.get("metadata")
        changed.samples[1].metadata, changed.samples[1].store = values.get("sample"), values.get("store") or {}
        times = {"started_at": "", "completed_at": ""} | (values.get("stats") or {})
        changed.stats = inspect_log.EvalStats.model_construct(**times)
        monkeypatch.setattr(inspect_log, "read_eval_log", lambda *_, **__: changed)
        with suppress(UserError):
            import_inspect("some.eval", out=tmp_path / f"run{runs}")

    one_change()


@pytest.mark.heavy
def test_an_evaluation_that_failed_is_refused_with_its_error(logs: Logs) -> None:
    with pytest.raises(UserError, match=r"is error .*leave out --epochs"):
        import_inspect(logs.files["epochs"])


@pytest.mark.heavy
def test_a_file_that_is_no_log_is_refused(tmp_path: Path) -> None:
    for name, content in (("log.eval", b"PK\x03\x04 damaged"), ("log.json", b"{}"), ("none.eval", None)):
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(UserError, match="cannot be read as a log of inspect_ai"):
            import_inspect(tmp_path / name)


def test_without_the_extra_the_error_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "inspect_ai", None)
    monkeypatch.setitem(sys.modules, "inspect_ai.log", None)
    with pytest.raises(UserError, match=r"need an extra: `.*pluralbench.*inspect.*`"):
        import_inspect(tmp_path / "log.eval")


@pytest.mark.heavy
def test_the_commands_as_a_user_types_them(
    inspect: Callable[..., tuple[int, str]],
    run: Callable[..., tuple[int, str, str]],
    server: ChatServer,
    tmp_path: Path,
) -> None:
    rows = write(tmp_path / "rows.jsonl", [row for row in ROWS if "REJECT" not in row["prompt"]])
    reached = ("--model", "openai-api/here/judge-1", "--model-base-url", server.base_url)
    quiet = ("--display", "plain", "--ctl-server", "false")
    words = ("eval", "pluralbench/pairs", *reached, *quiet, "--log-dir", tmp_path / "logs")
    status, shown = inspect(*words, "-T", f"data={rows}", "-T", "criterion=person", "--temperature", "0.5")
    assert status == 0, shown
    assert "overall_low" in shown
    [log] = (tmp_path / "logs").iterdir()
    status, shown, errors = run("import-inspect", log, "--out", tmp_path / "run")
    assert status == 0, errors
    assert "judge-1" in shown
    config = verbs.config(tmp_path / "run")
    assert (config["judging"]["criterion"], config["judging"]["temperature"]) == ("person", 0.5)
    status, shown = inspect("view", "bundle", "--log-dir", log.parent, "--output-dir", tmp_path / "view")
    assert status == 0, shown
    assert {"index.html", "logs"} <= {path.name for path in (tmp_path / "view").iterdir()}
    status, shown = inspect(*words, "-T", "data=sample", "-T", "limits=3")
    assert status == 1
    assert "`limits` is not an argument of the task; did you mean `limit`?" in " ".join(shown.split())
    assert "Traceback" not in shown
