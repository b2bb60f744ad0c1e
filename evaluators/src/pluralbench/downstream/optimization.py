"""`optimize`: a policy is optimised against a reward model, and what it answers then is judged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pluralbench_calls.chat import ConnectionConfig
from pluralbench_local import LocalModel
from pluralbench_policies.config import OptimizeConfig, Task
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import Output, digest

from pluralbench.config import DataConfig, DownstreamPromptConfig, OutcomeConfig, PromptConfig, SamplingConfig
from pluralbench.downstream.candidates import SYSTEM, initial_threads, resolve_policy, user_turns
from pluralbench.downstream.curves import level_numbers
from pluralbench.downstream.outcomes import aspect_titles, outcome_judge
from pluralbench.downstream.records import outcome_record, rollout_outcome_table, sampling_record
from pluralbench.downstream.rollout import (
    Rollout,
    RolloutSetup,
    default_model_name,
    model_record,
    reused_ledger,
    rollout,
    scoring_config,
)
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark, run_directory
from pluralbench.evaluation.models import Scorable, resolve_model
from pluralbench.results.downstream import POLICY_FOLDER, DownstreamResult, OptimizeRunConfig, RewardedRecord
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.record import ScoringRecord
from pluralbench.results.runs import LEDGER_FILE, Run, load_run, write_run

ONE = SamplingConfig(n=1)
"""What a policy is judged by: one answer to each prompt."""


def optimize(
    policy: str | Path | LocalModel,
    reward: Scorable,
    *,
    name: str | None = None,
    benchmark: str = "personalized",
    data: str | Path | DataConfig | None = None,
    train: str | Path | DataConfig | None = None,
    prompt: PromptConfig | None = None,
    options: OptimizeConfig | None = None,
    sampling: SamplingConfig | None = None,
    scoring: ScoringConfig | None = None,
    outcome: OutcomeConfig | None = None,
    judge_connection: ConnectionConfig | None = None,
    seed: int = 0,
    reuse: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[OptimizeRunConfig, DownstreamResult]:
    """Optimise a policy against a reward model, and judge what it answers, before and after.

    Personalized RewardBench, section 5.1 and appendix B.

    policy: a language model, a folder or ORG/NAME on the Hub. reward: what `pluralbench.score` takes; name: what to
    call it. data: the prompts that are answered and judged. train: those that the policy is optimised on, without it
    the same. options: how it is optimised. sampling: how it answers afterwards, by default once. The rest is as of
    `best_of_n`.

    The result's folder `policy` holds the optimised policy with its log and curves. What was interrupted goes on with
    the same call. Raises a `UserError` for every mistake of the caller.
    """
    prompt, options = prompt or DownstreamPromptConfig(), options or OptimizeConfig()
    sampling, outcome, scoring = sampling or ONE, outcome or OutcomeConfig(), scoring or ScoringConfig()
    loaded = load_benchmark(benchmark, data, prompt, prompts_only=True)
    trained = loaded if train is None else load_benchmark(benchmark, train, prompt, prompts_only=True)
    start = policy if isinstance(policy, LocalModel) else LocalModel(name=str(policy))
    name = name or default_model_name(reward)
    judge = outcome_judge(outcome, judge_connection)
    # Now, since what lacks them would be told only after hours of optimising.
    aspects = aspect_titles(loaded.items.frame) if judge is not None and outcome.measure == "rubric" else {}
    config = OptimizeRunConfig(
        policy=start.record().model_copy(update={"kind": "policy"}),
        reward=model_record(reward, scoring),
        train=trained.data_record(),
        **loaded.records(),
        options=options,
        sampling=sampling,
        scoring=scoring,
        outcome=outcome,
        judge=judge.chat if judge else None,
        prompts_digest=judge.prompts_digest if judge else None,
        system_digest=digest(SYSTEM),
        seed=seed,
    )
    place = f"{loaded.name}-{Path(start.name).name}-{options.algorithm}-{name}"
    choices = (loaded.data, prompt, start, options, scoring, outcome)
    target = Path(out or run_folder(place, config, *choices, seed=seed, exclude=("algorithm", "judge")))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            end, rewarded, made = _optimized(start, reward, trained, config, output.work)
            items, groups = loaded.items.frame, loaded.groups()
            with reused_ledger(output.work, reuse) as ledger:
                found = []
                for which, model in (("start", start), ("end", end)):
                    asked, work = resolve_policy(model, sampling), output.work / which
                    setup = RolloutSetup(asked, {}, scoring, sampling, judge, ledger, work, seed)
                    found.append(rollout(setup, items, groups, aspects))
                before, after = found
                result = DownstreamResult(
                    policy=config.policy,
                    rewards={name: rewarded},
                    sampling=sampling_record(setup, after.candidates, max(len(user_turns(group)) for group in groups)),
                    outcome=outcome_record(setup, after.outcomes),
                    optimization=made | {"judged_on_the_same_prompts": config.train.digest == config.data.digest},
                )
                ledger.export(output.work / LEDGER_FILE, ledger.used)
            _write(output, config, result, before, after)
    return load_run(target, OptimizeRunConfig)


def policy_tasks(loaded: LoadedBenchmark) -> list[Task]:
    """The prompts as a policy reads them, and as a reward model is given them; of conversations the first turn."""
    items = loaded.items.frame
    threads = initial_threads(items, loaded.groups())
    return [Task(thread.messages, replace(thread.group, id=f"{thread.config}/{thread.id}")) for thread in threads]


def _optimized(
    start: LocalModel, reward: Scorable, trained: LoadedBenchmark, config: OptimizeRunConfig, work: Path
) -> tuple[LocalModel, RewardedRecord, dict[str, Any]]:
    """The optimised policy, the reward model behind it, and the record of the optimisation."""
    from pluralbench_policies import optimize as run  # noqa: PLC0415 - needs torch

    model = resolve_model(reward, scoring_config(reward, config.scoring))[1]()
    done = run(start, model, policy_tasks(trained), work / POLICY_FOLDER, options=config.options)
    rewarded = RewardedRecord(model=model.record(), scoring=ScoringRecord(), missing=0, identical=0)
    return start.model_copy(update={"name": str(done.folder), "revision": None}), rewarded, done.record


def _write(
    output: Output, config: OptimizeRunConfig, result: DownstreamResult, before: Rollout, after: Rollout
) -> None:
    by_config = config.benchmark.description.overall != "items"
    tables = (rollout_outcome_table(found, config.sampling.n, result.sampling.turns) for found in (before, after))
    numbers = [] if after.outcomes is None else level_numbers(*tables, by_config=by_config)
    frames = {
        "candidates": after.candidates,
        "candidates_start": before.candidates,
        "rewards": after.rewards,
        "selected": after.selected,
    }
    if before.outcomes is not None and after.outcomes is not None:
        frames |= {"outcomes": after.outcomes, "outcomes_start": before.outcomes}
    write_run(output, config, result, metrics_frame(numbers), frames, folders=(POLICY_FOLDER,))
