"""Score with reward-bench from PyPI, in its own environment because it pins transformers 4.51.

On a machine without a GPU one call is redirected: reward-bench's pipeline moves each batch with `.to("cuda")` on any
device, so `BatchEncoding.to` is replaced by one that uses the CPU instead. The rest is reward-bench's own code, as its
command runs it for a classifier in bfloat16: its model builder with `device_map="auto"`, its
`prepare_dialogue_from_tokenizer`, and its `RewardBenchPipeline` with its arguments (left padding, batches of 8, raw
logits). The command's logging, `datasets` and accelerate, which would cost time, are left out. The command loops over
batches of 8 prompts and passes the chosen column, then the rejected one; prompts with more responses get one pass per
column in the same way. RM-Bench's script (`scripts/run_rm.py` with the 8 of `run_rm.sh`) runs the same pipeline so:
each of the three chosen and three rejected responses is a column. The script for RewardBench 2 (`scripts/run_v2.py`)
passes all responses of all prompts as one column, 64 at a time. Truncation is off: no text here is cut.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from scoring.protocol import Conversations, Outcome, Score, Settings

if TYPE_CHECKING:
    import torch

VERSION = "0.1.4"
BATCH, BATCH_BEST_OF_N = 8, 64


def classifier(settings: Settings) -> Score:
    """Score with reward-bench's pipeline for classifiers, as its command and RM-Bench's script do.

    Batches of 8 prompts, one pass for each column of responses. Runs in reward-bench's environment.
    """
    scored = _pipeline(settings, "default", BATCH)

    def score(groups: list[Conversations]) -> Outcome:
        scores: list[list[float]] = []
        computed = 0
        for start in range(0, len(groups), BATCH):
            batch = groups[start : start + BATCH]
            columns: list[list[float]] = []
            for responses in zip(*(group.responses for group in batch), strict=True):
                values, tokens = scored([(group.prompt, own) for group, own in zip(batch, responses, strict=True)])
                columns.append(values)
                computed += tokens
            scores += [list(row) for row in zip(*columns, strict=True)]
        return Outcome(scores, computed)

    return score


def best_of_n(settings: Settings) -> Score:
    """Score with reward-bench's pipeline as its script for RewardBench 2 does: batches of 64 conversations.

    All responses of all prompts are one column, in the order of the file. Runs in reward-bench's environment.
    """
    scored = _pipeline(settings, "default_v2", BATCH_BEST_OF_N)

    def score(groups: list[Conversations]) -> Outcome:
        rows = [(group.prompt, response) for group in groups for response in group.responses]
        values: list[float] = []
        computed = 0
        for start in range(0, len(rows), BATCH_BEST_OF_N):
            batch, tokens = scored(rows[start : start + BATCH_BEST_OF_N])
            values += batch
            computed += tokens
        remaining = iter(values)
        return Outcome([[next(remaining) for _ in group.responses] for group in groups], computed)

    return score


def _pipeline(settings: Settings, entry: str, batch: int) -> Callable[[list[tuple[str, str]]], tuple[list[float], int]]:
    """Load the classifier with an entry of reward-bench's table; the function scores a batch of (prompt, response)."""
    import torch
    from rewardbench import prepare_dialogue_from_tokenizer
    from rewardbench.models import REWARD_MODEL_CONFIG
    from transformers import AutoTokenizer

    if settings.device == "cpu":
        _redirect_cuda()
    folder = str(Path(settings.folder, "classifier"))
    builders = REWARD_MODEL_CONFIG[entry]
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.padding_side = "left"
    model = builders["model_builder"](folder, device_map="auto", torch_dtype=getattr(torch, settings.dtype))
    pipeline = builders["pipeline_builder"]("text-classification", model=model, tokenizer=tokenizer)
    arguments = {
        "batch_size": batch,
        "truncation": False,
        "padding": True,
        "max_length": 8192,
        "function_to_apply": "none",
        "return_token_type_ids": False,
    }

    def text(prompt: str, response: str) -> str:
        example: dict[str, str] = {"prompt": prompt, "input": response}
        rendered: str = prepare_dialogue_from_tokenizer(example, tokenizer, ift=True)["text"]
        return rendered

    def scored(rows: list[tuple[str, str]]) -> tuple[list[float], int]:
        logits, inputs = pipeline([text(*row) for row in rows], return_inputs=True, **arguments)
        return _first(logits), inputs["input_ids"].numel()

    return scored


def _first(logits: "torch.Tensor") -> list[float]:
    values: list[float] = logits[:, 0].float().cpu().tolist()
    return values


def _redirect_cuda() -> None:
    from transformers import BatchEncoding

    move = BatchEncoding.to

    def to(self: Any, device: Any, **options: Any) -> Any:
        return move(self, "cpu" if device == "cuda" else device, **options)

    BatchEncoding.to = to  # type: ignore[method-assign]
