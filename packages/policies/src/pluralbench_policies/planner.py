"""Training a planner: from what a person posted and asks to what they expect of an answer.

Personalized RewardBench, section 4.3; its settings are those of LaMP-QA's code, on which the paper builds. That code
takes the loss over the whole chat; here it is taken over the plan alone, so that nothing is spent on learning to write
posts. While it runs, `OUT.work` holds a checkpoint and the log; the same call goes on from there.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from pluralbench_local import DeviceError, LocalModel, ModelError
from pluralbench_local.batches import OUT_OF_MEMORY
from pluralbench_local.description import described
from pluralbench_local.models import language_model, load_tokenizer
from pluralbench_local.training_files import SETTINGS_FILE
from pluralbench_runs import Json, how_to_install, one_line, output_directory, recipe_values, stream

from pluralbench_policies.errors import PolicyError
from pluralbench_policies.planner_files import RECORD_FILE, TrainedPlanner, publish_planner, read_planner
from pluralbench_policies.planner_options import PlanExample, PlannerOptions, PlannerSettings, Read, examples_digest
from pluralbench_policies.trainable import prompt_ids

NEEDED = ("trl", "datasets", "peft")


def train_planner(
    base: str | Path | LocalModel,
    examples: Sequence[PlanExample],
    out: Path | str,
    *,
    held_out: Sequence[PlanExample] | None = None,
    options: PlannerOptions | None = None,
    origin: Mapping[str, Json] | None = None,
    fresh: bool = False,
    **fields: Any,
) -> TrainedPlanner:
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
    options = options or PlannerOptions()
    source = described(base, **fields)
    _check(source, examples, held_out)
    settings = PlannerSettings(
        base=source.record().model_copy(update={"kind": "planner"}),
        examples=examples_digest(examples),
        held_out=None if held_out is None else examples_digest(held_out),
        options=options,
    )
    target = Path(out)
    with output_directory(target, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        if (target / RECORD_FILE).exists() and not fresh:
            return read_planner(target)
        from pluralbench_policies.planner_trainer import fit  # noqa: PLC0415 - its libraries are an extra

        # By its commit, since what a revision names may move while training is interrupted.
        source = source.model_copy(update={"revision": settings.base.commit or source.revision})
        tokenizer = load_tokenizer(source, source.template())
        if not tokenizer.chat_template:
            raise PolicyError(f"{source.name} has no chat template; give one by `chat_template`.")
        with _memory():
            model: Any = language_model(source)
            limit = _limit(source.name, model, options)
            learned = _fitting(source.name, tokenizer, examples, limit, options)
            judged = None if held_out is None else _fitting(source.name, tokenizer, held_out, limit, options)
            order = _order(learned, options)
            model, losses = fit(model, tokenizer, learned, judged, order, options, output.work)
        task = {
            "settings": recipe_values(settings),
            "origin": None if origin is None else dict(origin),
            "examples": _counts(examples, learned),
            "held_out": None if held_out is None or judged is None else _counts(held_out, judged),
            "held_out_loss_of_base": losses[0],
            "held_out_loss": losses[1],
            "epochs": len(order) / len(learned),
        }
        publish_planner(output, model, tokenizer, task)
    return read_planner(target)


def _check(base: LocalModel, examples: Sequence[PlanExample], held_out: Sequence[PlanExample] | None) -> None:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        raise PolicyError(
            f"Training a planner needs {missing[0]}: {how_to_install('pluralbench-policies', 'optimize')}."
        )
    wrong = sorted(base.model_dump(exclude_defaults=True).keys() & {"kind", "label", "reference"})
    if wrong:
        raise PolicyError(f"A planner takes no `{wrong[0]}`, since it is a language model; leave it out.")
    if base.device not in {"auto", "cpu", "cuda", "cuda:0"}:
        raise DeviceError(
            f"A planner is trained on the CPU or the first GPU, not on {base.device}; choose another GPU by the "
            "environment variable CUDA_VISIBLE_DEVICES."
        )
    for some, what in ((examples, "examples"), ([] if held_out is None else held_out, "held-out examples")):
        if not some and (what == "examples" or held_out is not None):
            raise PolicyError(f"There are no {what} for a planner.")
        twice = next((name for name, times in Counter(one.id for one in some).items() if times > 1), None)
        if twice is not None:
            raise PolicyError(f"Two {what} have the id {twice}; give each an id of its own.")


def _limit(name: str, model: Any, options: PlannerOptions) -> int:
    """The most tokens of an example. Raises `ModelError` where the model has too few positions for it."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    if positions is not None and options.max_length > positions and options.on_overflow == "error":
        raise ModelError(
            f"max_length {options.max_length:,} is more than the {positions:,} positions of {name}; lower it."
        )
    return options.max_length if positions is None else min(options.max_length, positions)


def _fitting(
    name: str, tokenizer: Any, examples: Sequence[PlanExample], limit: int, options: PlannerOptions
) -> list[Read]:
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


def _read(name: str, tokenizer: Any, example: PlanExample) -> Read:
    messages = [dict(message) for message in example.messages]
    try:
        prompt = prompt_ids(tokenizer, messages)
        whole = [*messages, {"role": "assistant", "content": example.plan}]
        ids = list(tokenizer.apply_chat_template(whole, tokenize=True, return_dict=True)["input_ids"])
    except (TemplateError, TypeError, ValueError) as error:
        raise PolicyError(f"The chat template of {name} refuses a prompt: {one_line(error)}.") from None
    if ids[: len(prompt)] != prompt:
        raise PolicyError(
            f"The chat template of {name} writes a prompt otherwise once its answer is there (the example "
            f"{example.id}), so that the answer cannot be told from it; give another one by `chat_template`."
        )
    return Read(example.id, ids, len(prompt))


def _order(learned: Sequence[Read], options: PlannerOptions) -> list[int]:
    """The places of all items that are learned from, in their order: each epoch has one of its own."""
    wanted = options.steps * options.items
    order: list[int] = []
    epoch = 0
    while len(order) < wanted:
        draws = [stream(options.seed, "plans", epoch, one.id).random() for one in learned]
        order += sorted(range(len(learned)), key=lambda place: (draws[place], place))
        epoch += 1
    return order[:wanted]


def _counts(examples: Sequence[PlanExample], read: Sequence[Read]) -> dict[str, int]:
    return {
        "given": len(examples),
        "too_long": len(examples) - len(read),
        "prompt_tokens": sum(one.prompt for one in read),
        "plan_tokens": sum(len(one.ids) - one.prompt for one in read),
        "longest": max(len(one.ids) for one in read),
    }


@contextmanager
def _memory() -> Iterator[None]:
    """Raises `DeviceError` where what happens in this context does not fit into memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        raise DeviceError(
            "The planner does not fit into memory with what is computed at a time; lower `batch` or max_length, show "
            "fewer posts, or use gradient_checkpointing."
        ) from None
