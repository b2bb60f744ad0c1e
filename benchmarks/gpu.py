"""Measure scoring, embedding and training on a GPU: `pluralbench_local`, compared with padded batches and with vLLM.

    uv run --group evaluator python benchmarks/gpu.py --report gpu.md

Weights of Llama's 1B and 8B shapes are drawn at random on the GPU, and texts are made, so that nothing is downloaded.
All strategies share one process, its weights and its texts; each round runs each once, in random order. Prints, and
writes, a Markdown table; ten minutes on a large GPU. `--device cpu` runs everything at a hundredth of the size.
"""

import gc
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from machine import describe_machine
from pluralbench_local import LocalRewardModel, Ranking, TrainingConfig, embed, score, train
from pluralbench_local.conversations import Template
from pluralbench_local.model_kinds import CLASSIFIER
from pluralbench_local.network import ReadableNetwork, network_of, using_default_attention
from pluralbench_local.personal.backbones import Decoder
from pluralbench_local.personal.texts import BackboneRecord
from pluralbench_rewards import Group, ScoringConfig
from pluralbench_runs import UserError, rng_for, run, write_text
from scoring.gpu_table import (
    ALONE,
    EMBEDDING,
    EXACT,
    FAST,
    FLASH,
    SDPA,
    TRAINING,
    VLLM,
    Row,
    Scores,
    Timing,
    changed_decisions,
    forward_flops,
    table,
)
from scoring.models import BEGIN, PAD, STOP, byte_level, save_tokenizer
from scoring.workloads import SHAPES, Writer, groups
from transformers import (
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    LlamaConfig,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging
from transformers.utils.import_utils import is_flash_attn_2_available

MODELS = {
    "1b": {"hidden_size": 2048, "intermediate_size": 8192, "num_hidden_layers": 16, "heads": 32, "repeat": 16},
    "8b": {"hidden_size": 4096, "intermediate_size": 14336, "num_hidden_layers": 32, "heads": 32, "repeat": 4},
}
"""Llama-3.2-1B and Llama-3.1-8B, and how often a workload of `score.py` is repeated for them."""

WORKLOADS = ("pairs", "best-of-4", "best-of-16", "profile")
VOCABULARY, FULL_VOCABULARY = 32_000, 128_256
SMALL = 0.01  # size on a CPU
PADDED_ROWS = 8
DTYPES = {"cuda": torch.bfloat16, "cpu": torch.float32}
VLLM_SCRIPT = """
import sys, time
from vllm import LLM
folder, texts = sys.argv[1], open(sys.argv[2], encoding="utf-8").read().split("\\0")
model = LLM(model=folder, runner="pooling", load_format="dummy", enable_prefix_caching=True)
seconds = []
for _ in range(int(sys.argv[3]) + 1):
    started = time.perf_counter()
    model.classify(texts, use_tqdm=False)
    seconds.append(time.perf_counter() - started)
    model.llm_engine.reset_prefix_cache()
print("SECONDS", *seconds[1:])
"""

Name = StrEnum("Name", list(MODELS))  # type: ignore[misc]
Strategy = Callable[[], tuple[Scores, int]]
"""Returns scores, empty if there are none, and the number of computed tokens."""

app = typer.Typer(add_completion=False, rich_markup_mode=None)


@dataclass(frozen=True)
class Made:
    """A model of a shape, and how it reads texts."""

    network: ReadableNetwork
    tokenizer: PreTrainedTokenizerFast
    config: LlamaConfig

    @property
    def device(self) -> torch.device:
        """Its device."""
        return self.network.device


@app.command(help=__doc__)
def command(
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds.")] = 3,
    model: Annotated[list[Name] | None, typer.Option(help="Shape of the model; repeatable. Default: all.")] = None,
    device: Annotated[str, typer.Option(help="cuda, cuda:1 or cpu.")] = "cuda",
    size: Annotated[
        float | None, typer.Option(min=1e-5, help="Factor on parameters and texts. Default: 1; 0.01 on a CPU.")
    ] = None,
    minutes: Annotated[float, typer.Option(min=0, help="Time after which no further round begins.")] = 8.0,
    report: Annotated[Path | None, typer.Option(help="Markdown file for what is printed.")] = None,
    seed: Annotated[int, typer.Option(help="Seed of weights, texts and order.")] = 1,
) -> None:
    """Measure, print and write the table."""
    if device != "cpu" and not torch.cuda.is_available():
        raise UserError(f"--device {device}: this machine has no GPU; use `--device cpu`.")
    factor = size or (SMALL if device == "cpu" else 1.0)
    logging.disable_progress_bar()  # type: ignore[no-untyped-call]
    deadline = time.monotonic() + 60 * minutes
    made: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        for name in map(str, model or MODELS):
            made += measure(name, Path(scratch), device, factor, rounds, deadline, seed)
    lines = [describe(device, factor), "", *table(made, device)]
    print("\n".join(lines))
    if report is not None:
        write_text(report, "\n".join(lines) + "\n")


def main() -> None:
    """Run the command and print errors in one sentence."""
    run(app, "pluralbench")


def measure(name: str, scratch: Path, device: str, factor: float, rounds: int, deadline: float, seed: int) -> list[Row]:
    """Measure all strategies on a model; vLLM comes last, when the model has left the GPU."""
    writer = Writer(seed)
    repeat = factor * int(MODELS[name]["repeat"])
    texts = {
        workload: [
            Group(str(number), [{"role": "user", "content": one.prompt}], one.responses)
            for number, one in enumerate(groups(SHAPES[workload], size=repeat, writer=writer, seed=seed))
        ]
        for workload in WORKLOADS
    }
    made = make(name, scratch / name, device, factor, texts, seed)
    rows: list[Row] = []
    for workload in WORKLOADS:
        _note(f"{name}, {workload}")
        rows += _measure_workload(name, workload, made, texts[workload], rounds, deadline, seed)
    _note(f"{name}, training")
    config, folder = made.config, scratch / name
    strings = [_strings(made.tokenizer, texts[workload]) for workload in WORKLOADS]
    tokens = [len(ids) for ids in made.tokenizer([text for many in strings for text in many])["input_ids"]]
    del made
    gc.collect()
    torch.cuda.empty_cache()
    if name == "1b":  # full fine-tuning of 8B takes more than one GPU
        rows.append(_training(name, folder, config, texts["best-of-4"], device, seed))
    if find_spec("vllm") and device != "cpu":
        counts = iter(tokens)
        for workload, many in zip(WORKLOADS, strings, strict=True):
            total = sum(next(counts) for _ in many)
            seconds = _vllm_seconds(folder, many, rounds)
            timings = [Timing(taken, total, 0, []) for taken in seconds]
            rows.append(Row(name, workload, VLLM, total, timings, forward_flops(config), "random weights of its own"))
    return rows


def make(name: str, folder: Path, device: str, factor: float, texts: dict[str, list[Group]], seed: int) -> Made:
    """Draw a model's weights on its device, and train a tokenizer on the texts; write all but the weights to a folder.

    `factor` applies to the number of parameters: their square root to widths, and below a hundredth to layers too.
    """
    folder.mkdir(parents=True)
    content = (text for many in texts.values() for one in many for text in (one.prompt[0]["content"], *one.responses))
    trained = byte_level(content, VOCABULARY)
    save_tokenizer(trained, folder)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    shape = MODELS[name]
    width = max(64, round(shape["hidden_size"] * min(1.0, factor) ** 0.5 / 64) * 64)
    heads = min(shape["heads"], width // 64)
    config = LlamaConfig(
        hidden_size=width,
        intermediate_size=round(shape["intermediate_size"] * width / shape["hidden_size"]),
        num_hidden_layers=max(2, round(shape["num_hidden_layers"] * min(1.0, factor / SMALL))),
        num_attention_heads=heads,
        num_key_value_heads=heads // 4 if heads % 4 == 0 else 1,
        vocab_size=max(len(tokenizer), FULL_VOCABULARY if factor >= 1 else 0),
        max_position_embeddings=16_384,
        bos_token_id=trained.token_to_id(BEGIN),
        eos_token_id=trained.token_to_id(STOP),
        pad_token_id=trained.token_to_id(PAD),
    )
    config.num_labels = 1
    config.architectures = ["LlamaForSequenceClassification"]
    config.dtype = _dtype(device)
    config.save_pretrained(folder)
    network: Any = _draw(AutoModelForSequenceClassification, config, device, seed)
    return Made(network_of(network, network.score), tokenizer, config)


def _measure_workload(
    name: str, workload: str, made: Made, items: list[Group], rounds: int, deadline: float, seed: int
) -> list[Row]:
    """Rows of all strategies in this process."""
    strategies = strategies_of(made, items)
    expected, tokens = strategies.pop(ALONE)()
    timings: dict[str, list[Timing]] = {strategy: [] for strategy in strategies}
    for number in range(rounds + 1):
        if number > 1 and time.monotonic() > deadline:
            break
        for strategy in rng_for(seed, "order", name, workload, number).sample(list(strategies), len(strategies)):
            timing = _timed(strategies[strategy], made.device)
            if number:  # the first round warms up
                timings[strategy].append(timing)
    flops = forward_flops(made.config)
    return [
        Row(name, workload, strategy, tokens, several, flops, changed_decisions(expected, several[0].scores))
        for strategy, several in timings.items()
    ]


def strategies_of(made: Made, items: list[Group]) -> dict[str, Strategy]:
    """Return the strategies that can run here, by name; one at a time is the reference for decisions."""
    template = Template(made.tokenizer)
    classifier = LocalRewardModel("made", CLASSIFIER, made.network, template)

    def ours(mode: Any) -> tuple[Scores, int]:
        scored = score(classifier, items, mode=mode)
        assert scored.work is not None  # noqa: S101 - computed in this process
        return scored.scores, scored.work.computed_tokens

    record = BackboneRecord(name="made", width=made.config.hidden_size)
    backbone = Decoder("made", made.network, Template(made.tokenizer, whole_response=True), ScoringConfig(), record)

    def embedding() -> tuple[Scores, int]:
        corpus = embed(items, [range(len(item.responses)) for item in items], backbone, posts=1)
        assert corpus.work is not None  # noqa: S101 - computed in this process
        return [], corpus.work.computed_tokens

    strategies: dict[str, Strategy] = {
        ALONE: lambda: _padded(made, items, 1, "sdpa"),
        FAST: lambda: ours("fast"),
        EXACT: lambda: ours("exact"),
        SDPA: lambda: _padded(made, items, PADDED_ROWS, "sdpa"),
        EMBEDDING: embedding,
    }
    if made.device.type == "cuda" and is_flash_attn_2_available():
        strategies[FLASH] = lambda: _padded(made, items, PADDED_ROWS, "flash_attention_2")
    return strategies


@torch.inference_mode()
def _padded(made: Made, items: list[Group], rows: int, attention: str) -> tuple[Scores, int]:
    """Score batches in the order of the items, padded on the right, as published loops do."""
    model: Any = made.network.model
    texts, values, computed = _strings(made.tokenizer, items), list[float](), 0
    with using_default_attention(made.network):
        model.set_attn_implementation(attention)
        for start in range(0, len(texts), rows):
            inputs = made.tokenizer(texts[start : start + rows], padding=rows > 1, return_tensors="pt").to(made.device)
            mask = {"attention_mask": inputs["attention_mask"]} if rows > 1 else {}
            values += model(input_ids=inputs["input_ids"], use_cache=False, **mask).logits[:, 0].float().tolist()
            computed += inputs["input_ids"].numel()
    following = iter(values)
    return [[next(following) for _ in item.responses] for item in items], computed


def _training(name: str, folder: Path, config: LlamaConfig, items: list[Group], device: str, seed: int) -> Row:
    """Train on rankings for one epoch; seconds are those of the steps, without loading and saving."""
    start = shutil.copytree(folder, folder.with_name(f"{folder.name}-base"))
    base: Any = _draw(AutoModelForCausalLM, config, device, seed)
    base.save_pretrained(start)
    del base
    gc.collect()
    torch.cuda.empty_cache()
    rankings = [Ranking(item.id, item.prompt, item.responses, list(range(len(item.responses)))) for item in items]
    options = TrainingConfig(
        epochs=1, batch_size=16, gradient_accumulation_steps=1, warmup_ratio=0.0, save_steps=10**9, seed=seed
    )
    with _peak_memory(device) as memory:
        trained = train(str(start), rankings, start / "trained", options=options, device=device)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    tokens = sum(len(ids) for ids in tokenizer(_strings(tokenizer, items))["input_ids"])
    timing = Timing(trained.record["seconds"], tokens, memory[0], [])
    return Row(name, "best-of-4", TRAINING, tokens, [timing], 3 * forward_flops(config), "")


def _vllm_seconds(folder: Path, texts: list[str], rounds: int) -> list[float]:
    """Seconds of vLLM's pooling, in its own process, with random weights of its own."""
    path = folder / "texts"
    path.write_text("\0".join(texts), encoding="utf-8")
    words = [sys.executable, "-c", VLLM_SCRIPT, str(folder), str(path), str(rounds)]
    done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=False)
    seconds = next((line for line in done.stdout.splitlines() if line.startswith("SECONDS ")), None)
    if seconds is None:
        _note(f"vLLM ended with status {done.returncode}: " + "\n".join(done.stderr.splitlines()[-5:]))
        return []
    return [float(word) for word in seconds.split()[1:]]


def describe(device: str, factor: float) -> str:
    """Describe the device, the size and the machine in one line."""
    name = "CPU" if device == "cpu" else torch.cuda.get_device_name(device)
    packages = ("torch", "transformers", "flash-attn", "vllm", "pluralbench-local")
    dtype = str(_dtype(device)).removeprefix("torch.")
    return f"{name}, {dtype}, {factor:g} times the size; {describe_machine(packages, ())}"


def _timed(strategy: Strategy, device: torch.device) -> Timing:
    """Run a strategy once: seconds on a GPU, CPU seconds of all threads on a CPU."""
    clock = time.process_time if device.type == "cpu" else time.perf_counter
    with _peak_memory(device) as memory:
        started = clock()
        scores, computed = strategy()
        if device.type == "cuda":
            torch.cuda.synchronize(device)
        seconds = clock() - started
    return Timing(seconds, computed, memory[0], scores)


@contextmanager
def _peak_memory(device: torch.device | str) -> Iterator[list[int]]:
    """Fill the list with the most bytes that were allocated on a GPU in this context; 0 on a CPU."""
    memory: list[int] = []
    on_gpu = torch.device(device).type == "cuda"
    if on_gpu:
        torch.cuda.reset_peak_memory_stats(device)
    yield memory
    memory.append(torch.cuda.max_memory_allocated(device) if on_gpu else 0)


def _draw(kind: Any, config: LlamaConfig, device: str, seed: int) -> Any:
    torch.manual_seed(seed)
    with torch.device(device):
        return kind.from_config(config, dtype=_dtype(device), attn_implementation="sdpa").eval()


def _dtype(device: str) -> torch.dtype:
    return DTYPES[torch.device(device).type]


def _strings(tokenizer: Any, items: list[Group]) -> list[str]:
    return [text for item in items for text in _conversations(tokenizer, item)]


def _conversations(tokenizer: Any, item: Group) -> list[str]:
    answers = ([*item.prompt, {"role": "assistant", "content": response}] for response in item.responses)
    return [tokenizer.apply_chat_template(messages, tokenize=False) for messages in answers]


def _note(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
