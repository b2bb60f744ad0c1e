"""A classifier whose head nothing was taught: what training has to be better than."""

import shutil
from pathlib import Path
from typing import Any

from pluralbench_runs import make_readable

from pluralbench_local.config import LocalModel, described
from pluralbench_local.conversations import Template
from pluralbench_local.models import load_tokenizer, silence_transformers
from pluralbench_local.training_batches import Ranking, fitting
from pluralbench_local.training_model import finished, load_trainee, set_pad_token

ANY_LENGTH = 1024  # tokens; how a conversation ends does not depend on its length


def untrained(model: str | Path | LocalModel, out: Path | str, *, seed: int = 0, **fields: Any) -> Path:
    """Write a language model with a new head of one logit, drawn by `seed`, into the folder `out`; the folder.

    What is there is left as it is. The folder appears once it is whole. Raises `ModelError` and `DeviceError`.
    """
    base, target = described(model, **fields), Path(out)
    if (target / "config.json").exists():
        return target
    tokenizer = load_tokenizer(base, base.template())
    trainee = load_trainee(base, lora=None, gradient_checkpointing=False, token_budget=None, seed=seed)
    template = Template(tokenizer)
    asked = Ranking("any", [{"role": "user", "content": "Why?"}], ["So.", "No."], [1, 2])
    tokens = fitting([asked], "rankings", template, ANY_LENGTH, "error").tokens
    set_pad_token(trainee.network.model, template, (one for several in tokens for one in several))
    trainee = finished(trainee, trainee.base)
    work = target.with_name(f"{target.name}.new")
    shutil.rmtree(work, ignore_errors=True)
    with silence_transformers():
        trainee.network.model.save_pretrained(work)
        tokenizer.save_pretrained(work)
    return make_readable(work).replace(target)
