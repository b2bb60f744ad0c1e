"""Policy optimization with verl, for several GPUs and machines: its files, their check, its start and its rewards.

`python -m pluralbench_policies.verl FOLDER` checks the files of `verl_files` with verl itself.

verl needs other versions of transformers and tensordict than this workspace, so it runs in an environment of its own
that also has pluralbench. The values are those of Personalized RewardBench (appendix B and its PPO scripts).
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from pkgutil import resolve_name
from typing import Any

from pluralbench_local import LocalModel
from pluralbench_local.config import described
from pluralbench_rewards import ModelConfig, RewardModel, ScoringConfig
from pluralbench_runs import ClusterConfig, FrozenModel, atomic_write, write_text
from pluralbench_runs.cluster import DEFAULT_CLUSTER
from pydantic import Field

from pluralbench_policies.config import OptimizeConfig, Task
from pluralbench_policies.errors import PolicyError
from pluralbench_policies.reward_functions import RewardFunction

CONFIG, TASKS, REWARD, FUNCTION = "optimize.yaml", "tasks.parquet", "reward.json", "reward.py"
ESTIMATORS = {"ppo": "gae", "rloo": "rloo", "grpo": "grpo"}
FUNCTION_TEXT = '''"""The reward of a completion, by the reward model that `{reward}` describes."""

from pathlib import Path

from pluralbench_policies.verl import scorer_of

compute_score = scorer_of(Path(__file__).with_name("{reward}"))
'''


class VerlConfig(FrozenModel):
    """Resources of a verl run. The paper used 4 GPUs, and a fifth for the reward server."""

    gpus_per_node: int = Field(4, ge=1, description="GPUs per machine.")
    nodes: int = Field(1, ge=1, description="Machines of the Ray cluster.")
    rollout: str = Field("vllm", description="Inference engine for sampling: vllm or sglang.")
    gpu_memory_utilization: float = Field(0.4, gt=0, lt=1, description="Fraction of a GPU's memory for sampling.")
    reward_workers: int = Field(1, ge=1, le=1_000, description="Scoring processes; each loads the reward model.")


def verl_files(
    policy: str | Path | LocalModel,
    reward: ModelConfig,
    tasks: Sequence[Task],
    folder: Path,
    *,
    options: OptimizeConfig | None = None,
    verl: VerlConfig | None = None,
    scoring: ScoringConfig | None = None,
    cluster: ClusterConfig | None = None,
    **fields: Any,
) -> Path:
    """Write verl's input files into `folder`: tasks (Parquet), configuration, and the reward function.

    Args:
        policy: A language model with a chat template: its folder, name on the Hub, or description.
        reward: Description of the reward model; each of verl's processes loads it.
        tasks: The prompts.
        folder: Folder for the files.
        options: Hyperparameters. `kl_coef` lowers the reward for PPO and RLOO, and is in the loss for GRPO.
            `precision`, `kl_steps` and `gradient_checkpointing` (always on) do not apply to verl.
        verl: Resources.
        scoring: How the reward model scores.
        cluster: Ray cluster for verl. Default: the one that Ray detects, or this machine.
        fields: Fields of `LocalModel`, if `policy` is not a description.

    Returns:
        The folder.

    Raises:
        PolicyError: There are too few tasks, or the folder has files of these names that are not of `verl_files`.
    """
    options, verl, scoring = options or OptimizeConfig(), verl or VerlConfig(), scoring or ScoringConfig()
    base = described(policy, **fields)
    if not tasks:
        raise PolicyError("There are no tasks to optimize on.")
    if len(tasks) < options.batch_size:
        raise PolicyError(
            f"{len(tasks):,} prompts are too few for a step of {options.batch_size:,}; "
            "lower `batch_size=...` or add tasks."
        )
    others = [name for name in (TASKS, FUNCTION, CONFIG) if (folder / name).exists()]
    if others and not (folder / REWARD).exists():
        raise PolicyError(f"{folder / others[0]} is not of an earlier export to verl; choose another folder.")
    folder.mkdir(parents=True, exist_ok=True)
    kind = type(reward)
    description: Any = reward
    model = {"description": f"{kind.__module__}:{kind.__qualname__}", "values": description.model_dump(mode="json")}
    described_reward = model | {"scoring": scoring.model_dump(mode="json"), "divisor": options.reward_divisor}
    write_text(folder / REWARD, json.dumps(described_reward, indent=2) + "\n")  # first: it marks the folder
    _write_tasks(tasks, folder / TASKS)
    write_text(folder / FUNCTION, FUNCTION_TEXT.format(reward=REWARD))
    config = verl_config(base, folder.resolve(), options, verl)
    if cluster is not None and cluster.address not in {None, DEFAULT_CLUSTER}:
        config["ray_kwargs"] = {"ray_init": {"address": cluster.address}}  # verl passes it to `ray.init`
    # JSON is YAML.
    write_text(folder / CONFIG, json.dumps(config, indent=2) + "\n")
    return folder


def _write_tasks(tasks: Sequence[Task], path: Path) -> None:
    import pyarrow as pa
    from pyarrow.parquet import write_table

    rows = [
        {
            "data_source": "pluralbench",
            "prompt": [dict(message) for message in task.messages],
            "ability": "personalization",
            "reward_model": {"style": "model", "ground_truth": ""},
            "extra_info": {"index": place, "group": json.dumps(asdict(task.group), ensure_ascii=False)},
        }
        for place, task in enumerate(tasks)
    ]
    with atomic_write(path) as new:
        write_table(pa.Table.from_pylist(rows), new)


def verl_config(base: LocalModel, folder: Path, options: OptimizeConfig, verl: VerlConfig) -> dict[str, Any]:
    """Make the Hydra overrides of verl's default configuration."""
    mini = options.batch_size // options.updates
    part = {"ppo_mini_batch_size": mini, "ppo_micro_batch_size_per_gpu": options.micro_batch_size}
    in_loss = options.algorithm == "grpo"  # as in TRL
    model = {
        "path": base.name,
        "enable_gradient_checkpointing": True,
        "trust_remote_code": base.trust_remote_code,
    }
    return {
        "defaults": ["ppo_trainer", "_self_"],
        "hydra": {"searchpath": ["pkg://verl.trainer.config"]},
        "data": {
            "train_files": str(folder / TASKS),
            "val_files": str(folder / TASKS),
            "train_batch_size": options.batch_size,
            "max_prompt_length": options.max_prompt_tokens,
            "max_response_length": options.max_tokens,
            "filter_overlong_prompts": True,
            "truncation": "error",
            "seed": options.seed,
        },
        "actor_rollout_ref": {
            "model": model,
            "actor": part
            | {
                "optim": {"lr": options.learning_rate, "weight_decay": options.weight_decay},
                # verl sets the last two, which override the first.
                **dict.fromkeys(("clip_ratio", "clip_ratio_low", "clip_ratio_high"), options.clip_range),
                "clip_ratio_c": options.dual_clip,
                "grad_clip": options.max_grad_norm,
                "use_kl_loss": options.kl_coef > 0 and in_loss,
                "kl_loss_coef": options.kl_coef,
            },
            "rollout": {
                "name": verl.rollout,
                "n": options.completions,
                "temperature": options.temperature,
                "top_k": -1,
                "top_p": 1.0,
                "load_format": "safetensors",
                "gpu_memory_utilization": verl.gpu_memory_utilization,
                "max_num_seqs": 4,
                "tensor_model_parallel_size": 1,
                "enable_chunked_prefill": False,
                "log_prob_micro_batch_size_per_gpu": 8,
            },
            "ref": {"log_prob_micro_batch_size_per_gpu": 8},
        },
        "critic": part
        | {
            "model": model,
            "optim": {"lr": options.critic_learning_rate, "weight_decay": options.weight_decay},
            "cliprange_value": options.value_clip_range,
            "grad_clip": options.max_grad_norm,
        },
        "algorithm": {
            "adv_estimator": ESTIMATORS[options.algorithm],
            "gamma": options.gamma,
            "lam": options.gae_lambda,
            "use_kl_in_reward": options.kl_coef > 0 and not in_loss,
            "kl_ctrl": {"kl_coef": options.kl_coef},
        },
        "reward": {
            "num_workers": verl.reward_workers,
            "custom_reward_function": {"path": str(folder / FUNCTION), "name": "compute_score"},
        },
        "trainer": {
            "total_epochs": options.epochs,
            "total_training_steps": options.max_steps,
            "val_before_train": False,
            "test_freq": -1,
            "save_freq": options.save_steps,
            "n_gpus_per_node": verl.gpus_per_node,
            "nnodes": verl.nodes,
            "project_name": "pluralbench",
            "experiment_name": folder.name,
            "default_local_dir": str(folder / "checkpoints"),
            "logger": ["console", "file"],
        },
    }


def run_verl(folder: Path) -> None:
    """Check the files of `verl_files` with verl itself, and run verl, which resumes from its checkpoints.

    Raises:
        PolicyError: verl is not installed, rejects the files, or fails.
    """
    if find_spec("verl") is None:
        raise PolicyError(
            f"verl is not installed; install verl 0.9.1 and pluralbench in a separate environment, and run there with "
            f"the files in {folder}."
        )
    command = [sys.executable, "-m", "pluralbench_policies.verl", str(folder)]
    checked = subprocess.run(command, check=False)  # noqa: S603 - a process, since Hydra and Ray keep global state
    if checked.returncode:
        raise PolicyError(f"verl rejects the files in {folder}; see its output above.")
    command = [sys.executable, "-m", "verl.trainer.main_ppo", "--config-path", str(folder.resolve())]
    log = {"VERL_FILE_LOGGER_PATH": str(folder.resolve() / "log.jsonl")}
    ran = subprocess.run([*command, "--config-name", Path(CONFIG).stem], check=False, env=os.environ | log)  # noqa: S603
    if ran.returncode:
        raise PolicyError(f"verl ended with status {ran.returncode}; run it again to resume from its last checkpoint.")


def check(folder: Path) -> tuple[Any, Any, Any]:
    """Load the composed configuration, the dataset and the reward function. Raises verl's own errors."""
    from hydra import compose, initialize_config_dir
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.trainer.ppo.utils import need_critic, need_reference_policy
    from verl.utils import hf_tokenizer
    from verl.utils.config import validate_config
    from verl.utils.dataset.rl_dataset import RLHFDataset

    with initialize_config_dir(str(folder.resolve()), version_base=None):
        config = compose(Path(CONFIG).stem)
    validate_config(config, use_reference_policy=need_reference_policy(config), use_critic=need_critic(config))
    tokenizer = hf_tokenizer(config.actor_rollout_ref.model.path)
    tasks = RLHFDataset(data_files=str(folder / TASKS), tokenizer=tokenizer, config=config.data)
    return config, tasks, get_custom_reward_fn(config)


def scorer_of(path: Path) -> Callable[..., float]:
    """Make verl's reward function from a file that describes the reward model."""
    settings = json.loads(path.read_text(encoding="utf-8"))

    def load() -> RewardModel:
        kind: Any = resolve_name(settings["description"])
        description: Any = kind.model_validate(settings["values"])
        loaded: RewardModel = resolve_name(description.loader)(
            description, ScoringConfig.model_validate(settings["scoring"])
        )
        return loaded

    reward, divisor = RewardFunction(load, "verl", "compute_score"), float(settings["divisor"])
    return lambda **values: reward(**values) / divisor


if __name__ == "__main__":
    composed, rows, _function = check(Path(sys.argv[1]))
    steps = len(rows) // composed.data.train_batch_size
    sys.stdout.write(f"verl reads {len(rows):,} tasks, {steps:,} steps per epoch.\n")
    sys.exit(0 if steps else 1)
