"""Every code block of the documents runs, and so does every command in a table's column "run".

A console block's commands (`$`) each run by themselves, with the executables that are installed, in a folder that has
every file and model they name, small (`project_files.py`). What is otherwise than at a user's:

- They are forked from a process that has imported what they import (`children.py`), for time. `.ci/run` types the
  README's commands, and those of the installed wheels, in processes of their own.
- `uv run --group NAME ...` is the command behind it: the tests' environment has all groups. That the group, package or
  extra exists is checked.
- A command that stands in several places runs once, with whatever numbers and folder to write, and not by itself if
  another has all of its words.
- What installs and what checks this repository are not run (`NOT_RUN`), each for the reason given there.
- Words in capitals, and a model on the Hub, are filled in (`FILLED_IN`), and words in brackets are given.
- What needs a key, the Hub or a cloud asks a server on loopback instead: `ELSEWHERE` says which words are added, the
  last of which count.
- A Python block runs as it is, but that OpenAI's address is the server's.
- A command with `--pending` ends with the status that says so.
- A TOML block that begins with a comment of a file's name is there under this name.
- What a tutorial shows as printed has to be printed, but for numbers of a trained model, from the files that it shows
  (`Block.file`) and a small model: `test_a_tutorial_prints_what_it_shows`.

`benchmarks/README.md` is left out: it documents measurements of minutes to hours, whose programs are no product.
"""

import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from pathlib import Path

import batch_server
import chat_server
import project_files
import pytest
import translation_server
from blocks import DOCUMENTS, PAGES, Block, blocks, commands, without_uv
from children import ended, prepare
from chinese_project import FIVE
from installs import faults
from live_hub import live_hub
from members import ROOT
from pluralbench_release import release_digest
from pluralbench_schemas import LANGUAGES
from pluralbench_schemas.languages import Language
from session_folder import CACHE, made_once, session_folder

Command = Callable[..., subprocess.CompletedProcess[str]]
# The samples: the fixture `made` runs these.
BUILDS = ("build-personalized", "build-multilingual", "build-chinese", "build-persona-judge")
CHAT, BATCHES, CLOUD = "{chat}", "{batches}", "{cloud}"

NOT_RUN = {
    "git clone https://github.com/pluralbench/pluralbench": "a step of .ci/run, which runs the README's lines",
    "cd pluralbench": "the same",
    "git clone https://github.com/RM-R1-UIUC/RM-R1": "it needs the repository's host",
    "pluralbench judge path/to/model --benchmark personalized --prompt rm-r1@RM-R1": "it needs that repository; "
    "test_prompt_replies makes such files",
    "pluralbench judge path/to/judge --benchmark personalized --device cuda --dtype bfloat16": "it needs a GPU; "
    "test_judge_here judges in this process",
    "pluralbench judge path/to/judge --benchmark personalized --library vllm": "it needs vLLM; tests/engines runs it",
    "pip install uv": "the same",
    "pluralbench score local --benchmark pairs --data sample --dtype float32": "the same, in a minute",
    "pluralbench report runs --plots figures": "the same",
    "pluralbench train local --benchmark multilingual --config eng_Latn --data sample --trainable head --epochs 10 "
    "--gradient-accumulation-steps 1 --learning-rate 0.01 --save-dtype float32 --out my-model": "test_train teaches it",
    "pluralbench judge local --data sample": "the embedded model writes for long; test_persona_command judges with it",
    "uv sync --group local": "it changes the environment of the tests",
    "uv sync --inexact --package pluralbench --extra ray": "the same",
    "uv sync --inexact --package pluralbench --extra inspect": "the same",
    "inspect eval pluralbench/personalized --model anthropic/claude-sonnet-4-5 -T limit=50": "it needs a key; "
    "test_inspect evaluates with a server on loopback",
    "pluralbench import-inspect logs/2026-11-28T12-00-00_personalized_abc.eval --out runs/claude": "test_inspect "
    "imports such logs",
    "uv sync --inexact --package pluralbench --extra serve": "the same",
    "pluralbench serve path/to/model --port 8000": "it runs until it is stopped; test_serve stops it",
    'curl http://127.0.0.1:8000/classify --json \'{"messages": [{"role": "user", "content": "Name a quiet '
    'hobby."}, {"role": "assistant", "content": "Origami."}]}\'': "test_serve asks so",
    "uv pip install ./evaluators": "a step of .ci/run, in an environment of its own",
    "uv pip install 'pluralbench @ git+https://github.com/pluralbench/pluralbench#subdirectory=evaluators'": "it needs "
    "the repository's host",
    "source .venv/bin/activate": "it changes the shell",
    "pluralbench score path/to/model --data sample --cluster ray --workers 4 --gpus-per-worker 1": "it takes four GPUs",
    "pluralbench score path/to/model --data sample --cluster HEAD:6379 --workers 16 --gpus-per-worker 1": "it takes 16",
    "ray get-auth-token --generate": "it writes into the home directory",
    "RAY_AUTH_MODE=token ray start --head --port 6379": "the cluster would outlive the test",
    "RAY_AUTH_MODE=token ray start --address HEAD:6379": "the same",
    "pytest -n 3 --dist worksteal": "it is these tests",
    "pytest -m faults -n 2": "it takes an hour; .ci/run tries a share of it",
    "ruff check": "a step of .ci/run, in an environment of its own",
    "ruff format --check": "a step of .ci/run, in an environment of its own",
    "codespell '$(git' ls-files '*.md' '*.py' ':!:tests)'": "the same, and a shell fills in the pages",
    "mypy": "a step of .ci/run, in an environment of its own",
    "bash .ci/run": "it runs these tests",
    "sbatch score.sbatch": "there is no SLURM here; test_shards runs the script as its tasks do",
    "build-chinese preference --annotated annotated.jsonl --prompts more.jsonl --judge gpt-5-mini --reward-base "
    "./qwen3-0.6b --out dist/ablated --ablate": "test_distant_reward_model trains each of its variants",
    "pluralbench score dist/ablated-ablation/models/human --benchmark reward-bench": "test_distant_reward_model scores "
    "with these models",
    "pluralbench study paper": "it takes GPUs for days; test_study runs its steps",
    "pluralbench study cheems-sets": "it trains Qwen2.5; test_train_on_pairs runs it with a tiny base",
    "pluralbench study cheems-scaling": "the same",
    "pluralbench study cheems-models": "the same",
    "pluralbench merge 'runs/mine-shard*'": "test_shards runs it on what these tasks leave",
    "vllm serve org/name --runner pooling --pooler-config '{\"use_activation\": false}' --max-model-len 16384 "
    "--block-size 32 --port 8000": "an engine, in an environment of its own",
    "python -m sglang.launch_server --model-path org/name --is-embedding --host 0.0.0.0 --port 8000": "the same",
    "text-embeddings-router --model-id org/name --port 8000": "the same",
    "llama-server -m trunk.gguf --embeddings --pooling last --cache-type-k f32 --cache-type-v f32 --flash-attn off "
    "--ctx-size 16384": "the same; test_served_llamacpp runs its library",
    'vllm serve org/name --port 8000 --runner pooling --hf-overrides \'{"architectures": '
    '["LlamaForSequenceClassification"], "classifier_from_token": ["Yes", "No"], "method": '
    '"no_post_processing"}\'': "an engine; tests/engines runs it",
    "pluralbench score org/name --kind token --token-reward yes-no --server http://gpu1:8000 "
    "--question 'Does the answer solve the problem? Reply Yes or No.'": "it needs that server; "
    "test_served_tokens gives it one",
    "pluralbench score org/name --label "
    "helpfulness:0.65,correctness:0.8,coherence:0.45,complexity:0.55,verbosity:-0.4": "it needs five attributes; "
    "test_loading scores with weights",
    "pluralbench score org/name --kind token --token-reward yes-no --question 'Does the "
    "answer solve the problem? Reply Yes or No.' --benchmark personalized": "test_token_rewards scores such models",
    "pluralbench score org/name --kind token --positive-token id:0 --token-position end "
    "--benchmark personalized": "test_token_rewards scores such models",
    "pluralbench score Qwen/Qwen2.5-Math-PRM-7B --aggregation min --benchmark pairs --data "
    "pairs.jsonl": "test_process_rewards scores such models",
    "pluralbench score Qwen/Qwen2.5-Math-PRM-7B --aggregation last --benchmark processbench": "test_first_errors "
    "scores such a model on the sample",
    "pluralbench score ./my-prm --benchmark processbench --split gsm8k,math --step-threshold 0.6": "the same",
    "pluralbench score peiyi9979/math-shepherd-mistral-7b-prm --process-reward math-shepherd "
    "--benchmark pairs --data pairs.jsonl": "test_process_rewards scores such models",
    "pluralbench score ./my-adapter --kind implicit --reference ./base --benchmark "
    "personalized": "test_adapters makes and scores such adapters",
    "uv pip install bitsandbytes": "it changes the environment of the tests",
    "pluralbench score ./my-model-4bit --benchmark personalized": "it needs that package; test_quantized "
    "scores such a model where it is installed",
    "pluralbench score org/name --server http://gpu1:8000,http://gpu2:8000 --dtype bfloat16 --data "
    "dist/personalized-rewardbench": "it needs two servers; test_score_served gives it two",
    "pluralbench score ./policy --kind implicit --reference ./base --server http://gpu1:8000 --reference-server "
    "http://gpu2:8000": "it needs two servers; test_served gives them to its function",
    "build-personalized --llm local --limit 1 --out dist/local": "a step of .ci/run, which also rebuilds what it made",
}
SHOWN = {
    "#!/bin/bash\n#SBATCH": "the script of a job array, which test_shards runs as its tasks do",
    "Pairs (sample), 128 items": "what the commands above it print, whose form test_report asserts",
    "Personalized RewardBench (sample), 24 items": "the same",
    "                             overall  Boiling": "what the command above it prints of a small model",
    "Items of benchmarks that are in": "what the command above it prints, whose form test_contamination asserts",
    "Overall number without the items": "what the command above it prints, whose form test_without asserts",
    "Personalized RewardBench (sample), by config": "what a larger model gives, as test_personalize_report",
    "Computed: mode fast, 6,650 tokens": "what the small embedded model gives, as test_score_run",
    "Benchmarks in which the better response": "the same, as test_suite",
    "runs/plural-my-model-sample/": "the directory that the command on the page writes, as test_suite",
    "Personalized RewardBench (sample), profile in brackets": "the same, as test_profile_modes",
    "Personalized RewardBench (sample): 24 decisions": "the same, as test_compare",
    "Persona judge (sample), setting certainty": "the same, as test_persona_run",
    "Certainty: high is at least 80 (%)": "the same, as test_verdict_command",
    "runs/personalized-my-model-sample: my-model on": "the same, as test_check",
    "runs/personalized-my-model-sample: Personalized": "the same, as test_show",
    "trained: trained on 3 pairs": "what the command above it prints, whose form test_train asserts",
    "for-trl: 25 rows in train": "what the commands above it print, as test_export asserts",
    "Benchmark:  benchmark.csv (score)": "the same, as test_correlate",
    "personalized: Personalized RewardBench": "the same, as test_list",
    "6 matched items": "the same of a run with another chat template, as test_agree",
    "README.md                   the card": "the files of a release, as test_release_write asserts them",
    "people.csv      user,age,town": "three files side by side, which `persona_sources.people_csv` writes",
    "mkdir -p results": "a loop round vLLM, whose steps test_asked_otherwise goes through",
    "pairs.parquet, row 3 (id 'art-03')": "what the block above prints for a bad table, as test_table_rules asserts it",
}
TOLD_BY = {
    "chinese.md": ("build-chinese$",),
    "multilingual.md": ("build-multilingual$",),
    "my-annotators.md": (
        "build-personalized rate --plan",
        "build-chinese tasks",
        "build-chinese annotations",
        "build-chinese resolve",
    ),
    "my-community.md": ("build-personalized$",),
    "my-language.md": ("build-multilingual$",),
    "my-model.md": ("pluralbench score my-model", "pluralbench report runs --plots"),
    "my-study.md": ("pluralbench correlate benchmark.csv downstream.csv$",),
    "persona-judge.md": ("build-persona-judge$",),
    "personalized.md": ("build-personalized$",),
    "trust.md": ("build-personalized$", "pluralbench-release (verify|rebuild) dist/personalized-rewardbench"),
}
"""The commands, by a pattern of their beginning, that make what a page shows as printed."""
FILLED_IN = {
    **dict.fromkeys(("DIR", "OLD", "NEW", "A", "B"), "dist/personalized-rewardbench"),
    "ORG/NAME": "org/name",
    "ORG/NAME@v0.1.0": "org/name@v0.1.0",
    "MODEL": "path/to/model",
    "Skywork/Skywork-Reward-V2-Llama-3.2-1B": "path/to/model",
    "dist/beer-rewardbench": "dist/personalized-rewardbench",
    "tiny": "small-study.toml",
    "runs/community-alignment-my-model-sample": "runs/a",
    "runs/community-alignment-my-model-sample-persona": "runs/b",
    "runs/persona-judge-MODEL-certainty-all/verdicts.csv": "verdicts.csv",
    "runs/persona-judge-gpt-5-mini-certainty-all/verdicts.csv": "verdicts.csv",
    "recorded_verdicts.csv": "verdicts.csv",
}
ELSEWHERE = {
    "--llm gpt-5-mini": f"--base-url {CHAT}",
    "--batch --price": f"--base-url {BATCHES}",
    "build-chinese preference": f"--base-url {CHAT}",
    "--out dist/judged": "--fresh",  # the release is there for the command that scores on it
    "build-personalized --recipe paper": f"--llm gemini-3-flash --base-url {CHAT} --retriever bm25",
    "--translator google": f"--endpoint {CLOUD}",
    "build-multilingual --recipe paper": f"--endpoint {CLOUD} --language deu_Latn",
    "--rated wmt21.jsonl": "--per-level 5",
    "build-persona-judge --prism": "--size 10 --retriever bm25",
    "build-persona-judge --opinion-qa": "--size 2 --respondents 4 --retriever bm25",
    "build-persona-judge --people-csv": "--retriever bm25",
    "build-personalized rate --release": "--export exported",
    "build-persona-judge label --release": "--export exported",
    "build-personalized rank": "--source dist/personalized-rewardbench --split test",
    "pluralbench judge gpt-5-mini": f"--base-url {CHAT}",
    "pluralbench judge path/to/model": f"--base-url {CHAT} --limit 5",
    "pluralbench score local": "--limit 2",
    "pluralbench score ./policy": "--limit 2",
    "my-model --benchmark multilingual": "--limit 2",
    "my-model --benchmark community-alignment --data": "--limit 2",
    "pluralbench train ./base": "--limit 8",
    "pluralbench personalize": "--epochs 1 --methods bt",
    "pluralbench train-planner": "--max-steps 1 --warmup-steps 0 --batch-size 1 --profile-size 1",
    "pluralbench plan": "--max-tokens 8 --limit 1 --profile-size 1",
    "pluralbench judge-personas": f"--base-url {CHAT} --limit 5",
    "pluralbench synthesize": f"--base-url {CHAT} --data sample --limit 1 --num-candidates 1",
    "pluralbench best-of-n": f"--judge-base-url {CHAT} --n 2 --max-tokens 8 --limit 1",
    "--trained path/to/policy": f"--judge-base-url {CHAT} --limit 1 --sample-max-tokens 8",
    "pluralbench optimize --policy ./policy --reward": f"--judge-base-url {CHAT} --max-steps 1 --batch-size 2 "
    "--mini-batch-size 2 --micro-batch-size 2 --limit 1 --max-tokens 8 --sample-max-tokens 8",
    "my-model --judge gpt-5-mini": "--data dist/personalized-rewardbench",
    "--benchmark personalized": "--data dist/personalized-rewardbench",
    "--benchmark multilingual": "--data dist/multilingual-rewardbench",
}


@dataclass(frozen=True)
class Services:
    """Where the servers on loopback are. environment: the Hub's address, and keys that open nothing."""

    chat: str
    batches: str
    cloud: str
    environment: dict[str, str]


@pytest.fixture(scope="session")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Services]:
    with (
        chat_server.serve(project_files.answer) as chat,
        batch_server.serve_batches(lambda _: batch_server.Plan(statuses=()), script=project_files.answer) as batches,
        translation_server.serve(translation_server.by_words) as cloud,
        live_hub() as hub,
    ):
        project_files.fill_hub(hub)
        keys = dict.fromkeys(("OPENAI_API_KEY", "GEMINI_API_KEY"), "sk-opens-nothing")
        cache = {"XDG_CACHE_HOME": str(session_folder(CACHE))}
        yield Services(
            chat.base_url,
            batches.base_url,
            cloud.endpoint,
            {**hub.environment(tmp_path_factory.mktemp("home")), **keys, **cache},
        )


@pytest.fixture(scope="session")
def forked(services: Services) -> Command:
    """Runs commands that ask these services, by their words in a folder; stdout has what stderr has too."""
    prepare(**services.environment)

    def run(*words: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
        done = ended([*map(str, words)], cwd, patience=1500)
        return subprocess.CompletedProcess(words, done.status, done.said, "")

    return run


@pytest.fixture(scope="session")
def made(forked: Command) -> Path:
    """A folder with what the commands of the documents name: files, models, the four samples, annotation tasks."""
    return made_once("project", lambda folder: _make(folder, forked))


def _make(folder: Path, forked: Command) -> None:
    project_files.write(folder)
    judged = "build-chinese preference --no-distant --no-length --out dist/judged"
    for build in (*BUILDS, "build-personalized training", judged):
        built = forked(*build.split(), cwd=folder)
        assert built.returncode == 0, built.stderr
    shutil.copy(
        folder / "dist/personalized-rewardbench/data/Society_and_Culture/test.parquet", folder / "pairs.parquet"
    )
    who = [word for name in FIVE for word in ("--annotator", name)]
    words = ["tasks", "--prompts", "prompts.jsonl", "--responses", "responses.jsonl", *who]
    for out in ("tasks", "dist/tasks"):
        given = forked("build-chinese", *words, "--taxonomy", "taxonomy.toml", "--out", out, cwd=folder)
        assert given.returncode == 0, given.stderr
    project_files.export(folder / "tasks" / "sheets", folder / "export.json")
    pairs = ["--release", FILLED_IN["DIR"], *who[:6]]
    rated = forked("build-personalized", "rate", *pairs, "--export", "ratings", cwd=folder)
    assert rated.returncode == 0, rated.stderr
    project_files.rate(folder / "ratings/sheets")
    people = ["--release", "dist/persona-judge", "--task", "opinion_qa", *who[:6]]
    labeled = forked("build-persona-judge", "label", *people, "--export", "labels", cwd=folder)
    assert labeled.returncode == 0, labeled.stderr
    project_files.label(folder / "labels/sheets")
    read = forked("build-persona-judge", "label", "--import", "labels", cwd=folder)
    assert read.returncode == 0, read.stderr
    project_files.write_runs(folder)
    for name, block in settings().items():
        (folder / name).write_text(block.code, encoding="utf-8")


@pytest.fixture(scope="session")
def _published(made: Path, forked: Command) -> None:
    """The Hub has `org/name` as v0.1.0."""
    words = ("publish", FILLED_IN["DIR"], "org/name", "--create", "--private")
    done = forked("pluralbench-release", *words, cwd=made)
    assert done.returncode == 0, done.stdout


@pytest.fixture
def project(made: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(made, tmp_path / "project")


def found(language: str) -> list[Block]:
    return [block for document in DOCUMENTS for block in blocks(document) if block.language == language]


def settings() -> dict[str, Block]:
    """The TOML blocks that are a file of their own, by its name."""
    names = {block: re.match(r"# (\S+\.toml)\n", block.code) for block in found("toml")}
    return {name[1]: block for block, name in names.items() if name}


def lines() -> dict[str, str]:
    """Each command of the console blocks, once, as it runs here, with the place where it is first."""
    first: dict[str, str] = {}
    for block in found("console"):
        for words in commands(block):
            filled = [FILLED_IN.get(_given(word), _given(word)) for word in without_uv(words)]
            first.setdefault(shlex.join(filled), block.where)
    return first


def _given(word: str) -> str:
    """A word that may be left out is given."""
    return word.strip("[]") if word.startswith("[") else word


def _as_a_shell_expands_it(word: str, folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.glob(word)) if "*" in word else [word]


def run() -> dict[str, str]:
    """The commands of the console blocks that run here, and their places."""
    elsewhere = {*NOT_RUN, *BUILDS, *(shlex.join(words) for page in PAGES for words in of_tutorial(page))}
    first = {shape(line): line for line in reversed(lines()) if line not in elsewhere}
    words = {line: {*shlex.split(form)} for form, line in first.items()}
    alone = {line for line, own in words.items() if not any(own < others for others in words.values())}
    return {line: where for line, where in lines().items() if line in alone}


def shape(line: str) -> str:
    """A command without its numbers and the folder that it writes."""
    return re.sub(r"(--out|--plots) \S+|\b\d+\b", r"\1", line)


def of_tutorial(page: Path) -> Iterator[list[str]]:
    """The commands of a page that `test_a_tutorial_prints_what_it_shows` runs."""
    if page.name in TOLD_BY:
        for block in blocks(page):
            if block.language == "console":
                yield from filter(partial(is_told, page), map(without_uv, commands(block)))


def is_told(page: Path, words: list[str]) -> bool:
    return re.match("|".join(TOLD_BY[page.name]), shlex.join(words)) is not None


def test_every_kind_of_block_is_covered() -> None:
    for document in DOCUMENTS:
        for block in blocks(document):
            if (
                block.language not in {"console", "python", "toml"}
                and not block.file
                and block not in printed(document)
            ):
                assert any(block.code.startswith(beginning) for beginning in SHOWN), block.where


def test_no_exception_is_left_over() -> None:
    asked = lines()
    shown = [block.code for document in DOCUMENTS for block in blocks(document)]
    assert [line for line in NOT_RUN if line not in asked] == []
    assert [part for part in ELSEWHERE if not any(part in line for line in asked)] == []
    assert [part for part in SHOWN if not any(code.startswith(part) for code in shown)] == []


def test_what_is_installed_and_run_exists() -> None:
    """Only what follows "Once released" may need an index that has our packages."""
    texts = {page: page.read_text(encoding="utf-8") for page in [*DOCUMENTS, *(ROOT / "docs").rglob("*.ipynb")]}
    told = {page: faults(re.sub("Once released, `.*?`", "", text)) for page, text in texts.items()}
    assert {page: wrong for page, wrong in told.items() if wrong} == {}


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("line", [pytest.param(line, id=f"{where} {line}") for line, where in run().items()])
def test_a_command_runs(
    line: str, project: Path, services: Services, forked: Command, request: pytest.FixtureRequest
) -> None:
    if "apertium" in line and shutil.which("apertium") is None:
        pytest.skip("Apertium is not installed here")
    words = [name for word in shlex.split(line) for name in _as_a_shell_expands_it(word, project)]
    for part, more in ELSEWHERE.items():
        if part in line:
            words += more.format(chat=services.chat, batches=services.batches, cloud=services.cloud).split()
    if line.startswith(("pluralbench score", "pluralbench judge ", "pluralbench judge-personas")):
        shutil.rmtree(project / "runs")  # they make the runs that other commands read
    words = [release_digest(project / FILLED_IN["DIR"]) if word == "HEX" else word for word in words]
    assert not [word for word in words if re.fullmatch(r"[A-Z/]{3,}", word)], "a word in capitals is to be filled in"
    if {"org/name", "org/name@v0.1.0"} & {*words}:
        request.getfixturevalue("_published")
    done = forked(*words, cwd=project)
    assert done.returncode == (75 if "--pending" in words else 0), done.stdout + done.stderr


def printed(document: Path) -> dict[Block, list[str]]:
    """What a tutorial or a dataset's page shows of what its commands print, and the last command above it."""
    every, shown = blocks(document) if document.parent.name in {"tutorials", "datasets"} else [], {}
    for before, block in pairwise(every):
        if before.language == "console" and not block.language:
            shown[block] = without_uv([*commands(before)][-1])
    return shown


def told(text: str) -> str:
    """A text without what is only layout; of a model that was trained on one machine, without its numbers."""
    shown = re.sub(r"<?[+-]?\d+(\.\d+)?", "#", text) if "my-model" in text else text
    return " ".join(re.sub(r"[─━]+", "─", shown).split())


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, id=page.stem) for page in PAGES if page.name in TOLD_BY],
)
def test_a_tutorial_prints_what_it_shows(page: Path, tmp_path: Path, forked: Command) -> None:
    """Its commands that `TOLD_BY` names run in order on the files that it shows."""
    if page.name == "my-model.md":
        project_files.my_model(tmp_path)
    shown, said = printed(page), {}
    for block in blocks(page):
        if block.file:
            (tmp_path / block.file).write_text(block.code, encoding="utf-8")
        for words in map(without_uv, commands(block) if block.language == "console" else ()):
            if is_told(page, words):
                done = forked(*words, cwd=tmp_path)
                assert done.returncode == 0, done.stdout + done.stderr
                said[shlex.join(words)] = done.stdout
    assert shown
    # What it prints of half a minute's work is in the README, too, whose commands `.ci/run` runs.
    readme = "".join(block.code for block in blocks(ROOT / "README.md") if not block.language)
    for block, words in shown.items():
        assert told(block.code) in told(said.get(shlex.join(words), readme)), block.where


def test_every_tutorial_that_shows_what_is_printed_is_tried() -> None:
    assert {page.name for page in PAGES if printed(page)} == {*TOLD_BY}


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("block", [pytest.param(block, id=block.where) for block in found("python")])
def test_python_runs(block: Block, project: Path, services: Services, forked: Command) -> None:
    if "score(" in block.code:
        shutil.rmtree(project / "runs")  # it makes the runs that other blocks read
    code = block.code.replace("https://api.openai.com/v1", services.chat)
    code = code.replace("dist/beer-rewardbench", FILLED_IN["dist/beer-rewardbench"])
    (project / "block.py").write_text(code, encoding="utf-8")
    done = forked("python", "block.py", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_file_of_settings_is_that_of_a_command() -> None:
    assert {name for name in settings() if not any(name in line for line in lines())} == {"swahili.toml"}


def test_a_line_of_languages_is_a_new_language() -> None:
    for code, values in tomllib.loads(settings()["swahili.toml"].code).items():
        assert Language(code, **values).joshi in range(6)
        assert code not in LANGUAGES


@pytest.mark.heavy
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "block",
    [
        pytest.param(block, id=block.where)
        for block in found("toml")
        if not block.file and block not in settings().values()
    ],
)
def test_a_recipe_builds(block: Block, project: Path, forked: Command) -> None:
    assert set(tomllib.loads(block.code)) == {"people_csv"}, "this is no table of a persona judge's recipe"
    (project / "own.toml").write_text(block.code, encoding="utf-8")
    done = forked("build-persona-judge", "--recipe", "own.toml", "--out", "dist/own", cwd=project)
    assert done.returncode == 0, done.stdout + done.stderr
