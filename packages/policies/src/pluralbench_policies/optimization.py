"""Optimising a policy against a reward model, from its description to a folder with the policy.

While it runs, `OUT.work` holds a checkpoint and the log; the same call goes on from there.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pluralbench_local import LocalModel
from pluralbench_local.config import described
from pluralbench_local.models import device_of
from pluralbench_local.training_job import Kind, Result, Trained, at_commit, check_names, run_job, saved_network
from pluralbench_rewards import RewardModel
from pluralbench_runs import recipe_values, rng_for

from pluralbench_policies.base_models import chat_tokenizer, check_base_model, rendering
from pluralbench_policies.config import OptimizeConfig, OptimizeSettings, Task, tasks_digest
from pluralbench_policies.curves import CURVES_FILE, draw_curves, warnings_of
from pluralbench_policies.errors import PolicyError
from pluralbench_policies.scorer import Scorer
from pluralbench_policies.trainable import load_policy, prompt_ids

NEEDED = {"ppo": ("torchrl", "tensordict"), "rloo": ("trl", "datasets"), "grpo": ("trl", "datasets")}
POLICY = Kind(
    "optimization.json", "pluralbench-policies", ("transformers", "tokenizers", "trl", "torchrl", "tensordict")
)
TAKES_NO = (
    "A policy to optimise takes no `{field}`: it is a language model, and computes in a precision of its own; leave it "
    "out."
)
TOO_LARGE = (
    "The policy does not fit into memory with what is computed at a time; lower micro_batch, prompts, "
    "max_prompt_tokens or max_tokens, or use gradient_checkpointing."
)


def optimize(
    policy: str | Path | LocalModel,
    reward: RewardModel,
    tasks: Sequence[Task],
    out: Path | str,
    *,
    options: OptimizeConfig | None = None,
    fresh: bool = False,
    **fields: Any,
) -> Trained:
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
    options = options or OptimizeConfig()
    base = described(policy, **fields)
    _check(base, tasks, options)
    settings = OptimizeSettings(
        policy=base.record().model_copy(update={"kind": "policy"}),
        reward=reward.record(),
        tasks=tasks_digest(tasks),
        options=options,
    )

    def learn(work: Path) -> Result:
        source = at_commit(base, settings.policy)
        tokenizer = chat_tokenizer(source)
        device = device_of(source.device)
        model = load_policy(source, device)
        prompts, kept = _fitting(base.name, model, tokenizer, tasks, options)
        steps = _steps(kept, tasks, options)
        scorer = Scorer(reward, tasks, options.reward_divisor)
        _by(options)(source, model, tokenizer, scorer, steps, prompts, options, work)
        draw_curves(work)
        facts = {
            "settings": recipe_values(settings),
            "tasks": {"given": len(tasks), "too_long": len(tasks) - len(kept)},
            "prompts": sum(map(len, steps)),
            "completions": sum(map(len, steps)) * options.completions,
            **warnings_of(work),
        }
        return saved_network(model, tokenizer, device, facts, beside=[work / CURVES_FILE])

    return run_job(POLICY, out, settings, learn, too_large=TOO_LARGE, fresh=fresh)


def _by(options: OptimizeConfig) -> Callable[..., None]:
    """What takes the steps; its libraries are imported here, since they are an extra."""
    if options.algorithm == "ppo":
        from pluralbench_policies.ppo import optimize_by_ppo  # noqa: PLC0415

        return optimize_by_ppo
    from pluralbench_policies.trl_trainers import optimize_by_trl  # noqa: PLC0415

    return optimize_by_trl


def _check(base: LocalModel, tasks: Sequence[Task], options: OptimizeConfig) -> None:
    check_base_model(
        base,
        what=f"Policy optimisation by {options.algorithm}",
        needed=(*NEEDED[options.algorithm], "matplotlib"),
        unused={"kind", "label", "reference", "dtype"},
        takes_no=TAKES_NO,
        done="A policy is optimised",
    )
    if not tasks:
        raise PolicyError("There are no tasks to optimise on.")
    check_names((task.group.id for task in tasks), "tasks")
    for task in tasks:
        if not task.messages or task.messages[-1].get("role") != "user":
            raise PolicyError(f"The last message of the task {task.group.id} is not the user's.")


def _fitting(
    name: str, model: Any, tokenizer: Any, tasks: Sequence[Task], options: OptimizeConfig
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
    with rendering(name):
        prompts = [prompt_ids(tokenizer, task.messages) for task in tasks]
    kept = [place for place, ids in enumerate(prompts) if len(ids) <= limit]
    if not kept:
        shortest = min(map(len, prompts))
        raise PolicyError(
            f"All {len(tasks):,} prompts are longer than {limit:,} tokens, the shortest has {shortest:,}; raise "
            "max_prompt_tokens, lower max_tokens, or give the policy less to read."
        )
    return prompts, kept


def _steps(kept: Sequence[int], tasks: Sequence[Task], options: OptimizeConfig) -> list[list[int]]:
    """The tasks of each step by their places; each epoch has an order of its own, and leaves out what fills no step."""
    if len(kept) < options.batch_size:
        raise PolicyError(
            f"{len(kept):,} prompts are too few for a step of {options.batch_size:,}; "
            "lower `batch_size=...` or add tasks."
        )
    whole = len(kept) // options.batch_size
    epochs = options.epochs if options.max_steps is None else -(-options.max_steps // whole)
    steps = []
    for epoch in range(epochs):
        order = sorted(kept, key=lambda place: rng_for(options.seed, "tasks", epoch, tasks[place].group.id).random())
        steps += [
            order[begin : begin + options.batch_size]
            for begin in range(0, whole * options.batch_size, options.batch_size)
        ]
    return steps[: options.max_steps]
