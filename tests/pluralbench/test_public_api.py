"""What `pluralbench` offers, and what importing it costs."""

import inspect
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

import pluralbench
import polars as pl
import pytest
from chat_server import Reply, serve
from commands import environment
from live_hub import NO_NETWORK
from pluralbench.commands.app import program
from pluralbench.errors import BenchmarkError, EvaluationError, RunError
from pluralbench.results import Run
from pluralbench.results.kinds import RUN_KINDS
from pluralbench_rewards import Group
from written_tables import write
from written_verdicts import written


def by_length(sign: float) -> Callable[[Sequence[Group]], list[list[float]]]:
    """A model that scores a response by its length times `sign`."""

    return lambda groups: [[sign * len(text) for text in group.responses] for group in groups]


def test_every_public_name_is_there_and_documented() -> None:
    assert len(pluralbench.__all__) <= 34
    for name in pluralbench.__all__:
        one = getattr(pluralbench, name)
        assert inspect.getdoc(getattr(one, "__origin__", one)), name


def test_every_verb_with_a_run_is_a_public_function() -> None:
    entries = {verb: entry for listed in program.verbs.values() for verb, entry in listed.items()}
    for verb in RUN_KINDS:
        assert getattr(pluralbench, verb.replace("-", "_")) is resolve_name(entries[verb].function)


@pytest.mark.parametrize(
    "name", [name for name in pluralbench.__all__ if inspect.isfunction(getattr(pluralbench, name))]
)
def test_each_argument_of_a_function_is_explained(name: str) -> None:
    function = getattr(pluralbench, name)
    text = inspect.getdoc(function) or ""
    missing = [argument for argument in inspect.signature(function).parameters if f"    {argument}: " not in text]
    assert not missing, missing
    says = text.startswith("Return ") or "Returns:" in text
    assert says or inspect.signature(function).return_annotation is None


def test_results_have_a_row_for_each_run_the_best_of_a_benchmark_first(
    score: Callable[..., Run], tmp_path: Path
) -> None:
    nothing = tmp_path / "nothing"
    nothing.mkdir()
    names = {"a": 1.0, "b": -1.0, "c": 0.0}
    runs = {
        name: score("pairs", "sample", by=by_length(sign), out=tmp_path / "runs" / name) for name, sign in names.items()
    }
    score("rankings", "sample", out=tmp_path / "runs" / "d")
    frame = pluralbench.load_results(tmp_path)
    assert frame["benchmark"].to_list() == ["pairs"] * 3 + ["rankings"]
    pairs = frame.filter(benchmark="pairs")
    assert pairs["overall"].is_sorted(descending=True)
    for row in pairs.iter_rows(named=True):
        run = runs[Path(row["run"]).name]
        assert pluralbench.load_run(row["run"]).summary().row(0, named=True) == row
        number = run.headline
        assert (row["overall"], row["low"], row["high"], row["n"]) == (
            number.value,
            number.low,
            number.high,
            run.items_counted,
        )
        assert (row["model"], row["profile"], row["ties"]) == (run.name, "none", run.count("ties"))
    assert pairs.filter(pl.col("run").str.ends_with("c"))["ties"].item() == runs["c"].items_counted
    with pytest.raises(RunError, match="contains no run"):
        pluralbench.load_results(nothing)


def test_a_run_is_one_line_and_a_short_table(score: Callable[..., Run]) -> None:
    run = score("personalized", "sample", by=by_length(0.0))
    assert repr(run) == (
        f"<Run of score: {run.name} on Personalized RewardBench (sample), 0.0 % [0.0, 11.8], 24 items, {run.path}>"
    )
    shown = run._repr_html_()
    assert (escape(repr(run)[1:-1]) in shown, "<table" in shown) == (True, True)


def test_a_suite_has_a_row_for_each_benchmark(tmp_path: Path) -> None:
    done = pluralbench.suite(
        by_length(1.0), "plural", only=["personalized", "chinese"], data="sample", out=tmp_path / "s"
    )
    assert done.summary()["benchmark"].sort().to_list() == ["chinese", "personalized"]
    assert repr(done).startswith("<Suite ")
    assert repr(done).count("\n") == 0
    assert all(name in done._repr_html_() for name in done.runs)
    assert pluralbench.load_results(done.path).height == 2


def test_a_figure_and_a_page_are_made_of_runs_and_of_directories(score: Callable[..., Run], tmp_path: Path) -> None:
    run = score("pairs", "sample", out=tmp_path / "runs" / "a")
    figure: Any = pluralbench.plot(run)
    assert "<svg" in figure._repr_svg_()
    assert pluralbench.plot(tmp_path / "runs", "forest_pairs").axes
    with pytest.raises(
        EvaluationError, match=r"have no figure forest_pair; did you mean `forest_pairs`\? choose one of"
    ):
        pluralbench.plot([run], "forest_pair")
    other = score("rankings", "sample", out=tmp_path / "runs" / "b")
    with pytest.raises(
        EvaluationError, match=r"of several benchmarks; pass `figure=...`, one of forest_pairs, forest_r"
    ):
        pluralbench.plot([run, other])
    page = pluralbench.html([other, tmp_path / "runs" / "a"], tmp_path / "page.html")
    text = page.read_text(encoding="utf-8")
    assert run.config.benchmark.title in text
    assert other.config.benchmark.title in text


def test_names_stand_for_a_benchmark_its_sample_and_a_kind_of_context(tmp_path: Path) -> None:
    items = pluralbench.load_items("personalized", "sample")
    assert items.frame.height == 24
    run = pluralbench.score(by_length(1.0), data="sample", prompt="raw", out=tmp_path / "a")
    assert (run.config.prompt.profile, run.config.data.digest) == ("raw", items.digest)
    with pytest.raises(BenchmarkError, match="did you mean `personalized`"):
        pluralbench.load_items("personalised", "sample")


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (
            lambda: pluralbench.score(by_length(1.0), data="sample", prompt="rwa"),  # type: ignore[arg-type]
            "PromptConfig: `profile` must be one of none, raw, plan, persona; it is `rwa` (did you mean `raw`?).",
        ),
        (
            lambda: pluralbench.PromptConfig(profile="x"),
            "PromptConfig: `profile` must be one of none, raw, plan, persona; it is `x`.",
        ),
        (
            lambda: pluralbench.PromptConfig(profil="raw"),  # type: ignore[call-arg]
            "PromptConfig: unknown key `profil`; did you mean `profile`?",
        ),
        (
            lambda: pluralbench.DataConfig(limit=0),
            "DataConfig: `limit`: Input should be greater than or equal to 1.",
        ),
    ],
)
def test_a_wrong_value_of_a_configuration_says_which_there_are(make: Callable[[], Any], sentence: str) -> None:
    with pytest.raises(pluralbench.UserError) as caught:
        make()
    assert str(caught.value) == sentence
    assert isinstance(caught.value, ValueError)


def test_importing_the_command_loads_no_torch() -> None:
    code = (
        "import sys, pluralbench, pluralbench.commands.app\n"
        "heavy = 'torch', 'transformers', 'datasets', 'xllamacpp', 'inspect_ai'\n"
        "print([name for name in heavy if name in sys.modules])"
    )
    shown = subprocess.run(
        [sys.executable, "-c", code], env=environment(), capture_output=True, encoding="utf-8", check=True, timeout=60
    )
    assert shown.stdout == "[]\n"


# A function, a judge, and what is refused; verdicts without a figure.
NO_TORCH = """
import json, sys, pluralbench
from pluralbench import ConnectionConfig, LocalModel, ServedModel
from pluralbench.data.verdict_tables import read_verdicts
from pluralbench.reports.verdicts import verdict_rows
from pluralbench_rewards.served.engine import ServingConfig
words = json.loads(sys.stdin.readline())
data, base_url = words["data"], words["base_url"]
by = lambda groups: [[float(len(r)) for r in g.responses] for g in groups]
pluralbench.score(by, benchmark="pairs", data=data, out="scored")
pluralbench.judge("j", benchmark="pairs", data=data, connection=ConnectionConfig(base_url=base_url), out="judged")
verdict_rows(read_verdicts(words["verdicts"]))
for model in ("./missing", "."):
    try:
        pluralbench.score(model, benchmark="pairs", data=data, out="refused")
    except pluralbench.UserError as error:
        assert "is not a model folder" in str(error)
served = ServedModel(model=LocalModel(name="org/name"), serving=ServingConfig(server=("http://127.0.0.1:9",)))
try:
    pluralbench.score(served, benchmark="pairs", data=data, out="refused")
except pluralbench.UserError as error:
    assert "No server answers at http://127.0.0.1:9 " in str(error)
heavy = ("torch", "transformers", "datasets", "xllamacpp", "matplotlib", "pandas")
print([name for name in heavy if name in sys.modules])
"""
ABSENT = """\
score ./absent --data sample
score {model} --kind implicit --reference ./absent --data sample
score org/absent --data sample
score {model} --device nosuch --data sample
judge org/absent --data sample
judge {model} --benchmark pairs --data p.jsonl --out scored
train ./absent --data sample --out trained
train-planner ./absent --data sample --out planner
plan ./absent --data sample
personalize ./absent --data sample
best-of-n --policy ./absent --reward {model} --data sample --judge local
best-of-n --policy {model} --reward ./absent --data sample --judge local
optimize --policy ./absent --reward {model} --data sample
optimize --policy {model} --reward ./absent --data sample
score local --data sample
"""
REFUSE = """
import pluralbench_calls.backends.local
from pluralbench.commands.app import main

pluralbench_calls.backends.local.PACKAGE = "no_package_of_this_name"
for line in sys.stdin:
    sys.argv = ["pluralbench", *line.split()]
    try:
        main()
    except SystemExit as end:
        print(end.code, "torch" in sys.modules)
import pluralbench_local.loading
print("transformers.modeling_utils" in sys.modules)
"""


@pytest.mark.heavy
def test_torch_is_imported_for_a_model_that_is_loaded_here_and_matplotlib_for_figures(tmp_path: Path) -> None:
    """The imports take seconds; that of transformers' models is left until one is loaded."""
    model = tmp_path / "model"
    model.mkdir()
    for name, text in (("config.json", "{}"), ("model.safetensors", "weights")):
        (model / name).write_text(text, encoding="utf-8")
    commands = ABSENT.format(model=model)
    pair = {"prompt": "Tea?", "chosen": "Yes.", "rejected": "No.", "note": "not read"}
    pairs = [{"id": f"q{number}", **pair} for number in range(3)]
    words = {"data": str(write(tmp_path / "p.jsonl", pairs)), "verdicts": str(written(tmp_path))}
    with serve(lambda *_: Reply("[[A]]")) as server:
        shown = subprocess.run(
            [sys.executable, "-c", NO_TORCH + REFUSE],
            input=f"{json.dumps(words | {'base_url': server.base_url})}\n{commands}",
            cwd=tmp_path,
            env=environment(NO_NETWORK | {"HF_HOME": str(tmp_path), "XDG_CACHE_HOME": str(tmp_path)}),
            capture_output=True,
            encoding="utf-8",
            check=True,
            timeout=240,
        )
    assert shown.stdout.splitlines() == ["[]", *["2 False"] * commands.count("\n"), "False"], shown.stderr
