"""Untrained classifiers, as a baseline for training."""

import shutil
from pathlib import Path
from typing import Any

from pluralbench_runs import make_readable

from pluralbench_local.config import LocalModel, described
from pluralbench_local.conversations import Template
from pluralbench_local.models import load_tokenizer, silence_transformers
from pluralbench_local.training_batches import Ranking, tokenize_rankings
from pluralbench_local.training_model import finalize, load_trainee, set_pad_token

ANY_LENGTH = 1024  # tokens; how a conversation ends does not depend on its length


def untrained(model: str | Path | LocalModel, out: Path | str, *, seed: int = 0, **fields: Any) -> Path:
    """Save a language model with a random head of one logit.

    The folder appears when it is complete. If `out` has a model already, it is left as it is.

    Args:
        model: The model's configuration, or its name.
        out: The folder.
        seed: Seed of the head.
        **fields: Fields of `LocalModel`.

    Returns:
        The folder.

    Raises:
        LocalError: If the model cannot be loaded; or if its device is not available, or has too little memory.
    """
    base, target = described(model, **fields), Path(out)
    if (target / "config.json").exists():
        return target
    tokenizer = load_tokenizer(base, base.template())
    trainee = load_trainee(base, lora=None, gradient_checkpointing=False, token_budget=None, seed=seed)
    template = Template(tokenizer)
    example = Ranking("any", [{"role": "user", "content": "Why?"}], ["So.", "No."], [1, 2])
    tokens = tokenize_rankings([example], "rankings", template, ANY_LENGTH, "error").tokens
    set_pad_token(trainee.network.model, template, (conversation for responses in tokens for conversation in responses))
    trainee = finalize(trainee, trainee.base)
    work = target.with_name(f"{target.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    with silence_transformers():
        trainee.network.model.save_pretrained(work)
        tokenizer.save_pretrained(work)
    return make_readable(work).replace(target)
