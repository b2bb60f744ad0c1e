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
    *,
    benchmark: str = "personalized",
    data: str | Path | DataConfig | None = None,
    prompt: PromptConfig | None = None,
    options: OptimizeConfig | None = None,
    scoring: ScoringConfig | None = None,
    verl: VerlConfig | None = None,
    cluster: ClusterConfig | None = None,
    out: str | Path | None = None,
) -> Path:
    """See `pluralbench.verbs.policies.optimize_by_verl`."""
    loaded = load_benchmark(benchmark, data, prompt or DownstreamPromptConfig(), prompts_only=True)
    tasks = policy_tasks(loaded)
    folder = Path(out or f"runs/{Path(benchmark).stem}-{Path(policy.name).name}-verl-{Path(reward.name).name}")
    verl_files(policy, reward, tasks, folder, options=options, verl=verl, scoring=scoring, cluster=cluster)
    run_verl(folder)
    return folder
