"""Training a reward model on rankings: Bradley-Terry over all pairs of a batch, each response encoded once.

A step is a page: `_step` encodes some batches, `ranking_loss` is the loss, accelerate does the rest. While it runs,
`OUT.work` holds a checkpoint and the log; the same call goes on from there and ends in the same weights.
"""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import torch
from accelerate import Accelerator
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Json, Recipe, digest, recipe_values
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pluralbench_local.config import TRAINING_FILE, LocalModel, described
from pluralbench_local.conversations import Template
from pluralbench_local.errors import ModelError, TrainingError
from pluralbench_local.models import load_tokenizer
from pluralbench_local.network import positions_of
from pluralbench_local.training_batches import Batch, Data, Ranking, batches, check, fitting
from pluralbench_local.training_job import (
    Kind,
    Result,
    Trained,
    accelerator_of,
    at_commit,
    check_base,
    restore,
    run_job,
    save_checkpoint,
    saved_network,
    step_log,
)
from pluralbench_local.training_model import TrainableModel, finished, load_trainee, set_pad_token
from pluralbench_local.training_options import TrainingConfig
from pluralbench_local.training_rewards import Rewards

HELD_OUT = "held-out rankings"
REWARD = Kind(TRAINING_FILE, "pluralbench-local", ("transformers", "tokenizers", "peft"))
UNUSED = (
    "Training takes no `{field}`: it makes a classifier of one logit and computes in a precision of its own; leave it "
    "out."
)


class TrainingSettings(Recipe):
    """All that the weights depend on; training goes on only under the same.

    model: the base, by the digest of its folder or the commit on the Hub. data, held_out: digests of the rankings.
    """

    verb: Literal["train"] = "train"
    model: ModelRecord
    data: str
    held_out: str | None = None
    options: TrainingConfig


def train(
    model: str | Path | LocalModel,
    rankings: Sequence[Ranking],
    out: Path | str,
    *,
    held_out: Sequence[Ranking] | None = None,
    options: TrainingConfig | None = None,
    origin: Mapping[str, Json] | None = None,
    fresh: bool = False,
    **fields: Any,
) -> Trained:
    """Train a reward model on rankings (CHEEMS, section 5) into the folder `out`.

    model: a language model, which gets a head, or a classifier of one logit; its description, or its name with
    `revision`, `chat_template`, `device` and `trust_remote_code` of `LocalModel` by keyword. One device, one process.
    held_out: rankings to measure the accuracy on. origin: where the rankings come from, for `training.json`.
    fresh: start over.

    Training that was interrupted goes on with the same call, and on a CPU with as many threads ends in the same weights
    as without. `out` holds an ordinary classifier of one logit without a bias, with tokenizer and template,
    `training.json`, and `log.jsonl` with a line a step.

    Raises `TrainingError`, `ModelError`, `DeviceError`, `ConversationError`, and `OutputError` where `out` was made by
    other settings, or of a base whose files are others by now.
    """
    options = options or TrainingConfig()
    base = described(model, **fields)
    check_base(base, {"kind", "label", "reference", "dtype"}, UNUSED)
    check(rankings, "rankings")
    if held_out is not None:
        check(held_out, HELD_OUT)
    settings = TrainingSettings(
        model=base.record(),
        data=_digest(rankings),
        held_out=None if held_out is None else _digest(held_out),
        options=options,
    )
    too_large = (
        f"A batch of {options.batch_size} responses does not fit into memory; use gradient_checkpointing or lora, "
        "or lower batch_size or max_length."
    )

    def learn(work: Path) -> Result:
        facts = {"settings": recipe_values(settings), "origin": None if origin is None else dict(origin)}
        return _learned(at_commit(base, settings.model), rankings, held_out, options, work, facts)

    return run_job(REWARD, out, settings, learn, too_large=too_large, fresh=fresh)


def _learned(
    source: LocalModel,
    rankings: Sequence[Ranking],
    held_out: Sequence[Ranking] | None,
    options: TrainingConfig,
    work: Path,
    facts: dict[str, Any],
) -> Result:
    template = Template(load_tokenizer(source, source.template()))
    limits = (template, options.max_length, options.on_overflow)
    data = fitting(rankings, "rankings", *limits)
    judged = None if held_out is None else fitting(held_out, HELD_OUT, *limits)
    epochs = [batches(data.rankings, options.batch_size, options.seed, epoch) for epoch in range(options.epochs)]
    steps = _steps(epochs, data, options)
    trainee = load_trainee(
        source,
        lora=options.lora,
        gradient_checkpointing=options.gradient_checkpointing,
        token_budget=options.token_budget,
        seed=options.seed,
        new_head=options.head_init,
        head_alone=options.trainable == "head",
    )
    positions = positions_of(trainee.network)
    if positions and options.max_length > positions:
        raise ModelError(
            f"max_length {options.max_length:,} is more than the {positions:,} positions of {source.name}; lower it."
        )
    set_pad_token(trainee.network.model, template, (tokens for several in data.tokens for tokens in several))
    accelerator = accelerator_of(trainee.network.device)
    _run(accelerator, trainee, data, judged, steps, options, work)
    saved = trainee.base if options.save_dtype == "auto" else getattr(torch, options.save_dtype)
    trainee = finished(trainee, saved)
    facts |= {
        "data": data.counts(),
        "epochs": [data.spent(epoch) for epoch in epochs],
        "held_out": None if judged is None else judged.counts(),
        "held_out_accuracy": None if judged is None else _accuracy(Rewards(trainee, accelerator), judged),
    }
    return saved_network(trainee.network.model, template.tokenizer, trainee.network.device, facts)


def ranking_loss(rewards: Tensor, pairs: Sequence[tuple[int, int]], weight: float) -> tuple[Tensor, Tensor]:
    """Loss and regulariser of a batch; both without dimensions. rewards: [responses]. pairs: (better, worse).

    The mean over the pairs of -log sigmoid(better - worse), and `weight` times the mean over all responses of the
    squared reward (CHEEMS, section 5; both are means as in its code, where the paper sums over the pairs).
    """
    better, worse = torch.tensor(pairs, device=rewards.device).T
    regulariser = rewards.square().mean()
    loss = -logsigmoid(rewards[better] - rewards[worse]).mean()
    return loss + weight * regulariser, regulariser


def _steps(epochs: Sequence[Sequence[Batch]], data: Data, options: TrainingConfig) -> list[list[Batch]]:
    """The batches of each step. Raises `TrainingError` where all steps are warm-up, the first of which has rate 0."""
    line = [batch for epoch in epochs for batch in epoch]
    steps = [
        line[start : start + options.gradient_accumulation_steps]
        for start in range(0, len(line), options.gradient_accumulation_steps)
    ]
    if len(steps) <= _warmup(len(steps), options):
        raise TrainingError(
            f"{data.pairs:,} pairs are too few to train on: the warm-up takes all steps ({len(steps)}); lower "
            "batch_size, accumulation or warmup, or raise epochs."
        )
    return steps


def _warmup(steps: int, options: TrainingConfig) -> int:
    return math.ceil(options.warmup_ratio * steps)


def _run(
    accelerator: Accelerator,
    trainee: TrainableModel,
    data: Data,
    judged: Data | None,
    steps: Sequence[Sequence[Batch]],
    options: TrainingConfig,
    work: Path,
) -> None:
    """Take all steps that the checkpoint in `work` does not have."""
    from transformers import get_cosine_schedule_with_warmup  # noqa: PLC0415 - imports peft, where that is installed

    trained = [weights for weights in trainee.whole.parameters() if weights.requires_grad]
    optimizer: Any = torch.optim.AdamW(trained, lr=options.learning_rate, weight_decay=options.weight_decay, fused=True)
    schedule: Any = get_cosine_schedule_with_warmup(optimizer, _warmup(len(steps), options), len(steps))
    rewards = Rewards(trainee, accelerator, once=options.trainable == "head")
    # For its checkpoints, of what changes; what it returns is the same module.
    accelerator.prepare(trainee.network.head if options.trainable == "head" else trainee.whole)
    optimizer, schedule = accelerator.prepare(optimizer, schedule)
    done = restore(accelerator, work)
    trainee.network.model.train()
    for part in filter(None, (data, judged)):
        rewards.encode(part)

    def note(line: Mapping[str, Any]) -> str:
        return f"loss {line['loss']:.3f}, {line['responses_per_second']:.1f} responses/s"

    with step_log(work, "training", done, len(steps), note=note) as log:
        for number, step in enumerate(steps[done:], done + 1):
            rate = schedule.get_last_lr()[0]
            line = {"learning_rate": rate} | _step(accelerator, rewards, data, step, options, trained)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if judged is not None and number % options.eval_steps == 0:
                line["held_out_accuracy"] = _accuracy(rewards, judged)
            log(line)
            if number % options.save_steps == 0:
                save_checkpoint(accelerator, work, number)


def _step(
    accelerator: Accelerator,
    rewards_of: Rewards,
    data: Data,
    step: Sequence[Batch],
    options: TrainingConfig,
    trained: Sequence[nn.Parameter],
) -> dict[str, Any]:
    """The gradient of a step's batches, and what to log of it."""
    started = time.perf_counter()
    sums = {"loss": 0.0, "regulariser": 0.0}
    right = 0
    for batch in step:
        rewards = rewards_of(data, batch.members)
        loss, regulariser = ranking_loss(rewards, batch.pairs, options.center_rewards_coefficient)
        accelerator.backward(loss / len(step))
        values = rewards.tolist()
        right += sum(values[better] > values[worse] for better, worse in batch.pairs)
        sums["loss"] += loss.item() / len(step)
        sums["regulariser"] += regulariser.item() / len(step)
    norm = accelerator.clip_grad_norm_(trained, options.max_grad_norm)
    pairs, responses = sum(len(batch.pairs) for batch in step), sum(len(batch.members) for batch in step)
    seconds = time.perf_counter() - started
    return sums | {
        "gradient_norm": 0.0 if norm is None else float(norm),
        "pairs": pairs,
        "accuracy": right / pairs,
        "responses": responses,
        "seconds": seconds,
        "responses_per_second": responses / seconds,
    }


@torch.no_grad()
def _accuracy(rewards_of: Rewards, data: Data) -> float:
    """Share of the pairs whose better response has the strictly higher reward (CHEEMS, section 3.3); a tie is wrong."""
    with rewards_of.evaluating():
        rewards = iter(rewards_of(data, data.members).tolist())
    right = 0
    for ranking in data.rankings:
        own = [next(rewards) for _ in ranking.responses]
        right += sum(own[better] > own[worse] for better, worse in ranking.learned())
    return right / data.pairs


def _digest(rankings: Sequence[Ranking]) -> str:
    # A digest of digests: the canonical JSON of a large set would be held twice in memory.
    return digest([digest([r.id, list(r.prompt), list(r.responses), list(r.rank), r.learned()]) for r in rankings])
