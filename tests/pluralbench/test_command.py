"""The command `pluralbench`: what works says what it found, and what fails says so in one sentence.

Most cases call the command's entry point in this process; some run the installed command.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import pluralbench
import pytest
from chat_server import Reply, serve
from commands import command, fails, without_status
from live_hub import NO_NETWORK
from pluralbench import ConnectionConfig, DataConfig, JudgeConfig, LocalModel, PromptConfig
from pluralbench.arguments import OF_STEPS
from pluralbench.commands.app import program
from pluralbench.config import PersonaDataConfig, PersonaJudgeConfig, ScoringConfig
from pluralbench_calls import Price
from pluralbench_local.step_rewards import STEP_FIELDS
from pluralbench_runs import FrozenModel, PathText, UserError
from pluralbench_runs import command as command_module
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]
DESCRIPTIONS: dict[str, dict[str, type[FrozenModel]]] = {
    "score": {"model": LocalModel, "data": DataConfig, "prompt": PromptConfig, "scoring": ScoringConfig},
    "judge": {"data": DataConfig, "prompt": PromptConfig, "judging": JudgeConfig, "connection": ConnectionConfig},
    "judge-personas": {"data": PersonaDataConfig, "judging": PersonaJudgeConfig, "connection": ConnectionConfig},
}
FLAGS = {
    "location": "--data",
    "configs": "--config",
    "columns": "--column",
    "labels": "--label-value",
    "results": "--import",
}


@pytest.fixture
def data(pairs: Callable[..., Rows], tmp_path: Path) -> Path:
    return write(tmp_path / "p.jsonl", pairs(6))


def refused(result: tuple[int, str, str], *parts: str) -> None:
    """One sentence, that holds `parts`, on standard error and nothing else."""
    status, said, error = result
    assert (status, said) == (2, ""), error
    assert error.startswith("Error: ")
    assert error.count("\n") == 1
    assert error.endswith(".\n")
    for part in parts:
        assert part in error


def left(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


FITTING: dict[Any, dict[str, Any]] = {
    LocalModel: {"kind": "token", "token_position": "reply", "date": "2024-01-02", "device": "cpu"},
    JudgeConfig: {"protocol": "pairwise"},
}
"""What all fields of a configuration fit, but those of `WITHOUT`."""
WITHOUT: dict[Any, set[str]] = {
    LocalModel: {"label", "reference", "read", *STEP_FIELDS},
    JudgeConfig: {"prompt", "rubric", "rubric_model", "rubric_base_url"},
}


def words_and_value(annotation: Any) -> tuple[list[str], Any]:
    """What is written behind an option of this type, and what that is; no word where the option is a switch."""
    kinds = [kind for kind in get_args(annotation) or (annotation,) if kind is not type(None)]
    if get_origin(annotation) is Literal:
        return [kinds[-1]], kinds[-1]
    if get_origin(annotation) is tuple:
        return ["a=b"], (get_args(annotation)[0]("a=b"),)
    if get_origin(annotation) is dict:
        return ["a=1"], {"a": 1}
    kind = kinds[0]
    if get_origin(kind) is Literal:
        return words_and_value(kind)
    known: dict[Any, tuple[list[str], Any]] = {
        bool: ([], True),
        int: (["7"], 7),
        float: (["0.25"], 0.25),
        str: (["a"], "a"),
        PathText: (["a"], "a"),
        Path: (["a"], Path("a")),
        Price: (["1/2"], Price(input=1, output=2)),
    }
    return known[kind]


@pytest.mark.parametrize("verb", DESCRIPTIONS)
def test_each_field_of_a_configuration_is_an_option(run: Command, monkeypatch: pytest.MonkeyPatch, verb: str) -> None:
    given: dict[str, Any] = {}
    call, function = command_module._call, getattr(pluralbench, verb.replace("-", "_"))

    def stop(one: Callable[..., Any], arguments: dict[str, Any], *first: Any) -> Any:
        if one is not function:
            return call(one, arguments, *first)
        given.update(arguments)
        raise UserError("The end.")

    monkeypatch.setattr(command_module, "_call", stop)
    words: list[str] = []
    expected = {}
    for parameter, model in DESCRIPTIONS[verb].items():
        values = dict(FITTING.get(model, {}))
        for field, value in values.items():
            words += [f"--{field.replace('_', '-')}", value]
        values |= {"name": "m"} if model is LocalModel else {}
        for field, info in model.model_fields.items():
            if verb == "judge" and field in OF_STEPS:
                continue
            if field not in values and field not in WITHOUT.get(model, ()):
                assert info.description
                own, values[field] = words_and_value(info.annotation)
                words += [FLAGS.get(field, f"--{field.replace('_', '-')}"), *own]
        expected[parameter] = model(**values)
    refused(run(verb, "m", *words), "The end.")
    assert {name: given[name] for name in expected} == expected


def test_a_score_is_told_with_its_interval_and_counts_and_again_the_same(
    run: Command, model: str, data: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    words = ("score", model, "--benchmark", "pairs", "--data", data, "--out", out, "--device", "cpu")
    status, said, error = run(*words)
    assert status == 0
    parts = ("overall", "[", "ties and invalid", f"{out}: items.parquet")
    for part in parts:
        assert part in said
    assert not error
    assert run(*words) == (status, said, "")
    assert "per unique token" not in said
    status, detail, _ = run("report", out, "--detail")
    assert status == 0
    assert "Computed: mode fast, " in detail
    assert " per unique token, in " in detail


def test_a_judge_is_told_with_its_bias(run: Command, data: Path, tmp_path: Path) -> None:
    with serve(lambda *_: Reply("[[A]]")) as server:
        words = ("judge", "j", "--benchmark", "pairs", "--data", data, "--base-url", server.base_url)
        status, said, error = run(*words, "--out", tmp_path / "run", "--price", "0.25/2", "--max-cost", "1")
    assert (status, error) == (0, "12 verdicts are ahead, for at most about $0.01.\n")
    assert "Verdict changed with answer order: 6 of 6 pairs." in said
    detail = run("report", tmp_path / "run", "--detail")[1]
    assert "The judge chose the first response: 100% of its valid verdicts" in " ".join(detail.split())


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--benchmark", "beer"], ["Unknown benchmark 'beer'; choose personalized, multilingual, reward-bench"]),
        (["--legacy"], ["Pairs has no legacy rules; leave out `--legacy`."]),
        (["--english", "nowhere.jsonl"], ["Pairs is not translated from English; leave out `--english`."]),
        (["--data", "nowhere.jsonl"], ["nowhere.jsonl"]),
        (["--config", "xx"], ["has no config 'xx'; it has p"]),
        (["--column", "chosen=best"], ["no column `best`; it has id, prompt, chosen, rejected"]),
        (["--profile", "raw"], ["The item q0 has no posts; name their column with `--column profile=COLUMN`"]),
        (["--chat-template", "nowhere.jinja"], ["The chat template nowhere.jinja cannot be read"]),
        ([], ["nowhere is not a model folder"]),
    ],
)
def test_a_bad_option_of_score_is_named(
    run: Command, data: Path, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    base = ["score", "nowhere", "--benchmark", "pairs", "--data", data, "--device", "cpu", "--out", tmp_path / "run"]
    refused(run(*base, *words), *parts)
    assert left(tmp_path) == ["p.jsonl"]


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--max-cost", "1"], ["`--max-cost` requires `--price`"]),
        (["--base-url", "localhost:80"], ["base URL"]),
        (["--oracle", "titles"], ["The item q0 has no rubric aspects; leave out `--oracle`"]),
        (["--profile", "plan"], ["`--profile plan` and `--plans` require each other"]),
    ],
)
def test_a_bad_option_of_judge_is_named(
    run: Command, data: Path, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    base = ["judge", "j", "--benchmark", "pairs", "--data", str(data), "--base-url", "http://127.0.0.1:9/v1"]
    refused(run(*base, "--out", str(tmp_path / "run"), *words), *parts)
    assert left(tmp_path) == ["p.jsonl"]


def test_the_command_shows_its_verbs(run: Command) -> None:
    status, shown, _ = run("--help")
    assert status == 0
    assert all(verb in shown for listed in program.verbs.values() for verb in listed)


@pytest.mark.heavy
def test_the_installed_command_says_mistakes_in_one_sentence(tmp_path: Path) -> None:
    offline = command("pluralbench", "score", "m", cwd=tmp_path, env=NO_NETWORK)
    fails(offline, "QiyaoMa/Personalized-RewardBench")
    assert without_status(offline.stderr).count("\n") == 1
    assert left(tmp_path) == []
