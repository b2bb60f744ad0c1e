"""Training a planner: from what a person posted and asks to what they expect of an answer.

Personalized RewardBench, section 4.3; its settings are those of LaMP-QA's code, on which the paper builds. That code
takes the loss over the whole chat; here it is taken over the plan alone, so that nothing is spent on learning to write
posts. While it runs, `OUT.work` holds a checkpoint and the log; the same call goes on from there.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pluralbench_local import LocalModel, ModelError
from pluralbench_local.config import described
from pluralbench_local.models import language_model
from pluralbench_local.training_job import Kind, Result, Trained, at_commit, check_names, run_job, saved_network
from pluralbench_runs import Json, recipe_values, rng_for

from pluralbench_policies.base_models import chat_tokenizer, check_base_model, rendering
from pluralbench_policies.errors import PolicyError
from pluralbench_policies.planner_options import (
    PLANNER_FILE,
    PlanExample,
    PlannerConfig,
    PlannerSettings,
    TokenizedExample,
    examples_digest,
)
from pluralbench_policies.trainable import prompt_ids

PLANNER = Kind(PLANNER_FILE, "pluralbench-policies", ("transformers", "tokenizers", "trl", "peft"))
TAKES_NO = "A planner takes no `{field}`, since it is a language model; leave it out."
TOO_LARGE = (
    "The planner does not fit into memory with what is computed at a time; lower `batch` or max_length, show fewer "
    "posts, or use gradient_checkpointing."
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
    """Train a language model to write plans, by LoRA with TRL's SFTTrainer, into the folder `out`.

    base: a language model with a chat template; its description, or its name with `revision`, `chat_template`,
    `device`, `dtype` and `trust_remote_code` of `LocalModel` by keyword. One device, one process. Its weights stay in
    the precision in which they are loaded, and the adapters are float32. held_out: examples to measure the loss on.
    origin: where the examples come from, for `planner.json`. fresh: start over.

    Training that was interrupted goes on with the same call, and on a CPU with as many threads ends in the same weights
    as without. `out` holds an ordinary language model, adapters merged, with tokenizer and template, `planner.json`,
    and `log.jsonl` with a line a step.

    Raises `PolicyError`, `ModelError`, `DeviceError`, and `OutputError` where `out` was made by other settings, or of a
    base whose files are others by now.
    """
    options = options or PlannerConfig()
    begin = described(base, **fields)
    _check(begin, examples, held_out)
    settings = PlannerSettings(
        base=begin.record().model_copy(update={"kind": "planner"}),
        examples=examples_digest(examples),
        held_out=None if held_out is None else examples_digest(held_out),
        options=options,
    )

    def learn(work: Path) -> Result:
        from pluralbench_policies.planner_trainer import fit  # noqa: PLC0415 - its libraries are an extra

        source = at_commit(begin, settings.base)
        tokenizer = chat_tokenizer(source)
        model: Any = language_model(source)
        limit = _limit(source.name, model, options)
        learned = _fitting(source.name, tokenizer, examples, limit, options)
        judged = None if held_out is None else _fitting(source.name, tokenizer, held_out, limit, options)
        order = _order(learned, options)
        model, losses = fit(model, tokenizer, learned, judged, order, options, work)
        facts = {
            "settings": recipe_values(settings),
            "origin": None if origin is None else dict(origin),
            "examples": _counts(examples, learned),
            "held_out": None if held_out is None or judged is None else _counts(held_out, judged),
            "held_out_loss_of_base": losses[0],
            "held_out_loss": losses[1],
            "epochs": len(order) / len(learned),
        }
        return saved_network(model, tokenizer, model.device, facts)

    return run_job(PLANNER, out, settings, learn, too_large=TOO_LARGE, fresh=fresh)


def _check(base: LocalModel, examples: Sequence[PlanExample], held_out: Sequence[PlanExample] | None) -> None:
    check_base_model(
        base,
        what="Training a planner",
        needed=("trl", "datasets", "peft"),
        unused={"kind", "label", "reference"},
        takes_no=TAKES_NO,
        done="A planner is trained",
    )
    for some, what in ((examples, "examples"), (held_out, "held-out examples")):
        if some is not None:
            if not some:
                raise PolicyError(f"There are no {what} for a planner.")
            check_names((one.id for one in some), what)


def _limit(name: str, model: Any, options: PlannerConfig) -> int:
    """The most tokens of an example. Raises `ModelError` where the model has too few positions for it."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if positions is not None and options.max_length > positions and options.on_overflow == "error":
        raise ModelError(
            f"max_length {options.max_length:,} is more than the {positions:,} positions of {name}; lower it."
        )
    return options.max_length if positions is None else min(options.max_length, positions)


def _fitting(
    name: str, tokenizer: Any, examples: Sequence[PlanExample], limit: int, options: PlannerConfig
) -> list[TokenizedExample]:
    """The examples that are short enough, as tokens. Raises `PolicyError`."""
    read = [_read(name, tokenizer, one) for one in examples]
    kept = [one for one in read if len(one.ids) <= limit]
    longest = max(read, key=lambda one: len(one.ids))
    if len(kept) < len(read) and options.on_overflow == "error":
        raise PolicyError(
            f"The example {longest.id} has {len(longest.ids):,} tokens, and max_length allows {limit:,}; raise it, "
            "show fewer posts, or choose on_overflow drop."
        )
    if not kept:
        shortest = min(len(one.ids) for one in read)
        raise PolicyError(
            f"All {len(read):,} examples are longer than {limit:,} tokens, the shortest has {shortest:,}; raise "
            "max_length, or show fewer posts."
        )
    return kept


def _read(name: str, tokenizer: Any, example: PlanExample) -> TokenizedExample:
    messages = [dict(message) for message in example.messages]
    with rendering(name):
        prompt = prompt_ids(tokenizer, messages)
        whole = [*messages, {"role": "assistant", "content": example.plan}]
        ids = list(tokenizer.apply_chat_template(whole, tokenize=True, return_dict=True)["input_ids"])
    if ids[: len(prompt)] != prompt:
        raise PolicyError(
            f"The chat template of {name} writes a prompt otherwise once its answer is there (the example "
            f"{example.id}), so that the answer cannot be told from it; give another one by `chat_template`."
        )
    return TokenizedExample(example.id, ids, len(prompt))


def _order(learned: Sequence[TokenizedExample], options: PlannerConfig) -> list[int]:
    """The places of all items that are learned from, in their order: each epoch has one of its own."""
    wanted = options.max_steps * options.batch_size
    order: list[int] = []
    epoch = 0
    while len(order) < wanted:
        draws = [rng_for(options.seed, "plans", epoch, one.id).random() for one in learned]
        order += sorted(range(len(learned)), key=lambda place: (draws[place], place))
        epoch += 1
    return order[:wanted]


def _counts(examples: Sequence[PlanExample], read: Sequence[TokenizedExample]) -> dict[str, int]:
    return {
        "given": len(examples),
        "too_long": len(examples) - len(read),
        "prompt_tokens": sum(one.prompt for one in read),
        "plan_tokens": sum(len(one.ids) - one.prompt for one in read),
        "longest": max(len(one.ids) for one in read),
    }
