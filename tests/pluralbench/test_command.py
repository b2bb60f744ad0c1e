"""The command `pluralbench`: what works says what it found, and what fails says so in one sentence.

Most cases call the command's entry point in this process; some run the installed command.
"""

import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import torch
import typer
from chat_server import Reply, serve
from commands import command, fails
from hub_server import NO_NETWORK
from pluralbench.commands.app import app
from reward_models import make_tokenizer, save_classifier
from written_tables import write

Rows = list[dict[str, Any]]
Command = Callable[..., tuple[int, str, str]]
VERBS = ["score", "judge", "judge-metrics", "compare", "report"]


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


@pytest.mark.parametrize("verb", VERBS)
def test_help_has_an_example_and_a_text_for_every_option(run: Command, verb: str) -> None:
    status, said, _ = run(verb, "--help")
    assert status == 0
    assert f"pluralbench {verb}" in " ".join(said.split()).partition("Example")[2]
    group: Any = typer.main.get_command(app)
    for parameter in group.commands[verb].params:
        assert getattr(parameter, "help", None), parameter.name
        if parameter.param_type_name == "option" and parameter.name != "help":
            assert max(parameter.opts, key=len) in said


def test_a_score_is_told_with_its_interval_and_counts(run: Command, model: str, data: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    status, said, _ = run("score", model, "--benchmark", "pairs", "--data", data, "--out", out, "--device", "cpu")
    assert status == 0
    for part in (
        "overall",
        "[",
        "Accuracy counts ties",
        "tokens computed",
        "for each unique one",
        f"{out}: items.parquet",
    ):
        assert part in said


def test_the_same_command_again_says_the_same(run: Command, model: str, data: Path, tmp_path: Path) -> None:
    words = ("score", model, "--benchmark", "pairs", "--data", data, "--out", tmp_path / "run", "--device", "cpu")
    assert run(*words) == run(*words)


def test_a_judge_is_told_with_its_bias(run: Command, data: Path, tmp_path: Path) -> None:
    with serve(lambda *_: Reply("[[A]]")) as server:
        words = ("judge", "j", "--benchmark", "pairs", "--data", data, "--base-url", server.base_url)
        status, said, error = run(*words, "--out", tmp_path / "run", "--price", "0.25/2", "--max-cost", "1")
    assert (status, error) == (0, "")
    assert "the judge chose the first response in 100% of its valid verdicts" in said
    assert "6 of 6 pairs of valid verdicts changed with the order" in said


BAD_OPTIONS: list[tuple[list[str], list[str]]] = [
    (["--benchmark", "beer"], ["There is no benchmark 'beer'"]),
    (["--benchmark", "nowhere.toml"], ["There is no file nowhere.toml"]),
    (["--data", "nowhere.jsonl"], ["nowhere.jsonl"]),
    (["--data", "/no/where"], ["/no/where"]),
    (["--config", "xx"], ["has no config 'xx'; it has p"]),
    (["--column", "prompt"], ["--column 'prompt' is not of the form WHAT=COLUMN"]),
    (["--column", "chosen=best"], ["no column `best`; it has id, prompt, chosen, rejected"]),
    (["--profile", "raw"], ["has no profile"]),
    (["--profile", "plan", "--plans", "nowhere.jsonl"], ["The plans nowhere.jsonl cannot be read"]),
    (["--chat-template", "nowhere.jinja"], ["The chat template nowhere.jinja cannot be read"]),
    (["--reference", "x"], ["--reference belongs to --kind implicit"]),
    (["--label", "logit:4"], ["'logit:4' does not fit a head of 1 logits"]),
    (["--device", "gpu"], ["--device gpu cannot be used"]),
    (["--kind", "implicit"], ["holds a reward head", "--kind classifier"]),
    (["--max-length", "5"], ["6 of 6 prompts", "ids q0, q1, q2, q3, q4, …"]),
]


@pytest.mark.parametrize(("words", "parts"), BAD_OPTIONS)
def test_a_bad_option_of_score_is_named(
    run: Command, model: str, data: Path, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    base = [
        "score",
        model,
        "--benchmark",
        "pairs",
        "--data",
        str(data),
        "--device",
        "cpu",
        "--out",
        str(tmp_path / "run"),
    ]
    refused(run(*base, *words), *parts)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["--price", "1"], ["--price '1' is not of the form IN/OUT"]),
        (["--price", "1/x"], ["--price '1/x' is not of the form IN/OUT"]),
        (["--base-url", "localhost:80"], ["base URL"]),
        (["--api-key-env", "PLANTED_NOWHERE"], ["PLANTED_NOWHERE"]),
        (["--oracle"], ["no rubric aspects"]),
        (["--profile", "plan"], ["--profile plan and --plans FILE belong together"]),
    ],
)
def test_a_bad_option_of_judge_is_named(
    run: Command, data: Path, tmp_path: Path, words: list[str], parts: list[str]
) -> None:
    base = ["judge", "j", "--benchmark", "pairs", "--data", str(data), "--base-url", "http://127.0.0.1:9/v1"]
    refused(run(*base, "--out", str(tmp_path / "run"), *words), *parts)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("price", ["-1/2", "nan/1", "inf/1"])
def test_a_price_that_is_none_is_refused(run: Command, data: Path, tmp_path: Path, price: str) -> None:
    with serve(lambda *_: Reply("[[A]]")) as server:
        base = ["judge", "j", "--benchmark", "pairs", "--data", str(data), "--base-url", server.base_url]
        refused(run(*base, "--out", str(tmp_path / "run"), f"--price={price}"), "--price")


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_a_gpu_that_is_not_there_is_said(run: Command, model: str, data: Path, tmp_path: Path) -> None:
    before = left(tmp_path)
    words = ["score", model, "--benchmark", "pairs", "--data", data, "--device", "cuda", "--out", tmp_path / "run"]
    refused(run(*words), "No GPU was found, but --device cuda asks for one; choose --device cpu")
    assert left(tmp_path) == before


def without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()


def without_template(folder: Path) -> None:
    for path in folder.glob("*token*"):
        path.unlink()
    (folder / "chat_template.jinja").unlink(missing_ok=True)
    make_tokenizer(template=None).save_pretrained(folder)


def with_two_logits(folder: Path) -> None:
    shutil.rmtree(folder)
    save_classifier(folder, num_hidden_layers=2, num_labels=2)


def without_configuration(folder: Path) -> None:
    (folder / "config.json").unlink()


def cut_short(folder: Path) -> None:
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])


@pytest.mark.parametrize(
    ("spoil", "parts"),
    [
        (without_weights, ["holds no weights (*.safetensors or *.bin)"]),
        (without_template, ["has no chat template", "--chat-template FILE"]),
        (with_two_logits, ["has 2 logits", "--label logit:K"]),
        (without_configuration, ["has no config.json"]),
        (cut_short, ["cannot be loaded"]),
        (shutil.rmtree, ["There is no model folder"]),
    ],
)
def test_a_model_that_cannot_score_is_named(
    run: Command, model: str, data: Path, tmp_path: Path, spoil: Callable[[Path], object], parts: list[str]
) -> None:
    folder = Path(shutil.copytree(model, tmp_path / "model"))
    spoil(folder)
    before = left(tmp_path)
    words = ("score", folder, "--benchmark", "pairs", "--data", data, "--device", "cpu", "--out", tmp_path / "run")
    refused(run(*words), *parts)
    assert left(tmp_path) == before


def test_the_installed_command_shows_its_verbs_and_says_mistakes_in_one_sentence(model: str, tmp_path: Path) -> None:
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    score = ["score", model]
    cases = [["--help"], [*score, "--benchmark", "pairs", "--data", "empty.csv"], score]
    with ThreadPoolExecutor(2) as pool:
        results = pool.map(lambda words: command("pluralbench", *words, cwd=tmp_path, env=NO_NETWORK), cases)
        shown, empty, offline = results
    assert shown.returncode == 0
    assert all(verb in shown.stdout for verb in VERBS)
    for failed, part in ((empty, "empty.csv"), (offline, "QiyaoMa/Personalized-RewardBench")):
        fails(failed, part)
        assert failed.stderr.count("\n") == 1
    assert left(tmp_path) == ["empty.csv"]
