"""Tiny models with random weights, made on the spot, and the rewards they give one conversation at a time."""

from __future__ import annotations

import json
import random
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pluralbench_rewards import Group, Scored, Work
from some_words import WORDS
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers

if TYPE_CHECKING:
    from pluralbench_local import EmbeddedCorpus, LocalRewardModel
    from transformers import PretrainedConfig

Folders = Callable[..., str]
"""`folders("gemma2", seed=1)`: the folder of a model, made once."""

BOS, EOS, PAD = "<s>", "</s>", "<pad>"
TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}<|{{ message['role'] }}|>\n{{ message['content'] }}{{ eos_token }}\n"
    "{% endfor %}{% if add_generation_prompt %}<|assistant|>\n{% endif %}"
)
ENDS_WITH_EOS = TEMPLATE.replace("{{ eos_token }}\n", "{{ eos_token }}")
POSITIONS = 1024
SIZES: dict[str, Any] = {
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 16,
    "max_position_embeddings": POSITIONS,
    "initializer_range": 0.1,
}
ROPE = {"rope_type": "default", "rope_theta": 10_000.0}
LONGROPE = {
    "rope_type": "longrope",
    "rope_theta": 10_000.0,
    "short_factor": [1.0] * 8,
    "long_factor": [4.0] * 8,
    "original_max_position_embeddings": 32,
}
LINEAR = {
    "num_hidden_layers": 4,
    "linear_num_key_heads": 2,
    "linear_num_value_heads": 2,
    "linear_key_head_dim": 16,
    "linear_value_head_dim": 16,
    "num_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
}
EXPERTS = SIZES | {
    "num_experts": 4,
    "num_local_experts": 4,
    "num_experts_per_tok": 2,
    "moe_intermediate_size": 32,
    "shared_expert_intermediate_size": 32,
    "sliding_window": None,
}
MAMBA = {"num_hidden_layers": 2, "mamba_d_ssm": 64, "mamba_n_heads": 4, "mamba_d_head": 16, "mamba_d_state": 16}
GPT2_SIZES = {"n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": POSITIONS, "initializer_range": 0.1}
BERT_SIZES = {name: size for name, size in SIZES.items() if name not in {"num_key_value_heads", "head_dim"}}
ARCHITECTURES: dict[str, tuple[str, dict[str, Any]]] = {
    "llama": ("llama", SIZES),
    "qwen3": ("qwen3", SIZES),
    "gemma2": ("gemma2", SIZES | {"sliding_window": 16, "query_pre_attn_scalar": 16}),
    "gemma3": ("gemma3_text", SIZES | {"sliding_window": 16, "query_pre_attn_scalar": 16}),
    "mistral": ("mistral", SIZES | {"sliding_window": 16}),
    "mixtral": ("mixtral", SIZES | {"num_local_experts": 4, "sliding_window": None}),
    "qwen2-moe": ("qwen2_moe", EXPERTS),
    "phimoe": ("phimoe", EXPERTS),
    "cohere": ("cohere", SIZES | {"logit_scale": 0.25}),
    "granite": ("granite", SIZES | {"logits_scaling": 4.0, "attention_multiplier": 0.2}),
    "gpt2": ("gpt2", GPT2_SIZES),
    "bert": ("bert", SIZES),
    "modernbert": ("modernbert", BERT_SIZES | {"local_attention": 16, "cls_token_id": 0, "sep_token_id": 1}),
    "bloom": ("bloom", {"hidden_size": 64, "n_layer": 2, "n_head": 4, "initializer_range": 0.1}),
    "gpt-oss": ("gpt_oss", SIZES | {"num_local_experts": 4, "sliding_window": 16, "rope_parameters": ROPE}),
    "longrope": ("phi3", SIZES | {"rope_parameters": LONGROPE}),
    "falcon-h1": ("falcon_h1", SIZES | {"lm_head_multiplier": 2.0} | MAMBA),
    "qwen3-next": ("qwen3_next", SIZES | {"layer_types": ["linear_attention", "full_attention"] * 2} | LINEAR),
}
"""By a name: the model's type and its settings."""


@contextmanager
def one_quiet_thread() -> Iterator[None]:
    """Models this small lose more to waiting threads than they win."""
    import torch
    from transformers.utils import logging

    library: Any = logging
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    library.set_verbosity_error()
    library.disable_progress_bar()
    yield
    library.enable_progress_bar()
    library.set_verbosity_warning()
    torch.set_num_threads(threads)


@cache
def _trained() -> str:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=500, special_tokens=[BOS, EOS, PAD], initial_alphabet=alphabet, show_progress=False
    )
    tokenizer.train_from_iterator([" ".join(WORDS), "<|system|>\n<|user|>\n<|assistant|>\n" * 3] * 4, trainer)
    bos = tokenizer.token_to_id(BOS)
    tokenizer.post_processor = processors.TemplateProcessing(single=f"{BOS} $A", special_tokens=[(BOS, bos)])
    return str(tokenizer.to_str())


def make_tokenizer(*, pad: str | None = PAD, template: str | None = TEMPLATE, **settings: Any) -> Any:
    """A byte-level tokenizer that would add a BOS of its own if asked to add special tokens."""
    from transformers import PreTrainedTokenizerFast

    make: Any = PreTrainedTokenizerFast  # untyped
    tokenizer = make(
        tokenizer_object=Tokenizer.from_str(_trained()), bos_token=BOS, eos_token=EOS, pad_token=pad, **settings
    )
    tokenizer.chat_template = template
    return tokenizer


def make_config(architecture: str, **settings: Any) -> PretrainedConfig:
    """The configuration of a tiny model, with these settings changed."""
    from transformers import AutoConfig

    kind, sizes = ARCHITECTURES[architecture]
    tokenizer = make_tokenizer()
    special = {"bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
    config: PretrainedConfig = AutoConfig.for_model(
        kind, **({"vocab_size": len(tokenizer), "num_labels": 1} | special | sizes | settings)
    )
    return config


def save_classifier(
    folder: Path, architecture: str = "llama", *, seed: int = 0, tokenizer: Any = None, **settings: Any
) -> str:
    """Save a classifier whose head is random enough for its scores to spread; the folder as text."""
    import torch
    from transformers import AutoModelForSequenceClassification

    torch.manual_seed(seed)
    auto: Any = AutoModelForSequenceClassification
    model = auto.from_config(make_config(architecture, **settings))
    head = getattr(model, "score", None) or model.classifier
    torch.nn.init.normal_(head.weight, std=0.3)
    return _save(folder, model, tokenizer)


def save_language_model(
    folder: Path, architecture: str = "llama", *, seed: int = 0, tokenizer: Any = None, **settings: Any
) -> str:
    """Save a causal language model; the folder as text."""
    import torch
    from transformers import AutoModelForCausalLM

    torch.manual_seed(seed)
    auto: Any = AutoModelForCausalLM
    return _save(folder, auto.from_config(make_config(architecture, **settings)), tokenizer)


def save_adapter(folder: Path, base: str, *, auto: Any = None, labels: int = 1, **settings: Any) -> Path:
    """Save a LoRA adapter with random weights, large enough to change scores; its base stays as it was.

    Args:
        folder: Where to save it.
        base: The folder of its base.
        auto: Class of the base. Default: a classifier with a new head.
        labels: Labels of the new head.
        **settings: Of `peft.LoraConfig`.
    """
    import peft
    import torch
    from transformers import AutoModelForSequenceClassification

    library: Any = peft
    torch.manual_seed(len(settings))
    model = (auto or AutoModelForSequenceClassification).from_pretrained(
        base, **({} if auto else {"num_labels": labels})
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # peft 0.21 uses a name that transformers 5.23 deprecates
        config = library.LoraConfig(**({"r": 4, "lora_alpha": 8, "target_modules": "all-linear"} | settings))
        whole = library.get_peft_model(model, config)
        for parameter in whole.parameters():
            if parameter.requires_grad:
                torch.nn.init.normal_(parameter, std=0.1)
        whole.save_pretrained(folder, save_embedding_layers=False)
    return folder


def _save(folder: Path, model: Any, tokenizer: Any) -> str:
    model.save_pretrained(folder)
    (tokenizer or make_tokenizer()).save_pretrained(folder)
    return str(folder)


def change_config(folder: str, **settings: Any) -> None:
    """Change keys of a saved model's configuration."""
    path = Path(folder) / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | settings), encoding="utf-8")


def words(draw: random.Random, most: int) -> str:
    """Up to this many words, in several scripts."""
    return " ".join(draw.choices(WORDS, k=draw.randint(0, most)))


def user(text: str) -> list[dict[str, str]]:
    """A prompt of one message."""
    return [{"role": "user", "content": text}]


def make_groups(seed: int, number: int = 6, longest: int = 40) -> list[Group]:
    """Groups of one to six responses, and the odd ones: empty, the same twice, one that begins another, very short."""
    draw = random.Random(seed)
    groups = [
        Group(f"q{place}", user(words(draw, longest)), [words(draw, longest) for _ in range(place % 6 + 1)])
        for place in range(number)
    ]
    groups.append(Group("empty", user("?"), ["", "drumming", ""]))
    groups.append(Group("the same", user("a quiet hobby"), ["origami", "drumming", "origami"]))
    groups.append(
        Group("begun", user("推荐 一本 书"), ["walking", "walking with an old dog", "walking with an old dog at dawn"])
    )
    groups.append(
        Group("scripts", user("ما هي أفضل هواية 🍵"), ["👨‍👩‍👧", "龙井", "चाय", "🎈🎈", "\u202eright to left\u202c"])
    )
    turns = [{"role": "system", "content": "Be brief."}, *user("hi"), {"role": "assistant", "content": "Hello."}]
    groups.append(Group("turns", [*turns, *user(words(draw, longest))], [words(draw, longest), words(draw, 3)]))
    return groups


def conversation_ids(tokenizer: Any, group: Group, response: str) -> list[int]:
    """The token ids of a conversation by the tokenizer's own one-step way."""
    messages = [*group.prompt, {"role": "assistant", "content": response}]
    return list(tokenizer.apply_chat_template(messages, tokenize=True, return_dict=True)["input_ids"])


def opening_ids(tokenizer: Any, group: Group) -> list[int]:
    """The token ids of a prompt with what begins an answer."""
    options = {"tokenize": True, "return_dict": True, "add_generation_prompt": True}
    return list(tokenizer.apply_chat_template(list(group.prompt), **options)["input_ids"])


def same_beginning(*sequences: Sequence[int]) -> int:
    """How many items all sequences begin with alike."""
    return next(
        (place for place, items in enumerate(zip(*sequences, strict=False)) if len(set(items)) > 1),
        min(map(len, sequences)),
    )


def load_classifier(folder: str, **options: Any) -> LocalRewardModel:
    """A classifier, ready to score on the CPU."""
    from pluralbench_local import LocalRewardModel, load

    model = load(folder, device="cpu", **options)
    assert isinstance(model, LocalRewardModel)
    return model


def load_implicit(folder: str, reference: str | None = None, **options: Any) -> LocalRewardModel:
    """A language model as a reward model on the CPU."""
    from pluralbench_local import LocalRewardModel, load

    model = load(folder, kind="implicit", reference=reference, device="cpu", **options)
    assert isinstance(model, LocalRewardModel)
    return model


def work_of(done: Scored | EmbeddedCorpus) -> Work:
    """What scoring, or embedding, took."""
    assert done.work is not None
    return done.work


def load_plainly(kind: Any, folder: str, dtype: str = "float32") -> Any:
    """A model as the library loads it."""
    return kind.from_pretrained(folder, dtype=dtype).eval()


def logits_alone(model: Any, ids: Sequence[int]) -> list[float]:
    """The logits of a conversation by the forward pass of the model's class, in a batch of its own."""
    import torch

    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(ids)])).logits[0]
    return [float(value) for value in logits]


def logits_at_the_end(model: Any, ids: Sequence[int]) -> list[float]:
    """The logits of a conversation at its last token, as inference servers read (encoders pool themselves)."""
    import torch

    if getattr(model, "score", None) is None:
        return logits_alone(model, ids)
    with torch.inference_mode():
        states = model.base_model(input_ids=torch.tensor([list(ids)]), use_cache=False).last_hidden_state
        return [float(value) for value in model.score(states)[0, -1]]


def classifier_alone(folder: str, groups: Sequence[Group], dtype: str = "float32") -> list[list[float]]:
    """Scores of a classifier of one logit, a plain forward pass for each conversation."""
    from transformers import AutoModelForSequenceClassification, PreTrainedTokenizerFast

    model = load_plainly(AutoModelForSequenceClassification, folder, dtype)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    return [
        [logits_alone(model, conversation_ids(tokenizer, group, response))[0] for response in group.responses]
        for group in groups
    ]


def log_probability_alone(model: Any, ids: Sequence[int], begin: int) -> float:
    """The summed log-probability of the tokens from `begin` on, from the logits of a forward pass of its own."""
    import torch

    begin = max(begin, 1)  # nothing predicts the first token
    with torch.inference_mode():
        logits = model(input_ids=torch.tensor([list(ids)])).logits[0].float().log_softmax(-1)
        return float(logits[begin - 1 : -1].gather(1, torch.tensor(ids[begin:]).unsqueeze(1)).double().sum())


def implicit_alone(folder: str, groups: Sequence[Group], reference: str | None = None) -> list[list[float]]:
    """Implicit rewards of a language model, one plain forward pass for each conversation."""
    from transformers import AutoModelForCausalLM, PreTrainedTokenizerFast

    model = load_plainly(AutoModelForCausalLM, folder)
    other = None if reference is None else load_plainly(AutoModelForCausalLM, reference)
    tokenizer = PreTrainedTokenizerFast.from_pretrained(folder)
    rewards = []
    for group in groups:
        opening = opening_ids(tokenizer, group)
        row = []
        for response in group.responses:
            ids = conversation_ids(tokenizer, group, response)
            begin = same_beginning(opening, ids)
            reward = log_probability_alone(model, ids, begin)
            row.append(reward if other is None else reward - log_probability_alone(other, ids, begin))
        rewards.append(row)
    return rewards


def differences(scores: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> list[float]:
    """How far the scores of each response lie apart."""
    assert [len(values) for values in scores] == [len(values) for values in others]
    return [abs(a - b) for row, other in zip(scores, others, strict=True) for a, b in zip(row, other, strict=True)]


def undecided(scores: Sequence[Sequence[float]], others: Sequence[Sequence[float]]) -> float:
    """The largest margin of a pair of responses in one group that the two do not decide alike; 0 when there is none."""
    margins = [0.0]
    for row, other in zip(scores, others, strict=True):
        for (a, b), (c, d) in zip(combinations(row, 2), combinations(other, 2), strict=True):
            if (a > b, a < b) != (c > d, c < d):
                margins.append(max(abs(a - b), abs(c - d)))
    return max(margins)


if __name__ == "__main__":  # python tests/support/reward_models.py FOLDER
    save_classifier(Path(sys.argv[1]), max_position_embeddings=4 * POSITIONS)
