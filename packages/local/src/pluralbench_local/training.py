"""Train a reward model on rankings, with the Bradley-Terry loss over all pairs of a batch.

`_step` encodes some batches, each response once; `ranking_loss` is the loss. `pluralbench_local.training_job` handles
checkpoints and resuming.
"""

import math
import shutil
import time
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import torch
from accelerate import Accelerator
from pluralbench_rewards import ModelRecord
from pluralbench_runs import Json, Recipe, digest, make_readable, recipe_values
from torch import Tensor, nn
from torch.nn.functional import logsigmoid

from pluralbench_local.config import LocalModel, described
from pluralbench_local.errors import LocalError, TrainingError
from pluralbench_local.models import silence_transformers
from pluralbench_local.network import max_positions
from pluralbench_local.packing import to_device
from pluralbench_local.training_batches import Batch, Data, Ranking, batches, check, tokenize_rankings
from pluralbench_local.training_config import TRAINING_FILE, TrainingConfig
from pluralbench_local.training_job import (
    CheckpointClock,
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
from pluralbench_local.training_model import (
    Rewards,
    TrainableModel,
    evaluating,
    finalize,
    head_rewards,
    load_trainee,
    model_rewards,
    set_pad_token,
    training_template,
)

HELD_OUT = "held-out rankings"
REWARD = Kind(TRAINING_FILE, "pluralbench-local", ("transformers", "tokenizers", "peft"))


class TrainingSettings(Recipe):
    """Everything that the weights depend on. Resumed training must match it."""

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
    """Train a reward model on rankings (CHEEMS, section 5).

    The folder `out` gets an ordinary classifier of one logit without a bias, with tokenizer and chat template;
    `training.json`; and `log.jsonl` with a line for each step. The same call resumes interrupted training. On a CPU
    with the same number of threads, a resumed training ends with the same weights. Training uses one device and one
    process.

    Args:
        model: A language model, which gets a new head, or a classifier of one logit: its configuration or its name.
        rankings: Rankings to train on.
        out: The folder of the trained model.
        held_out: Rankings to measure the accuracy on.
        options: How to train.
        origin: Where the rankings come from, for `training.json`.
        fresh: Whether to start over.
        **fields: `revision`, `chat_template`, `device` and `trust_remote_code` of `LocalModel`.

    Raises:
        TrainingError: If the rankings cannot be trained on, or training diverges.
        LocalError: If the model cannot be loaded or trained; or if the device is not available, or has too little
            memory; or if the chat template is missing or fails.
        OutputError: If `out` was made with other settings, or from a base that has changed.
    """
    options = options or TrainingConfig()
    base = described(model, **fields)
    check_base(base, {"kind", "label", "reference", "read", "dtype"}, "Training a reward model")
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
        f"A batch of {options.batch_size} responses does not fit into memory; set `gradient_checkpointing=True` or "
        "`lora=...`, or lower `batch_size=...` or `max_length=...`."
    )

    def learn(work: Path) -> Result:
        facts = {"settings": recipe_values(settings), "origin": None if origin is None else dict(origin)}
        return _train(at_commit(base, settings.model), rankings, held_out, options, work, facts)

    return run_job(REWARD, out, settings, learn, too_large=too_large, fresh=fresh)


def _train(
    source: LocalModel,
    rankings: Sequence[Ranking],
    held_out: Sequence[Ranking] | None,
    options: TrainingConfig,
    work: Path,
    facts: dict[str, Any],
) -> Result:
    template = training_template(source)
    limits = (template, options.max_length, options.on_overflow)
    data = tokenize_rankings(rankings, "rankings", *limits)
    held_out_data = None if held_out is None else tokenize_rankings(held_out, HELD_OUT, *limits)
    epochs = [batches(data.rankings, options.batch_size, options.seed, epoch) for epoch in range(options.epochs)]
    steps = _steps(epochs, data.pairs, options)
    trainee = load_trainee(
        source,
        lora=options.lora,
        gradient_checkpointing=options.gradient_checkpointing,
        token_budget=options.token_budget,
        seed=options.seed,
        new_head=options.head_init,
        head_alone=options.trainable == "head",
    )
    positions = max_positions(trainee.network)
    if positions and options.max_length > positions:
        raise LocalError(
            f"`max_length={options.max_length}` is more than the {positions:,} positions of {source.name}; lower it."
        )
    set_pad_token(trainee.network.model, template, (tokens for responses in data.tokens for tokens in responses))
    accelerator = accelerator_of(trainee.network.device)
    started = time.perf_counter()
    if options.trainable == "head":
        parts = [part for part in (data, held_out_data) if part is not None]
        rewards = head_rewards(trainee, template, parts, options.token_budget)
    else:
        rewards = model_rewards(trainee, accelerator)
    encoding_seconds = time.perf_counter() - started
    _run(accelerator, trainee, rewards, data, held_out_data, steps, options, work)
    saved = trainee.base if options.save_dtype == "auto" else getattr(torch, options.save_dtype)
    trainee = finalize(trainee, saved)
    if options.trainable == "all" or saved != trainee.base:
        rewards = model_rewards(trainee, accelerator)
    facts |= {
        "data": data.counts(),
        "epochs": [data.epoch_counts(epoch) for epoch in epochs],
        "held_out": None if held_out_data is None else held_out_data.counts(),
        "held_out_accuracy": None if held_out_data is None else _accuracy(trainee, rewards, held_out_data),
        "encoding_seconds": encoding_seconds,
    }
    return saved_network(trainee.network.model, template.tokenizer, trainee.network.device, facts)


def ranking_loss(rewards: Tensor, pairs: Sequence[tuple[int, int]], weight: float) -> tuple[Tensor, Tensor]:
    """Compute the loss of a batch (CHEEMS, section 5), and its regularizer, from rewards of shape (responses,).

    The loss is the mean over `pairs` (better, worse) of -log sigmoid(better - worse), plus `weight` times the
    regularizer, which is the mean squared reward of all responses. Both are means, as in the code of CHEEMS; the paper
    sums over pairs.
    """
    better, worse = to_device(pairs, rewards.device).T
    regularizer = rewards.square().mean()
    loss = -logsigmoid(rewards[better] - rewards[worse]).mean()
    return loss + weight * regularizer, regularizer


def check_steps(rankings: Sequence[Ranking], options: TrainingConfig) -> None:
    """Raise `TrainingError` if the warm-up takes all steps of a training, before work that it depends on."""
    epochs = [batches(rankings, options.batch_size, options.seed, epoch) for epoch in range(options.epochs)]
    _steps(epochs, sum(len(ranking.pairs_to_learn()) for ranking in rankings), options)


def _steps(epochs: Sequence[Sequence[Batch]], pairs: int, options: TrainingConfig) -> list[list[Batch]]:
    """The batches of each step. Raises `TrainingError` if the warm-up takes all steps."""
    all_batches = [batch for epoch in epochs for batch in epoch]
    starts = range(0, len(all_batches), options.gradient_accumulation_steps)
    steps = [all_batches[start : start + options.gradient_accumulation_steps] for start in starts]
    if len(steps) <= _warmup_steps(len(steps), options):
        raise TrainingError(
            f"{pairs:,} pairs are too few to train on: the warm-up takes all steps ({len(steps)}); lower "
            "`batch_size=...`, `gradient_accumulation_steps=...` or `warmup_ratio=...`, or raise `epochs=...`."
        )
    return steps


def _warmup_steps(steps: int, options: TrainingConfig) -> int:
    return math.ceil(options.warmup_ratio * steps)


def _run(
    accelerator: Accelerator,
    trainee: TrainableModel,
    rewards: Rewards,
    data: Data,
    held_out: Data | None,
    steps: Sequence[Sequence[Batch]],
    options: TrainingConfig,
    work: Path,
) -> None:
    """Take all steps after the checkpoint in `work`."""
    from transformers import get_cosine_schedule_with_warmup

    trained = [weights for weights in trainee.whole.parameters() if weights.requires_grad]
    optimizer: Any = torch.optim.AdamW(trained, lr=options.learning_rate, weight_decay=options.weight_decay, fused=True)
    schedule: Any = get_cosine_schedule_with_warmup(optimizer, _warmup_steps(len(steps), options), len(steps))
    # Registers them for checkpoints. What it returns does the same, but looks for other optimizers at each step.
    accelerator.prepare(trainee.whole, optimizer, schedule)
    done = restore(accelerator, work)
    clock = CheckpointClock(options.save_steps)
    trainee.network.model.train()

    def note(line: Mapping[str, Any]) -> str:
        return f"loss {line['loss']:.3f}, {line['responses_per_second']:.1f} responses/s"

    with step_log(work, "training", done, len(steps), note=note) as log:
        for number, step in enumerate(steps[done:], done + 1):
            rate = schedule.get_last_lr()[0]
            line = {"learning_rate": rate} | _step(accelerator, rewards, data, step, options, trained)
            optimizer.step()
            schedule.step()
            optimizer.zero_grad()
            if held_out is not None and number % options.eval_steps == 0:
                line["held_out_accuracy"] = _accuracy(trainee, rewards, held_out)
            log(line)
            if clock.due(number):
                save_checkpoint(accelerator, work, number)
                clock.saved()


def _step(
    accelerator: Accelerator,
    rewards_of: Rewards,
    data: Data,
    step: Sequence[Batch],
    options: TrainingConfig,
    trained: Sequence[nn.Parameter],
) -> dict[str, Any]:
    """Accumulate the gradients of a step's batches, and return its line of the log."""
    started = time.perf_counter()
    computed = []
    for batch in step:
        rewards = rewards_of(data, batch.members)
        loss, regularizer = ranking_loss(rewards, batch.pairs, options.center_rewards_coefficient)
        accelerator.backward(loss / len(step))
        computed.append((rewards.detach(), loss.detach(), regularizer.detach()))
    norm = accelerator.clip_grad_norm_(trained, options.max_grad_norm)
    # Read after all batches: each reading waits for a GPU.
    rewards_by_batch, losses, regularizers = zip(*computed, strict=True)
    values = iter(torch.cat(rewards_by_batch).tolist())
    right = 0
    for batch in step:
        own = list(islice(values, len(batch.members)))
        right += sum(own[better] > own[worse] for better, worse in batch.pairs)
    pairs, responses = sum(len(batch.pairs) for batch in step), sum(len(batch.members) for batch in step)
    seconds = time.perf_counter() - started
    return {
        "loss": sum(value / len(step) for value in torch.stack(losses).tolist()),
        "regulariser": sum(value / len(step) for value in torch.stack(regularizers).tolist()),
        "gradient_norm": 0.0 if norm is None else float(norm),
        "pairs": pairs,
        "accuracy": right / pairs,
        "responses": responses,
        "seconds": seconds,
        "responses_per_second": responses / seconds,
    }


@torch.no_grad()
def _accuracy(trainee: TrainableModel, rewards_of: Rewards, data: Data) -> float:
    """Share of pairs whose better response has the strictly higher reward (CHEEMS, section 3.3); a tie is wrong."""
    with evaluating(trainee.network.model):
        rewards = iter(rewards_of(data, data.members).tolist())
    right = 0
    for ranking in data.rankings:
        values = [next(rewards) for _ in ranking.responses]
        right += sum(values[better] > values[worse] for better, worse in ranking.pairs_to_learn())
    return right / data.pairs


def _digest(rankings: Sequence[Ranking]) -> str:
    # A digest of digests: the canonical JSON of a large set would be in memory twice.
    return digest(
        [digest([r.id, list(r.prompt), list(r.responses), list(r.rank), r.pairs_to_learn()]) for r in rankings]
    )


ANY_LENGTH = 1024  # tokens; how a conversation ends does not depend on its length


def untrained(model: str | Path | LocalModel, out: Path | str, *, seed: int = 0, **fields: Any) -> Path:
    """Save a language model with a random head of one logit to a folder, which is returned.

    The folder appears when it is complete. If `out` has a model already, it is left as it is.

    Raises:
        LocalError: If the model cannot be loaded; or if its device is not available, or has too little memory.
    """
    base, target = described(model, **fields), Path(out)
    if (target / "config.json").exists():
        return target
    template = training_template(base)
    trainee = load_trainee(base, lora=None, gradient_checkpointing=False, token_budget=None, seed=seed)
    example = Ranking("any", [{"role": "user", "content": "Why?"}], ["So.", "No."], [1, 2])
    tokens = tokenize_rankings([example], "rankings", template, ANY_LENGTH, "error").tokens
    set_pad_token(trainee.network.model, template, (conversation for responses in tokens for conversation in responses))
    trainee = finalize(trainee, trainee.base)
    work = target.with_name(f"{target.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    with silence_transformers():
        trainee.network.model.save_pretrained(work)
        template.tokenizer.save_pretrained(work)
    return make_readable(work).replace(target)
