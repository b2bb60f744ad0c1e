"""Optimising a policy against a reward model, from its description to a folder with the policy.

While it runs, `OUT.work` holds a checkpoint and the log; the same call goes on from there.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from jinja2 import TemplateError
from pluralbench_local import DeviceError, LocalModel
from pluralbench_local.batches import OUT_OF_MEMORY
from pluralbench_local.description import described
from pluralbench_local.models import device_of, load_tokenizer
from pluralbench_local.training_files import SETTINGS_FILE
from pluralbench_rewards import RewardModel
from pluralbench_runs import how_to_install, one_line, output_directory, recipe_values, stream

from pluralbench_policies.description import OptimizeOptions, OptimizeSettings, Task, tasks_digest
from pluralbench_policies.errors import PolicyError
from pluralbench_policies.progress_files import RECORD_FILE, Optimized, publish, read_optimized
from pluralbench_policies.scorer import Scorer
from pluralbench_policies.trainable import load_policy, prompt_ids

NEEDED = {"ppo": ("torchrl", "tensordict"), "rloo": ("trl", "datasets"), "grpo": ("trl", "datasets")}


def optimize(
    policy: str | Path | LocalModel,
    reward: RewardModel,
    tasks: Sequence[Task],
    out: Path | str,
    *,
    options: OptimizeOptions | None = None,
    fresh: bool = False,
    **fields: Any,
) -> Optimized:
    """Optimise a policy against a reward model into the folder `out`, by PPO, RLOO or GRPO.

    policy: a language model with a chat template; its description, or its name with `revision`, `chat_template`,
    `device` and `trust_remote_code` of `LocalModel` by keyword. One device, one process. reward: scores the completions
    of a prompt as one group; a completion whose score is not finite is left out. fresh: start over.

    Optimisation that was interrupted goes on with the same call, and on a CPU with as many threads ends in the same
    weights as without. `out` holds an ordinary language model with tokenizer, `optimization.json`, `curves.png`, and
    `log.jsonl` with a line a step.

    Raises `PolicyError`, `ModelError`, `DeviceError`, whatever `reward` raises, and `OutputError` where `out` was made
    by other settings, or of a base whose files are others by now.
    """
    options = options or OptimizeOptions()
    base = described(policy, **fields)
    _check(base, tasks, options)
    settings = OptimizeSettings(
        policy=base.record().model_copy(update={"kind": "policy"}),
        reward=reward.record(),
        tasks=tasks_digest(tasks),
        options=options,
    )
    target = Path(out)
    with output_directory(target, settings, recipe_file=SETTINGS_FILE, fresh=fresh) as output:
        if (target / RECORD_FILE).exists() and not fresh:
            return read_optimized(target)
        # By its commit, since what a revision names may move while the run is interrupted.
        source = base.model_copy(update={"revision": settings.policy.commit or base.revision})
        tokenizer = load_tokenizer(source, base.template())
        if not tokenizer.chat_template:
            raise PolicyError(f"{base.name} has no chat template; give one by `chat_template`.")
        device = device_of(source.device)
        with _memory():
            model = load_policy(source, device)
            prompts, kept = _fitting(base.name, model, tokenizer, tasks, options)
            steps = _steps(kept, tasks, options)
            scorer = Scorer(reward, tasks, options.reward_divisor)
            _by(options)(source, model, tokenizer, scorer, steps, prompts, options, output.work)
        task = {
            "settings": recipe_values(settings),
            "tasks": {"given": len(tasks), "too_long": len(tasks) - len(kept)},
            "prompts": sum(map(len, steps)),
            "completions": sum(map(len, steps)) * options.completions,
        }
        publish(output, model, tokenizer, device, task)
    return read_optimized(target)


def _by(options: OptimizeOptions) -> Callable[..., None]:
    """What takes the steps; its libraries are imported here, since they are an extra."""
    if options.algorithm == "ppo":
        from pluralbench_policies.ppo import optimize_by_ppo  # noqa: PLC0415

        return optimize_by_ppo
    from pluralbench_policies.trl_trainers import optimize_by_trl  # noqa: PLC0415

    return optimize_by_trl


def _check(base: LocalModel, tasks: Sequence[Task], options: OptimizeOptions) -> None:
    missing = [name for name in (*NEEDED[options.algorithm], "matplotlib") if find_spec(name) is None]
    if missing:
        raise PolicyError(
            f"Policy optimisation by {options.algorithm} needs {missing[0]}: "
            f"{how_to_install('pluralbench-policies', 'optimize')}."
        )
    wrong = sorted(base.model_dump(exclude_defaults=True).keys() & {"kind", "label", "reference", "dtype"})
    if wrong:
        raise PolicyError(
            f"A policy to optimise takes no `{wrong[0]}`: it is a language model, and computes in a precision of its "
            "own; leave it out."
        )
    if base.device not in {"auto", "cpu", "cuda", "cuda:0"}:
        raise DeviceError(
            f"A policy is optimised on the CPU or the first GPU, not on {base.device}; choose another GPU by the "
            "environment variable CUDA_VISIBLE_DEVICES."
        )
    if not tasks:
        raise PolicyError("There are no tasks to optimise on.")
    twice = next((name for name, times in Counter(task.group.id for task in tasks).items() if times > 1), None)
    if twice is not None:
        raise PolicyError(f"Two tasks have the id {twice}; give each an id of its own.")
    for task in tasks:
        if not task.messages or task.messages[-1].get("role") != "user":
            raise PolicyError(f"The last message of the task {task.group.id} is not the user's.")


def _fitting(
    name: str, model: Any, tokenizer: Any, tasks: Sequence[Task], options: OptimizeOptions
) -> tuple[list[list[int]], list[int]]:
    """The tokens of each task's prompt, and the places of the tasks whose prompt is short enough."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    limit = (
        options.max_prompt_tokens
        if positions is None
        else min(options.max_prompt_tokens, positions - options.max_tokens)
    )
    if limit < 1:
        raise PolicyError(
            f"Completions of {options.max_tokens:,} tokens leave no room for a prompt in the {positions:,} positions "
            f"of {name}; lower max_tokens."
        )
    try:
        prompts = [prompt_ids(tokenizer, task.messages) for task in tasks]
    except (TemplateError, TypeError, ValueError) as error:
        raise PolicyError(f"The chat template of {name} refuses a prompt: {one_line(error)}.") from None
    kept = [place for place, ids in enumerate(prompts) if len(ids) <= limit]
    if not kept:
        shortest = min(map(len, prompts))
        raise PolicyError(
            f"All {len(tasks):,} prompts are longer than {limit:,} tokens, the shortest has {shortest:,}; raise "
            "max_prompt_tokens, lower max_tokens, or give the policy less to read."
        )
    return prompts, kept


def _steps(kept: Sequence[int], tasks: Sequence[Task], options: OptimizeOptions) -> list[list[int]]:
    """The tasks of each step by their places; each epoch has an order of its own, and leaves out what fills no step."""
    if len(kept) < options.prompts:
        raise PolicyError(
            f"{len(kept):,} prompts are too few for a step of {options.prompts:,}; lower `prompts` or give more tasks."
        )
    whole = len(kept) // options.prompts
    epochs = options.epochs if options.steps is None else -(-options.steps // whole)
    steps = []
    for epoch in range(epochs):
        order = sorted(kept, key=lambda place: stream(options.seed, "tasks", epoch, tasks[place].group.id).random())
        steps += [
            order[begin : begin + options.prompts] for begin in range(0, whole * options.prompts, options.prompts)
        ]
    return steps[: options.steps]


@contextmanager
def _memory() -> Iterator[None]:
    """Raises `DeviceError` where what happens in this context does not fit into memory."""
    try:
        yield
    except (RuntimeError, MemoryError) as error:
        if not isinstance(error, MemoryError) and not any(words in str(error) for words in OUT_OF_MEMORY):
            raise
        raise DeviceError(
            "The policy does not fit into memory with what is computed at a time; lower micro_batch, prompts, "
            "max_prompt_tokens or max_tokens, or use gradient_checkpointing."
        ) from None
