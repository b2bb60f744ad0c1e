"""Optimize a policy against a reward model.

During a run, `OUT.work` holds a checkpoint and the log, from which the same call resumes.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pluralbench_local import LocalModel
from pluralbench_local.config import described
from pluralbench_local.training_job import Kind, Result, Trained, at_commit, check_unique_ids, run_job, saved_network
from pluralbench_rewards import RewardModel
from pluralbench_runs import recipe_values, rng_for

from pluralbench_policies.config import OptimizeConfig, OptimizeSettings, Task, tasks_digest
from pluralbench_policies.errors import PolicyError
from pluralbench_policies.scorer import CURVES_FILE, Optimization, Scorer, draw_curves, warnings_of
from pluralbench_policies.trainable import (
    chat_tokenizer,
    check_base_model,
    check_libraries,
    load_policy,
    prompt_ids,
    template_errors,
)

NEEDED = {"ppo": ("torchrl", "tensordict"), "rloo": ("trl", "datasets"), "grpo": ("trl", "datasets")}
POLICY = Kind(
    "optimization.json", "pluralbench-policies", ("transformers", "tokenizers", "trl", "torchrl", "tensordict")
)
TOO_LARGE = (
    "The policy does not fit into memory; lower `micro_batch_size=...`, `max_prompt_tokens=...` or `max_tokens=...`, "
    "or set `gradient_checkpointing=True`."
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
    """Optimize a policy against a reward model by PPO, RLOO or GRPO, on one device in one process.

    The same call resumes an interrupted optimization. On a CPU with the same number of threads it ends in the same
    weights as an uninterrupted one. `out` holds an ordinary language model with tokenizer, `optimization.json`,
    `curves.png`, and `log.jsonl` with one line per step.

    Args:
        policy: A language model with a chat template: its folder, name on the Hub, or description.
        reward: Scores the completions of a prompt as one group. A completion without a finite score is ignored.
        tasks: The prompts.
        out: Folder for the optimized policy.
        options: Algorithm and hyperparameters. Default: `OptimizeConfig()`.
        fresh: Start over.
        fields: `revision`, `chat_template`, `device` and `trust_remote_code` of `LocalModel`, if `policy` is not a
            description.

    Raises:
        PolicyError: A library is missing, or the tasks or options do not fit the policy.
        TrainingError: A field of the description has no meaning here, or two tasks have the same id.
        LocalError: The policy cannot be loaded; or the device does not exist or is not supported.
        OutputError: `out` has other settings, or the policy's files have changed.
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

    def train(work: Path) -> Result:
        source = at_commit(base, settings.policy)
        tokenizer = chat_tokenizer(source)
        model = load_policy(source)
        prompts, fitting = _fitting_prompts(base.name, model, tokenizer, tasks, options)
        steps = _steps(fitting, tasks, options)
        scorer = Scorer(reward, tasks, options.reward_divisor)
        run_steps = _trainer_for(options)
        run_steps(Optimization(source, model, tokenizer, scorer, steps, prompts, options, work))
        draw_curves(work)
        facts = {
            "settings": recipe_values(settings),
            "tasks": {"given": len(tasks), "too_long": len(tasks) - len(fitting)},
            "prompts": sum(map(len, steps)),
            "completions": sum(map(len, steps)) * options.completions,
            **warnings_of(work),
        }
        return saved_network(model, tokenizer, model.device, facts, extra_files=[work / CURVES_FILE])

    return run_job(POLICY, out, settings, train, too_large=TOO_LARGE, fresh=fresh)


def _trainer_for(options: OptimizeConfig) -> Callable[[Optimization], None]:
    """The function that runs the steps; imported here, since its libraries are an extra."""
    if options.algorithm == "ppo":
        from pluralbench_policies.ppo import optimize_by_ppo

        return optimize_by_ppo
    from pluralbench_policies.trl_trainers import optimize_by_trl

    return optimize_by_trl


def check_installed(options: OptimizeConfig) -> None:
    """Raise `PolicyError` if a library of the algorithm is missing."""
    check_libraries(f"Policy optimization by {options.algorithm}", (*NEEDED[options.algorithm], "matplotlib"))


def _check(base: LocalModel, tasks: Sequence[Task], options: OptimizeConfig) -> None:
    check_installed(options)
    check_base_model(base, {"kind", "label", "reference", "read", "dtype"}, "Optimizing a policy")
    if not tasks:
        raise PolicyError("There are no tasks to optimize on.")
    check_unique_ids((task.group.id for task in tasks), "tasks")
    for task in tasks:
        if not task.messages or task.messages[-1].get("role") != "user":
            raise PolicyError(f"The last message of the task {task.group.id} does not have the role `user`.")


def _fitting_prompts(
    name: str, model: Any, tokenizer: Any, tasks: Sequence[Task], options: OptimizeConfig
) -> tuple[list[list[int]], list[int]]:
    """The tokens of each task's prompt, and the indices of the tasks whose prompt is short enough."""
    positions = getattr(model.config.get_text_config(), "max_position_embeddings", None)
    limit = (
        options.max_prompt_tokens
        if positions is None
        else min(options.max_prompt_tokens, positions - options.max_tokens)
    )
    if limit < 1:
        raise PolicyError(
            f"`max_tokens={options.max_tokens}` leaves no room for a prompt in the {positions:,} positions of {name}; "
            "lower it."
        )
    with template_errors(name):
        prompts = [prompt_ids(tokenizer, task.messages) for task in tasks]
    fitting = [place for place, ids in enumerate(prompts) if len(ids) <= limit]
    if not fitting:
        shortest = min(map(len, prompts))
        raise PolicyError(
            f"All {len(tasks):,} prompts are longer than {limit:,} tokens (shortest: {shortest:,}); raise "
            "`max_prompt_tokens=...`, lower `max_tokens=...`, or shorten the prompts."
        )
    return prompts, fitting


def _steps(fitting: Sequence[int], tasks: Sequence[Task], options: OptimizeConfig) -> list[list[int]]:
    """The indices of each step's tasks. Each epoch has its own order and drops its incomplete last step."""
    if len(fitting) < options.batch_size:
        raise PolicyError(
            f"{len(fitting):,} prompts are too few for a step of {options.batch_size:,}; "
            "lower `batch_size=...` or add tasks."
        )
    per_epoch = len(fitting) // options.batch_size
    epochs = options.epochs if options.max_steps is None else -(-options.max_steps // per_epoch)
    steps = []
    for epoch in range(epochs):
        order = sorted(fitting, key=lambda place: rng_for(options.seed, "tasks", epoch, tasks[place].group.id).random())
        steps += [
            order[begin : begin + options.batch_size]
            for begin in range(0, per_epoch * options.batch_size, options.batch_size)
        ]
    return steps[: options.max_steps]
