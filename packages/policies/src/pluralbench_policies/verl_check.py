"""`python -m pluralbench_policies.verl_check FOLDER`: check with verl itself the files of `verl_files`.

Composes and validates the configuration, reads the tasks with verl's data loader, and loads the reward function.
"""

import sys
from pathlib import Path
from typing import Any

from pluralbench_policies.verl import CONFIG, TASKS


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


if __name__ == "__main__":
    composed, rows, _function = check(Path(sys.argv[1]))
    steps = len(rows) // composed.data.train_batch_size
    sys.stdout.write(f"verl reads {len(rows):,} tasks, {steps:,} steps per epoch.\n")
    sys.exit(0 if steps else 1)
