"""`optimize`: a policy is optimised against a reward model, and what it answers then is judged."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from pluralbench_calls.chat import ChatConnection
from pluralbench_local import LocalModel
from pluralbench_policies.description import OptimizeOptions, Task
from pluralbench_rewards import Scoring
from pluralbench_runs import Output, digest

from pluralbench.descriptions import Data, DownstreamPrompt, Outcome, Prompt, Sampling
from pluralbench.downstream.candidates import SYSTEM, first_threads, policy_of, turns_of
from pluralbench.downstream.curves import level_numbers
from pluralbench.downstream.outcomes import aspects_of, juror_of
from pluralbench.downstream.records import curves_of, outcome_record, sampling_record
from pluralbench.downstream.walk import Found, Setup, known_of, opened_name, reused_ledger, scoring_for, walk
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.models import Scorable, opened
from pluralbench.evaluation.settings import Loaded, load_benchmark, run_directory
from pluralbench.results.downstream import POLICY_FOLDER, DownstreamResult, OptimizeConfig, RewardedRecord
from pluralbench.results.metrics_frame import metrics_frame
from pluralbench.results.record import ScoringRecord
from pluralbench.results.runs import LEDGER_FILE, Run, load_run, write_run

ONE = Sampling(n=1)
"""What a policy is judged by: one answer to each prompt."""


def optimize(
    policy: str | Path | LocalModel,
    reward: Scorable,
    *,
    name: str | None = None,
    benchmark: str = "personalized",
    data: str | Path | Data | None = None,
    train: str | Path | Data | None = None,
    prompt: Prompt | None = None,
    options: OptimizeOptions | None = None,
    sampling: Sampling | None = None,
    scoring: Scoring | None = None,
    outcome: Outcome | None = None,
    judge_connection: ChatConnection | None = None,
    seed: int = 0,
    reuse_from: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[OptimizeConfig, DownstreamResult]:
    """Optimise a policy against a reward model, and judge what it answers, before and after.

    Personalized RewardBench, section 5.1 and appendix B.

    policy: a language model, a folder or ORG/NAME on the Hub. reward: what `pluralbench.score` takes; name: what to
    call it. data: the prompts that are answered and judged. train: those that the policy is optimised on, without it
    the same. options: how it is optimised. sampling: how it answers afterwards, by default once. The rest is as of
    `best_of_n`.

    The result's folder `policy` holds the optimised policy with its log and curves. What was interrupted goes on with
    the same call. Raises a `UserError` for every mistake of the caller.
    """
    prompt, options = prompt or DownstreamPrompt(), options or OptimizeOptions()
    sampling, outcome, scoring = sampling or ONE, outcome or Outcome(), scoring or Scoring()
    loaded = load_benchmark(benchmark, data, prompt, sampled=True)
    trained = loaded if train is None else load_benchmark(benchmark, train, prompt, sampled=True)
    start = policy if isinstance(policy, LocalModel) else LocalModel(name=str(policy))
    name = name or opened_name(reward)
    juror = juror_of(outcome, judge_connection)
    # Now, since what lacks them would be told only after hours of optimising.
    aspects = aspects_of(loaded.items.frame) if juror is not None and outcome.measure == "rubric" else {}
    config = OptimizeConfig(
        policy=start.record().model_copy(update={"kind": "policy"}),
        reward=known_of(reward, scoring),
        train=trained.data_record(),
        **loaded.records(),
        options=options,
        sampling=sampling,
        scoring=scoring,
        outcome=outcome,
        judge=juror.chat if juror else None,
        prompts_digest=juror.prompts_digest if juror else None,
        system_digest=digest(SYSTEM),
        seed=seed,
    )
    place = f"{loaded.name}-{Path(start.name).name}-{options.algorithm}-{name}"
    choices = (loaded.data, prompt, start, options, scoring, outcome)
    target = Path(out or run_folder(place, config, *choices, seed=seed, said=("algorithm", "judge")))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            end, rewarded, made = _optimized(start, reward, trained, config, output.work)
            items, groups = loaded.items.frame, loaded.groups()
            with reused_ledger(output.work, reuse_from) as ledger:
                found = []
                for which, model in (("start", start), ("end", end)):
                    asked, work = policy_of(model, sampling), output.work / which
                    setup = Setup(asked, {}, scoring, sampling, juror, ledger, work, seed)
                    found.append(walk(setup, items, groups, aspects))
                before, after = found
                result = DownstreamResult(
                    policy=config.policy,
                    rewards={name: rewarded},
                    sampling=sampling_record(setup, after.candidates, max(len(turns_of(group)) for group in groups)),
                    outcome=outcome_record(setup, after.outcomes),
                    optimization=made | {"judged_on_the_same_prompts": config.train.digest == config.data.digest},
                )
                ledger.export(output.work / LEDGER_FILE, ledger.used)
            _write(output, config, result, before, after)
    return load_run(target, OptimizeConfig)


def tasks_of(loaded: Loaded) -> list[Task]:
    """The prompts as a policy reads them, and as a reward model is given them; of conversations the first turn."""
    items = loaded.items.frame
    threads = first_threads(items, loaded.groups())
    return [Task(thread.messages, replace(thread.group, id=f"{thread.config}/{thread.id}")) for thread in threads]


def _optimized(
    start: LocalModel, reward: Scorable, trained: Loaded, config: OptimizeConfig, work: Path
) -> tuple[LocalModel, RewardedRecord, dict[str, Any]]:
    """The optimised policy, the reward model behind it, and the record of the optimisation."""
    from pluralbench_policies import optimize as run  # noqa: PLC0415 - needs torch

    model = opened(reward, scoring_for(reward, config.scoring))[1]()
    done = run(start, model, tasks_of(trained), work / POLICY_FOLDER, options=config.options)
    rewarded = RewardedRecord(model=model.record(), scoring=ScoringRecord(), missing=0, alike=0)
    return start.model_copy(update={"name": str(done.folder), "revision": None}), rewarded, done.record


def _write(output: Output, config: OptimizeConfig, result: DownstreamResult, before: Found, after: Found) -> None:
    by_config = config.benchmark.description.overall != "items"
    tables = (curves_of(found, config.sampling.n, result.sampling.turns) for found in (before, after))
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
