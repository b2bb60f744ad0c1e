"""Verbs that measure the effect of a reward model on a policy."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from pluralbench_policies.verl import VerlConfig
from pluralbench_runs import Seed
from pluralbench_runs.options import Options

from pluralbench.config import (
    ClusterConfig,
    ConnectionConfig,
    DataConfig,
    DownstreamPromptConfig,
    LocalModel,
    OptimizeConfig,
    OutcomeConfig,
    Profile,
    PromptConfig,
    SamplingConfig,
    ScoringConfig,
)
from pluralbench.verbs.evaluate import WITHOUT_DRAW

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pluralbench.evaluation.models import Scorable
    from pluralbench.results.downstream import BestOfNRunConfig, DownstreamResult, OptimizeRunConfig
    from pluralbench.results.runs import Run

CONNECTION = ("timeout", "max_retries", "requests_per_minute", "tokens_per_minute")
PolicyConnection = Annotated[ConnectionConfig | None, Options("Policy", CONNECTION, "policy-")]
JudgeConnection = Annotated[ConnectionConfig | None, Options("Judge", CONNECTION, "judge-")]
Prompts = Annotated[str | Path | DataConfig | None, Options(left_out=WITHOUT_DRAW)]
Context = Annotated[DownstreamPromptConfig | Profile | PromptConfig | None, Options("Data")]


def best_of_n(
    policy: str | Path | LocalModel,
    rewards: "Mapping[str, Scorable] | Sequence[Scorable]",
    *,
    benchmark: str = "personalized",
    data: Prompts = None,
    prompt: Context = None,
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
) -> "Run[BestOfNRunConfig, DownstreamResult]":
    """Sample candidates from a policy, select the best by each reward model, and judge the selected ones.

    Candidates are sampled once, and each is judged at most once, even if several reward models select it. The value of
    best-of-k is the expectation over all sets of k candidates, and also that of the first k candidates, as in
    Personalized RewardBench (section 5.1). Repeat it with the same arguments to resume.

    Args:
        policy: Model that answers the prompts: `"local"` (the embedded model), the name of a model at the base URL of
            `policy_connection`, or a directory or ORG/NAME on the Hub, which runs in this process.
        rewards: Reward models, each as `pluralbench.score` takes it: a mapping from name to model, or a sequence whose
            models are named by the last part of their path.
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
    arguments = locals()
    from pluralbench.downstream.best_of_n import best_of_n as run_best_of_n

    return run_best_of_n(**arguments)


def optimize(
    policy: str | Path | LocalModel,
    reward: "Scorable",
    *,
    name: str | None = None,
    benchmark: str = "personalized",
    data: Prompts = None,
    train: str | Path | DataConfig | None = None,
    prompt: Context = None,
    options: Annotated[OptimizeConfig | None, Options("Optimization")] = None,
    sampling: SamplingConfig | None = None,
    scoring: Annotated[ScoringConfig | None, Options("Reward model")] = None,
    outcome: Annotated[OutcomeConfig | None, Options("Judge", ("judged",), "judge-")] = None,
    judge_connection: JudgeConnection = None,
    seed: Seed = 0,
    reuse: Path | None = None,
    out: str | Path | None = None,
    fresh: bool = False,
) -> "Run[OptimizeRunConfig, DownstreamResult]":
    """Optimize a policy against a reward model with PPO, RLOO or GRPO, and judge its answers before and after.

    Personalized RewardBench, section 5.1 and appendix B. Requires the extra `optimize`; in a clone: uv sync --inexact
    --package pluralbench --extra optimize. The result's directory `policy` is an ordinary language model with the
    training curves (curves.png) and log (log.jsonl). Repeat it with the same arguments to resume.

    Args:
        policy: Language model to optimize: a directory or ORG/NAME on the Hub.
        reward: Reward model, as `pluralbench.score` takes it.
        name: Name of the reward model in results. Default: the last part of its path.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Its responses are not used.
        data: Location of the prompts that are answered and judged, or a `DataConfig`. Default: the benchmark's data on
            the Hub.
        train: Location of the training prompts, or a `DataConfig`. Default: the prompts of `data`.
        prompt: User context that the policy and the reward model read. Default: ten posts of the profile.
        options: Algorithm and training options.
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
    """
    arguments = locals()
    from pluralbench.downstream.optimization import optimize as run_optimize

    return run_optimize(**arguments)


def optimize_by_verl(
    policy: LocalModel,
    reward: LocalModel,
    *,
    benchmark: str = "personalized",
    data: Prompts = None,
    prompt: Context = None,
    options: Annotated[OptimizeConfig | None, Options("Optimization")] = None,
    scoring: Annotated[ScoringConfig | None, Options("Reward model")] = None,
    verl: Annotated[VerlConfig | None, Options("verl", prefix="verl-")] = None,
    cluster: Annotated[ClusterConfig | None, Options("verl", ("workers", "gpus_per_worker"))] = None,
    out: str | Path | None = None,
) -> Path:
    """Optimize a policy against a reward model with verl, on several GPUs.

    Writes verl's input files, lets verl check them, and starts verl, which resumes by itself. To judge the optimized
    policy, merge verl's checkpoint into an ordinary model (`python -m verl.model_merger merge`) and run `best-of-n`
    with it.

    Args:
        policy: Language model to optimize.
        reward: Reward model to optimize against.
        benchmark: Name, such as personalized, multilingual, chinese, reward-bench-2 or pairs (`pluralbench list` shows
            all), or a TOML file. Its responses are not used.
        data: Location of the prompts to optimize on, or a `DataConfig`. Default: the benchmark's data on the Hub.
        prompt: User context that the policy and the reward model read. Default: ten posts of the profile.
        options: Training options.
        scoring: Options of the reward model.
        verl: Options that only verl has.
        cluster: Ray cluster on which verl runs. Default: this machine.
        out: Directory of verl's files. Default: a name under runs/ with the benchmark and the models.

    Returns:
        The directory of the input files.

    Raises:
        UserError: An argument or the data is not valid, or verl is not installed. In the latter case the input files
            are written nevertheless.

    Examples:
        pluralbench optimize-verl --policy ./policy --reward ./rm-a --data dist/personalized-rewardbench
        pluralbench optimize-verl --policy ./policy --reward ./rm-a --verl-nodes 2 --cluster ray
    """
    arguments = locals()
    from pluralbench.downstream.verl import optimize_by_verl as run_verl

    return run_verl(**arguments)
