"""A world in which studies take seconds: a policy that says words, people who wait for some of them, and recipes."""

import random
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import tomli_w
from reward_models import make_tokenizer, save_language_model
from some_words import WORDS
from written_tables import write

SAID = [word for word in WORDS if word.isascii() and len(word) >= 5]
QUICKLY = {
    "trainable": "head",
    "epochs": 2,
    "gradient_accumulation_steps": 1,
    "batch_size": 4,
    "learning_rate": 0.05,
    "warmup_ratio": 0.0,
}
PPO = {
    "algorithm": "ppo",
    "max_steps": 1,
    "batch_size": 4,
    "mini_batch_size": 4,
    "max_tokens": 12,
    "learning_rate": 1e-3,
}


def save_talker(folder: Path, seed: int = 0) -> str:
    """A language model with random weights that says words which a judge counts, and little else; the folder."""
    import torch
    from transformers import AutoModelForCausalLM

    made = save_language_model(folder, seed=seed, num_hidden_layers=1, tie_word_embeddings=False)
    auto: Any = AutoModelForCausalLM
    model, tokenizer = auto.from_pretrained(made), make_tokenizer()
    alone = [ids[0] for word in SAID if len(ids := tokenizer.encode(f" {word}", add_special_tokens=False)) == 1]
    rows = torch.randn(len(alone), model.config.hidden_size, generator=torch.Generator().manual_seed(seed))
    with torch.no_grad():
        model.lm_head.weight.zero_()
        model.lm_head.weight[alone] = 0.35 * rows
    model.save_pretrained(made)
    return made


def people(number: int, *, seed: int = 0) -> list[dict[str, Any]]:
    """Rows as Personalized RewardBench has them, whose rubric aspects are words that the policy says."""
    draw = random.Random(seed)

    def words(most: int) -> str:
        return " ".join(draw.choices(WORDS, k=draw.randint(3, most)))

    return [
        {
            "id": f"p{seed}-{place}",
            "question": f"{words(6)}?",
            "profile": [{"id": f"post{post}", "category": "Tea", "text": words(8)} for post in range(2)],
            "rubric_aspects": [
                {"aspect": " ".join(draw.sample(SAID, 4)), "evidence": "none", "reason": "none"} for _ in range(2)
            ],
            "narrative": "none",
            "category": "Art",
            "chosen": f"{words(9)} {place}",
            "rejected": f"{words(9)} {place}!",
        }
        for place in range(number)
    ]


def people_file(path: Path, number: int, *, seed: int = 0) -> Path:
    """The same in a file."""
    return write(path, people(number, seed=seed))


def study_values(policy: str, rewards: Mapping[str, str], data: Path, more: Path) -> dict[str, Any]:
    """A study of given and of trained reward models, with two benchmarks, best of 4, and one step of PPO."""
    told = {"profile": "none"}
    trained = {"base": policy, "items": {"sample": "learn"}, "options": QUICKLY}
    return {
        "title": "A small world",
        "seed": 3,
        "policy": policy,
        "axis": "Pairs learned from",
        "runtime": {"device": "cpu", "dtype": "float32"},
        "sampling": {"n": 4, "k": [1, 2, 4], "max_tokens": 16},
        "outcome": {"judge": "rubric-overlap"},
        "samples": {"learn": {"pairs": 2, "items": {"location": str(more), **told}}},
        "benchmarks": {
            "own pairs": {"location": str(data), **told},
            "judged pairs": {"sample": "learn"},
        },
        "best_of_n": {"items": {"location": str(data), **told}},
        "optimization": {"items": {"location": str(data), **told}, "options": PPO},
        "models": [
            *({"name": name, "path": path} for name, path in rewards.items()),
            {"name": "0 pairs", "position": 0, "train": trained | {"pairs": 0}},
            {"name": "8 pairs", "position": 8, "train": trained | {"pairs": 8}},
        ],
    }


def write_study(path: Path, values: Mapping[str, Any]) -> Path:
    """The recipe's file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(tomli_w.dumps(values), encoding="utf-8")
    return path
