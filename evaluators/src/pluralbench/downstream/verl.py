"""Policy optimization with verl on several GPUs and machines: its input files, their check, and its start."""

from pathlib import Path

from pluralbench_local import LocalModel
from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.verl import VerlConfig, run_verl, verl_files
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import ClusterConfig

from pluralbench.config import DataConfig, DownstreamPromptConfig, PromptConfig
from pluralbench.downstream.optimization import policy_tasks
from pluralbench.evaluation.loading import load_benchmark


def optimize_by_verl(
    policy: LocalModel,
    reward: LocalModel,
    out: Path,
    *,
    benchmark: str = "personalized",
    data: str | Path | DataConfig | None = None,
    prompt: PromptConfig | None = None,
    options: OptimizeConfig | None = None,
    scoring: ScoringConfig | None = None,
    verl: VerlConfig | None = None,
    cluster: ClusterConfig | None = None,
) -> Path:
    """Write verl's input files, let verl check them, and start verl.

    To judge the optimized policy, merge verl's checkpoint into an ordinary model (`python -m verl.model_merger merge`)
    and run `best_of_n` with it.

    Args:
        policy: Language model to optimize.
        reward: Reward model to optimize against.
        out: Directory of the input files.
        benchmark: Benchmark with the training prompts.
        data: Location of the prompts, or a `DataConfig`. Default: the benchmark's data on the Hub.
        prompt: User context that the policy and the reward model read. Default: ten posts of the profile.
        options: Training options.
        scoring: Options of the reward model.
        verl: Options that only verl has.
        cluster: Ray cluster on which verl runs. Default: this machine.

    Returns:
        The directory of the input files.

    Raises:
        UserError: An argument or the data is not valid, or verl is not installed. In the latter case the input files
            are written nevertheless.
    """
    loaded = load_benchmark(benchmark, data, prompt or DownstreamPromptConfig(), prompts_only=True)
    tasks = policy_tasks(loaded)
    folder = verl_files(policy, reward, tasks, out, options=options, verl=verl, scoring=scoring, cluster=cluster)
    run_verl(folder)
    return folder
