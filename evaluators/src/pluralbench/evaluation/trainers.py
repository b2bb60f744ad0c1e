"""How trainers of other libraries read pairs: one entry of `TRAINERS` for each."""

from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

TrainerName = Literal["trl", "openrlhf", "nemo-rl", "llama-factory", "axolotl", "verl"]
Row = dict[str, Any]
TRAIN, TEST = "train", "test"


class Example(NamedTuple):
    """A prompt with the pairs of responses to learn from.

    Attributes:
        cluster: User of the item, or its prompt if the data has no users.
        pairs: The better and the worse response of each pair; the first pair has a best response.
    """

    id: str
    cluster: str
    prompt: list[dict[str, str]]
    pairs: list[tuple[str, str]]


class Trainer(NamedTuple):
    """A trainer, and how it reads pairs.

    Attributes:
        suffix: Suffix of the tables `train` and `test`.
        rows: Rows of an example; none if the format cannot hold its conversation.
        command: The command that trains on a directory and measures the loss on its test set. A template of `out`, and
            of `batch`: a number of rows in a step, where the default of the library may be more than there are.
        limits: Conversations that the format cannot hold, for messages.
        files: Further files of a directory, by name: a text, or values as JSON (which is YAML too).
    """

    name: str
    suffix: str
    rows: Callable[[Example], list[Row]]
    command: str
    limits: str = ""
    files: Mapping[str, Any] = {}


def _message(role: str, text: str) -> dict[str, str]:
    return {"role": role, "content": text}


def _trl(example: Example) -> list[Row]:
    return [
        {
            "prompt": example.prompt,
            "chosen": [_message("assistant", better)],
            "rejected": [_message("assistant", worse)],
        }
        for better, worse in example.pairs
    ]


def _openrlhf(example: Example) -> list[Row]:
    # Whole conversations: with a prompt of its own, an answer would be cut out of the rendered text by its length.
    return [
        {"chosen": [*row["prompt"], *row["chosen"]], "rejected": [*row["prompt"], *row["rejected"]]}
        for row in _trl(example)
    ]


def _nemo_rl(example: Example) -> list[Row]:
    return [
        {
            "context": example.prompt,
            "completions": [
                {"rank": rank, "completion": [_message("assistant", text)]} for rank, text in enumerate(pair)
            ],
        }
        for pair in example.pairs
    ]


def _llama_factory(example: Example) -> list[Row]:
    system = example.prompt[0]["content"] if example.prompt[0]["role"] == "system" else ""
    turns = example.prompt[1:] if system else example.prompt
    roles = ["user", "assistant"] * len(turns)
    if len(turns) % 2 == 0 or [turn["role"] for turn in turns] != roles[: len(turns)]:
        return []
    speaker = {"user": "human", "assistant": "gpt"}
    conversation = [{"from": speaker[turn["role"]], "value": turn["content"]} for turn in turns]
    return [
        {
            "conversations": conversation,
            "system": system,
            "chosen": {"from": "gpt", "value": better},
            "rejected": {"from": "gpt", "value": worse},
        }
        for better, worse in example.pairs
    ]


def _axolotl(example: Example) -> list[Row]:
    if len(example.prompt) != 1:
        return []
    # Axolotl needs `system` in each row and makes a system message of an empty one, which `drop_system_message` drops.
    return [
        {"system": "", "input": example.prompt[0]["content"], "chosen": better, "rejected": worse}
        for better, worse in example.pairs
    ]


def _verl(example: Example) -> list[Row]:
    if not example.pairs:
        return []
    better, worse = example.pairs[0]
    return [
        {
            "data_source": "pluralbench",
            "prompt": example.prompt,
            "ability": "preference",
            "reward_model": {"style": "model", "ground_truth": better},
            "extra_info": {"id": example.id, "prompt": example.prompt, "chosen": better, "rejected": worse},
        }
    ]


_REWARD = """from pluralbench import LocalModel, as_reward_function

compute_score = as_reward_function(LocalModel(name="ORG/NAME"), "verl")
"""
_SHAREGPT = {
    "formatting": "sharegpt",
    "ranking": True,
    "columns": {"messages": "conversations", "system": "system", "chosen": "chosen", "rejected": "rejected"},
}
_BRADLEY_TERRY = {"type": "bradley_terry.chat_template", "ds_type": "json", "drop_system_message": True}
TRAINERS: dict[TrainerName, Trainer] = {
    "trl": Trainer(
        "TRL",
        ".jsonl",
        _trl,
        "trl reward --model_name_or_path MODEL --dataset_name {out} --max_length 4096 --eval_strategy epoch "
        "--output_dir reward-model",
    ),
    "openrlhf": Trainer(
        "OpenRLHF",
        ".jsonl",
        _openrlhf,
        "deepspeed --module openrlhf.cli.train_rm --model.model_name_or_path MODEL --data.dataset {out}/train.jsonl "
        "--eval.dataset {out}/test.jsonl --data.apply_chat_template --data.max_len 4096 "
        "--train.batch_size {batch} --ckpt.output_dir reward-model",
    ),
    "nemo-rl": Trainer(
        "NeMo-RL",
        ".jsonl",
        _nemo_rl,
        # Of `rm.yaml`, whose chat template is Llama's, and whose data has a split `validation`.
        "uv run examples/run_rm.py policy.model_name=MODEL policy.tokenizer.chat_template=default "
        "policy.max_total_sequence_length=4096 policy.train_global_batch_size={batch} "
        "data.train.dataset_name=PreferenceDataset +data.train.data_path={out}/train.jsonl "
        "data.validation.dataset_name=PreferenceDataset data.validation.split=train "
        "+data.validation.data_path={out}/test.jsonl",
    ),
    "llama-factory": Trainer(
        "LLaMA-Factory",
        ".jsonl",
        _llama_factory,
        "llamafactory-cli train --stage rm --do_train true --model_name_or_path MODEL --template TEMPLATE "
        "--dataset_dir {out} --dataset train --eval_dataset test --do_eval true --cutoff_len 4096 "
        "--output_dir reward-model",
        "turns that do not alternate between user and assistant",
        {"dataset_info.json": {split: {"file_name": f"{split}.jsonl", **_SHAREGPT} for split in (TRAIN, TEST)}},
    ),
    "axolotl": Trainer(
        "Axolotl",
        ".jsonl",
        _axolotl,
        "cd {out} && axolotl train axolotl.yaml --base-model MODEL",
        "a system message or several turns",
        {
            "axolotl.yaml": {
                "base_model": "MODEL",
                "model_type": "AutoModelForSequenceClassification",
                "num_labels": 1,
                "reward_model": True,
                "chat_template": "tokenizer_default",
                "datasets": [{"path": "train.jsonl", **_BRADLEY_TERRY}],
                "test_datasets": [{"path": "test.jsonl", "split": "train", **_BRADLEY_TERRY}],
                "sequence_len": 4096,
                "micro_batch_size": 1,
                "num_epochs": 1,
                "eval_strategy": "epoch",
                "learning_rate": 1e-5,
                "output_dir": "reward-model",
            }
        },
    ),
    "verl": Trainer(
        "verl",
        ".parquet",
        _verl,
        # verl cuts longer prompts to 512 tokens by default, while the reward function gets all of them.
        "python3 -m verl.trainer.main_ppo data.train_files={out}/train.parquet data.val_files={out}/test.parquet "
        "data.max_prompt_length=4096 data.filter_overlong_prompts=True data.train_batch_size={batch} "
        "algorithm.adv_estimator=grpo actor_rollout_ref.model.path=MODEL actor_rollout_ref.rollout.name=vllm "
        "actor_rollout_ref.rollout.n=4 actor_rollout_ref.actor.ppo_mini_batch_size={batch} "
        "actor_rollout_ref.actor.use_dynamic_bsz=True reward.custom_reward_function.path={out}/reward.py",
        files={"reward.py": _REWARD},
    ),
}
"""The formats, by the value of `--for`; [Export](docs/how-to/export.md) has them as a table."""
