"""Train a planner, which predicts from a user's posts and question what they expect of an answer.

Personalized RewardBench, section 4.3. The defaults are those of LaMP-QA's code, on which the paper builds. That code
computes the loss over the whole chat; here it is computed over the plan only, so that the planner does not learn to
write posts. During a run, `OUT.work` holds a checkpoint and the log, from which the same call resumes.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pluralbench_local import LocalError, LocalModel
from pluralbench_local.config import described
from pluralbench_local.models import load_model
from pluralbench_local.rendering import apply_chat_template
from pluralbench_local.training_job import Kind, Result, Trained, at_commit, check_unique_ids, run_job, saved_network
from pluralbench_runs import Json, recipe_values, rng_for
from transformers import AutoModelForCausalLM

from pluralbench_policies.errors import PolicyError
from pluralbench_policies.planner_options import (
    PLANNER_FILE,
    PlanExample,
    PlannerConfig,
    PlannerSettings,
    TokenizedExample,
    examples_digest,
)
from pluralbench_policies.trainable import (
    chat_tokenizer,
    check_base_model,
    check_libraries,
    prompt_ids,
    template_errors,
)

PLANNER = Kind(PLANNER_FILE, "pluralbench-policies", ("transformers", "tokenizers", "trl", "peft"))
TOO_LARGE = (
    "The planner does not fit into memory; lower `micro_batch_size=...` or `max_length=...`, show fewer posts, or set "
    "`gradient_checkpointing=True`."
)


def train_planner(
    base: str | Path | LocalModel,
    examples: Sequence[PlanExample],
    out: Path | str,
    *,
    held_out: Sequence[PlanExample] | None = None,
    options: PlannerConfig | None = None,
    origin: Mapping[str, Json] | None = None,
    fresh: bool = False,
    **fields: Any,
) -> Trained:
    """Train a language model to write plans, by LoRA with TRL's SFTTrainer, on one device in one process.

    The same call resumes an interrupted training. On a CPU with the same number of threads it ends in the same weights
    as an uninterrupted one. `out` holds an ordinary language model (adapters merged) with tokenizer and template,
    `planner.json`, and `log.jsonl` with one line per step.

    Args:
        base: A language model with a chat template: its folder, name on the Hub, or description. Its weights keep the
            dtype in which they are loaded; the adapters are float32.
        examples: Prompts and plans to train on.
        out: Folder for the planner.
        held_out: Examples to measure the loss on.
        options: Hyperparameters. Default: `PlannerConfig()`.
        origin: Origin of the examples, for `planner.json`.
        fresh: Start over.
        fields: `revision`, `chat_template`, `device`, `dtype` and `trust_remote_code` of `LocalModel`, if `base` is not
            a description.

    Raises:
        PolicyError: A library is missing, or an example does not fit.
        TrainingError: A field of the description has no meaning here, or two examples have the same id.
        LocalError: The base cannot be loaded; or the device does not exist or is not supported.
        OutputError: `out` has other settings, or the base's files have changed.
    """
    options = options or PlannerConfig()
    base_model = described(base, **fields)
    _check(base_model, examples, held_out)
    settings = PlannerSettings(
        base=base_model.record().model_copy(update={"kind": "planner"}),
        examples=examples_digest(examples),
        held_out=None if held_out is None else examples_digest(held_out),
        options=options,
    )

    def train(work: Path) -> Result:
        from pluralbench_policies.planner_trainer import fit

        source = at_commit(base_model, settings.base)
        tokenizer = chat_tokenizer(source)
        model: Any = load_model(AutoModelForCausalLM, source)
        limit = _limit(source.name, model, options)
        training_rows = _fitting_rows(source.name, tokenizer, examples, limit, options)
        held_out_rows = None if held_out is None else _fitting_rows(source.name, tokenizer, held_out, limit, options)
        order = _order(training_rows, options)
        model, losses = fit(model, tokenizer, training_rows, held_out_rows, order, options, work)
        facts = {
            "settings": recipe_values(settings),
            "origin": None if origin is None else dict(origin),
            "examples": _counts(examples, training_rows),
            "held_out": None if held_out is None or held_out_rows is None else _counts(held_out, held_out_rows),
            "held_out_loss_of_base": losses[0],
            "held_out_loss": losses[1],
            "epochs": len(order) / len(training_rows),
        }
        return saved_network(model, tokenizer, model.device, facts)

    return run_job(PLANNER, out, settings, train, too_large=TOO_LARGE, fresh=fresh)


def _check(base: LocalModel, examples: Sequence[PlanExample], held_out: Sequence[PlanExample] | None) -> None:
    check_libraries("Training a planner", ("trl", "datasets", "peft"))
    check_base_model(base, {"kind", "label", "reference", "read"}, "Training a planner")
    for part, what in ((examples, "examples"), (held_out, "held-out examples")):
        if part is not None:
            if not part:
                raise PolicyError(f"There are no {what} for a planner.")
            check_unique_ids((example.id for example in part), what)


def _limit(name: str, model: Any, options: PlannerConfig) -> int:
    """Maximum tokens of an example. Raises `LocalError` if the model has too few positions."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if positions is not None and options.max_length > positions and options.on_overflow == "error":
        raise LocalError(
            f"`max_length={options.max_length}` is more than the {positions:,} positions of {name}; lower it."
        )
    return options.max_length if positions is None else min(options.max_length, positions)


def _fitting_rows(
    name: str, tokenizer: Any, examples: Sequence[PlanExample], limit: int, options: PlannerConfig
) -> list[TokenizedExample]:
    """Tokenize the examples and keep those that are short enough. Raises `PolicyError`."""
    rows = [_tokenize(name, tokenizer, example) for example in examples]
    fitting = [row for row in rows if len(row.ids) <= limit]
    longest = max(rows, key=lambda row: len(row.ids))
    if len(fitting) < len(rows) and options.on_overflow == "error":
        raise PolicyError(
            f"The example {longest.id} has {len(longest.ids):,} tokens, more than {limit:,}; raise `max_length=...`, "
            'show fewer posts, or set `on_overflow="drop"`.'
        )
    if not fitting:
        shortest = min(len(row.ids) for row in rows)
        raise PolicyError(
            f"All {len(rows):,} examples are longer than {limit:,} tokens (shortest: {shortest:,}); raise "
            "`max_length=...`, or show fewer posts."
        )
    return fitting


def _tokenize(name: str, tokenizer: Any, example: PlanExample) -> TokenizedExample:
    messages = [dict(message) for message in example.messages]
    with template_errors(name):
        prompt = prompt_ids(tokenizer, messages)
        conversation = [*messages, {"role": "assistant", "content": example.plan}]
        ids = list(apply_chat_template(tokenizer, conversation, tokenize=True, return_dict=True)["input_ids"])
    if ids[: len(prompt)] != prompt:
        raise PolicyError(
            f"The chat template of {name} changes the prompt of the example {example.id} when the answer is added; set "
            "another `chat_template=...`."
        )
    return TokenizedExample(example.id, ids, len(prompt))


def _order(training_rows: Sequence[TokenizedExample], options: PlannerConfig) -> list[int]:
    """Indices of rows. Each epoch has its own order."""
    total = options.max_steps * options.batch_size
    order: list[int] = []
    epoch = 0
    while len(order) < total:
        draws = [rng_for(options.seed, "plans", epoch, row.id).random() for row in training_rows]
        order += sorted(range(len(training_rows)), key=lambda place: (draws[place], place))
        epoch += 1
    return order[:total]


def _counts(examples: Sequence[PlanExample], rows: Sequence[TokenizedExample]) -> dict[str, int]:
    return {
        "given": len(examples),
        "too_long": len(examples) - len(rows),
        "prompt_tokens": sum(row.prompt for row in rows),
        "plan_tokens": sum(len(row.ids) - row.prompt for row in rows),
        "longest": max(len(row.ids) for row in rows),
    }
