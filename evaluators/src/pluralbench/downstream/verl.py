"""Policy optimization with verl on several GPUs and machines: its input files, their check, and its start."""

from pathlib import Path
from typing import Annotated

from pluralbench_local import LocalModel
from pluralbench_policies.config import OptimizeConfig
from pluralbench_policies.verl import VerlConfig, run_verl, verl_files
from pluralbench_rewards import ScoringConfig
from pluralbench_runs import ClusterConfig
from pluralbench_runs.options import Options

from pluralbench.arguments import Undrawn, UserContext
from pluralbench.config import DownstreamPromptConfig
from pluralbench.downstream.optimization import policy_tasks
from pluralbench.evaluation.loading import load_benchmark


def optimize_by_verl(
    policy: LocalModel,
    reward: LocalModel,
    *,
    benchmark: str = "personalized",
    data: Undrawn = None,
    prompt: UserContext = None,
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
    loaded = load_benchmark(benchmark, data, prompt or DownstreamPromptConfig(), prompts_only=True)
    tasks = policy_tasks(loaded)
    folder = Path(out or f"runs/{Path(benchmark).stem}-{Path(policy.name).name}-verl-{Path(reward.name).name}")
    verl_files(policy, reward, tasks, folder, options=options, verl=verl, scoring=scoring, cluster=cluster)
    run_verl(folder)
    return folder
