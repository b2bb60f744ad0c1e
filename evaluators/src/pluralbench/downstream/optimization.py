"""Optimize a policy against a reward model, and judge its answers before and after."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from pluralbench_local import LocalModel
from pluralbench_policies.config import OptimizeConfig, Task
from pluralbench_policies.language_models import language_model
from pluralbench_rewards import ModelRecord, ScoringConfig
from pluralbench_runs import Seed, digest
from pluralbench_runs.options import Flag, Options

from pluralbench.arguments import JudgeConnection, Undrawn, UserContext
from pluralbench.config import (
    DataConfig,
    DownstreamPromptConfig,
    OutcomeConfig,
    SamplingConfig,
    as_prompt_config,
)
from pluralbench.downstream.candidates import SYSTEM, find_policy, initial_threads
from pluralbench.downstream.outcomes import outcome_judge
from pluralbench.downstream.rollout import (
    RolloutSetup,
    model_record,
    named_models,
    outcome_record,
    reused_ledger,
    rollout,
    sampling_record,
    scoring_config,
)
from pluralbench.errors import EvaluationError
from pluralbench.evaluation.folders import run_folder
from pluralbench.evaluation.loading import LoadedBenchmark, load_benchmark, run_directory
from pluralbench.evaluation.models import Scorable, reward_loader
from pluralbench.metrics.metric import START
from pluralbench.results.downstream import POLICY_FOLDER, DownstreamResult, OptimizeRunConfig, RewardedRecord
from pluralbench.results.kinds import numbers_of_run
from pluralbench.results.record import ScoringRecord
from pluralbench.results.run_files import LEDGER_FILE, write_run
from pluralbench.results.runs import Run, load_run

ONE = SamplingConfig(n=1)
"""Sampling of the judged answers: one per prompt."""


def optimize(
    policy: str | Path | LocalModel,
    reward: Scorable | Mapping[str, Scorable],
    *,
    trained: Annotated[str | Path | None, Flag(metavar="MODEL", panel="Policy")] = None,
    benchmark: str = "personalized",
    data: Undrawn = None,
    train: str | Path | DataConfig | None = None,
    prompt: UserContext = None,
    options: Annotated[OptimizeConfig | None, Options("Optimization")] = None,
    sampling: SamplingConfig | None = None,
    scoring: Annotated[ScoringConfig | None, Options("Reward model")] = None,
    outcome: Annotated[OutcomeConfig | None, Options("Judge", ("judged",), "judge-")] = None,
    judge_connection: JudgeConnection = None,
    seed: Seed = 0,
    reuse: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[OptimizeRunConfig, DownstreamResult]:
    """Optimize a policy against a reward model with PPO, RLOO or GRPO, and judge its answers before and after.

    Personalized RewardBench, section 5.1 and appendix B. Requires the extra `optimize`; in a clone: uv sync --inexact
    --package pluralbench --extra optimize. The result's directory `policy` is an ordinary language model with the
    training curves (curves.png) and log (log.jsonl). Repeat it with the same arguments to resume. With `trained`, a
    policy that another trainer made is judged in the same way, and nothing is trained.

    Args:
        policy: Language model to optimize: a directory or ORG/NAME on the Hub.
        reward: Reward model, as `pluralbench.score` takes it, or a mapping from its name in results to the model. The
            default name is the last part of its path.
        trained: Policy that was trained against the reward model elsewhere, as in verl or OpenRLHF: a directory or
            ORG/NAME on the Hub.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Its responses are not used.
        data: Location of the prompts that are answered and judged, or a `DataConfig`. Default: the benchmark's data on
            the Hub.
        train: Location of the training prompts, or a `DataConfig`; of a dataset its split `train`, if it has one.
            Default: the prompts of `data`; with `trained`, they are not known.
        prompt: User context that the policy and the reward model read. Default: ten posts of the profile.
        options: Algorithm and training options; none with `trained`.
        sampling: Sampling of the judged answers. Default: one answer per prompt.
        scoring: Options of a reward model that runs in this process.
        outcome: Judge of the answers and the measure that it applies. Default: no judge.
        judge_connection: Endpoint of the judge. Default: OpenAI's.
        seed: Random seed, of training and of the judged answers, if the policy takes seeds, and of the response order
            in comparisons. In Python training has its own seed in `options`.
        reuse: Ledger (or directory with one) whose recorded calls are not repeated.
        out: Run directory. Default: a name under runs/ that lists the policy and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run, with the frames `candidates`, `rewards`, `selected`, `candidates_start` and, with a judge, `outcomes`
        and `outcomes_start`. Frames ending in `_start` are of the policy before optimization.

    Raises:
        UserError: An argument, the data, the policy, the reward model or the judge cannot be used.

    Examples:
        pluralbench optimize --policy ./policy --reward ./rm-a --data dist/personalized-rewardbench --judge gpt-5-mini
        pluralbench optimize --policy ./policy --reward ./rm-a --algorithm rloo --max-steps 20 --batch-size 8
        pluralbench optimize --policy ./policy --trained ./by-verl --reward ./rm-a --judge gpt-5-mini
    """
    prompt, options = as_prompt_config(prompt or DownstreamPromptConfig()), _training_options(options, trained)
    sampling, outcome, scoring = sampling or ONE, outcome or OutcomeConfig(), scoring or ScoringConfig()
    loaded = load_benchmark(benchmark, data, prompt, prompts_only=True)
    learned = loaded
    if train is not None:
        learned = load_benchmark(benchmark, train, prompt, prompts_only=True, for_training=True)
    start = policy if isinstance(policy, LocalModel) else LocalModel(name=str(policy))
    start.check_location()
    end: LocalModel | None = None
    if trained is not None:
        end = language_model(start.model_copy(update={"name": str(trained), "revision": None}))
    [(reward_name, model)] = named_models(reward if isinstance(reward, Mapping) else [reward]).items()
    judge = outcome_judge(outcome, judge_connection, loaded.items.frame)
    config = OptimizeRunConfig(
        policy=start.record().model_copy(update={"kind": "policy"}),
        reward=model_record(model, scoring),
        trained=None if end is None else end.record().model_copy(update={"kind": "policy"}),
        train=learned.data_record() if trained is None or train is not None else None,
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
    how = Path(str(trained)).name if options is None else options.algorithm
    label = f"{loaded.name}-{Path(start.name).name}-{how}-{reward_name}"
    settings = (loaded.data, prompt, start, options, scoring, outcome)
    target = Path(out or run_folder(label, config, *settings, seed=seed, exclude=("algorithm", "judge")))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            items, groups = loaded.items.frame, loaded.groups()
            with reused_ledger(output.work, reuse, judge) as ledger:
                rewarded, training = config.reward, dict[str, Any]()
                if end is None:
                    end, rewarded, training = _optimize_policy(start, model, learned, config, output.work)
                same = None if config.train is None else config.train.digest == config.data.digest
                rollouts = []
                for stage, answering in (("start", start), ("end", end)):
                    resolved, work = find_policy(answering, sampling), output.work / stage
                    setup = RolloutSetup(resolved, {}, scoring, sampling, judge, ledger, work, seed)
                    rollouts.append(rollout(setup, items, groups))
                before, after = rollouts
                result = DownstreamResult(
                    policy=config.policy,
                    rewards={
                        reward_name: RewardedRecord(model=rewarded, scoring=ScoringRecord(), missing=0, identical=0)
                    },
                    sampling=sampling_record(setup, after.candidates, groups),
                    outcome=outcome_record(setup, after.outcomes),
                    optimization=training | {"judged_on_the_same_prompts": same},
                )
                ledger.export(output.work / LEDGER_FILE, ledger.used)
            start_frames = before.frames(f"_{START}", ("candidates", "outcomes"))
            frames = after.frames() | start_frames
            metrics = numbers_of_run(config, result, frames)
            write_run(output, config, result, metrics, frames, folders=(POLICY_FOLDER,) if trained is None else ())
    return load_run(target, OptimizeRunConfig)


def _training_options(options: OptimizeConfig | None, trained: str | Path | None) -> OptimizeConfig | None:
    """Return the options of the training, none of which applies to a policy that is trained already."""
    if trained is None:
        return options or OptimizeConfig()
    given = options and next(iter(options.model_dump(exclude_defaults=True, exclude={"seed"})), None)
    if given:
        raise EvaluationError(
            f"`{given}=...` is of a training, and {trained} is trained already; leave out one of the two."
        )
    return None


def policy_tasks(loaded: LoadedBenchmark) -> list[Task]:
    """Return the training prompts as the policy and the reward model read them; of conversations the first turn."""
    items = loaded.items.frame
    threads = initial_threads(items, loaded.groups())
    return [Task(thread.messages, replace(thread.group, id=f"{thread.config}/{thread.id}")) for thread in threads]


def _optimize_policy(
    start: LocalModel, reward: Scorable, trained: LoadedBenchmark, config: OptimizeRunConfig, work: Path
) -> tuple[LocalModel, ModelRecord, dict[str, Any]]:
    from pluralbench_policies import optimize as run

    model = reward_loader(reward, scoring_config(reward, config.scoring), "`optimize`")()
    done = run(start, model, policy_tasks(trained), work / POLICY_FOLDER, options=config.options)
    return start.model_copy(update={"name": str(done.folder), "revision": None}), model.record(), done.record
