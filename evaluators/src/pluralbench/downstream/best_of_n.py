"""Best-of-N sampling with several reward models, as a Python function."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

from pluralbench_local import LocalModel
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import ClusterConfig, Seed, digest
from pluralbench_runs.options import Options

from pluralbench.arguments import JudgeConnection, PolicyConnection, Undrawn, UserContext
from pluralbench.config import (
    DownstreamPromptConfig,
    OutcomeConfig,
    SamplingConfig,
    as_prompt_config,
)
from pluralbench.downstream.candidates import SYSTEM, find_policy
from pluralbench.downstream.outcomes import outcome_judge
from pluralbench.downstream.rollout import (
    RolloutSetup,
    model_record,
    named_models,
    outcome_record,
    reused_ledger,
    rewarded_record,
    rollout,
    sampling_record,
)
from pluralbench.evaluation.folders import file_name, run_folder
from pluralbench.evaluation.loading import load_benchmark, run_directory
from pluralbench.evaluation.models import Scorable
from pluralbench.results.downstream import BestOfNRunConfig, DownstreamResult
from pluralbench.results.kinds import numbers_of_run
from pluralbench.results.run_files import LEDGER_FILE, write_run
from pluralbench.results.runs import Run, load_run


def best_of_n(
    policy: str | Path | LocalModel,
    rewards: Mapping[str, Scorable] | Sequence[Scorable],
    *,
    benchmark: str = "personalized",
    data: Undrawn = None,
    prompt: UserContext = None,
    sampling: Annotated[SamplingConfig | None, Options("Policy")] = None,
    scoring: Annotated[ScoringConfig | None, Options("Reward models")] = None,
    outcome: Annotated[OutcomeConfig | None, Options("Judge", prefix="judge-")] = None,
    policy_connection: PolicyConnection = None,
    judge_connection: JudgeConnection = None,
    cluster: ClusterConfig | None = None,
    seed: Seed = 0,
    reuse: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> Run[BestOfNRunConfig, DownstreamResult]:
    """Sample candidates from a policy, select the best by each reward model, and judge the selected ones.

    Candidates are sampled once, and each is judged at most once, even if several reward models select it. The value of
    best-of-k is the expectation over all sets of k candidates, and also that of the first k candidates, as in
    Personalized RewardBench (section 5.1). Repeat it with the same arguments to resume.

    Args:
        policy: Model that answers the prompts: `"local"` (the embedded model), the name of a model at the base URL of
            `policy_connection`, or a directory or ORG/NAME on the Hub, which runs in this process.
        rewards: Reward models, each as `pluralbench.score` takes it: a mapping from name to model, or a sequence whose
            models are named by the last part of their path. One that only compares two responses rewards a candidate
            by its mean probability of being better than the others, over both orders.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Its responses are not used.
        data: Location of the prompts, or a `DataConfig`. Default: the benchmark's data on the Hub.
        prompt: User context that the policy and the reward models read. Default: ten posts of the profile.
        sampling: Number of candidates per prompt, sizes k of best-of-k, and sampling parameters. Default: 16
            candidates at temperature 1.0 and top-p 0.9.
        scoring: Options of reward models that run in this process.
        outcome: Judge of the answers and the measure that it applies. Default: no judge, rewards only.
        policy_connection: Endpoint of the policy. Default: none, the policy runs in this process.
        judge_connection: Endpoint of the judge. Default: OpenAI's.
        cluster: Ray cluster that runs the reward models. Default: this process.
        seed: Random seed, of the candidates, if the policy takes seeds, and of the response order in comparisons.
        reuse: Ledger (or directory with one) whose recorded calls are not repeated.
        out: Run directory. Default: a name under runs/ that lists the policy and the other settings.
        fresh: Start over, and replace existing output.

    Returns:
        The run, with the frames `candidates`, `rewards`, `selected` and, with a judge, `outcomes`.

    Raises:
        UserError: An argument, the data, the policy, a reward model or the judge cannot be used.

    Examples:
        pluralbench best-of-n --policy Qwen/Qwen2.5-0.5B-Instruct --reward ./rm-a --reward ./rm-b --judge gpt-5-mini
        pluralbench best-of-n --policy qwen2.5 --policy-base-url http://localhost:8000/v1 --reward b=./rm-b/last
            --judge local
        pluralbench best-of-n --policy ./policy --reward ./rm-a --data dist/personalized-rewardbench
            --judge rubric-overlap
        pluralbench best-of-n --policy ./policy --reward ./rm-a --benchmark prompts --data mt-bench.jsonl
            --column prompt=turns --profile none --n 32 --measure rating --judge gpt-5-mini     # two turns
    """
    prompt, sampling, outcome = (
        as_prompt_config(prompt or DownstreamPromptConfig()),
        sampling or SamplingConfig(),
        outcome or OutcomeConfig(),
    )
    loaded = load_benchmark(benchmark, data, prompt, prompts_only=True)
    groups = loaded.groups()
    scorables = named_models(rewards)
    scoring = scoring or ScoringConfig()
    records = {name: model_record(model, scoring) for name, model in scorables.items()}
    resolved = find_policy(policy, sampling, policy_connection)
    judge = outcome_judge(outcome, judge_connection, loaded.items.frame)
    config = BestOfNRunConfig(
        policy=resolved.chat,
        rewards=records,
        **loaded.records(),
        sampling=sampling,
        scoring=scoring,
        outcome=outcome,
        judge=judge.chat if judge else None,
        prompts_digest=judge.prompts_digest if judge else None,
        system_digest=digest(SYSTEM),
        seed=seed,
    )
    options = (policy if isinstance(policy, LocalModel) else None, sampling, scoring, outcome)
    name = f"{loaded.name}-{file_name(Path(resolved.record.name).name)}-best-of-{sampling.n}"
    target = Path(out or run_folder(name, config, loaded.data, prompt, *options, seed=seed, exclude=("n", "judge")))
    with run_directory(target, config, fresh=fresh) as output:
        if output is not None:
            with reused_ledger(output.work, reuse, judge) as ledger:
                setup = RolloutSetup(resolved, scorables, scoring, sampling, judge, ledger, output.work, seed, cluster)
                answered = rollout(setup, loaded.items.frame, groups)
                result = DownstreamResult(
                    policy=resolved.record,
                    rewards={name: rewarded_record(answered, name, own) for name, own in answered.rewarded.items()},
                    sampling=sampling_record(setup, answered.candidates, groups),
                    outcome=outcome_record(setup, answered.outcomes),
                )
                ledger.export(output.work / LEDGER_FILE, ledger.used)
            frames = answered.frames()
            write_run(output, config, result, numbers_of_run(config, result, frames), frames)
    return load_run(target, BestOfNRunConfig)
