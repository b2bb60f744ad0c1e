"""Checks of a model in a folder or on the Hub, before a library loads it."""

from functools import cache, partial
from pathlib import Path
from typing import Any

from pluralbench_runs import CONFIG_FILES, MODULES_FILE, UserError, check_model_folder


def check_model(model: str, error: type[UserError], *, revision: str | None = None, local: bool = False) -> None:
    """Check the configuration files of a model (`check_model_folder`); those of a model on the Hub are downloaded.

    Args:
        model: Folder of the model, or its name on the Hub.
        error: The type of the errors.
        revision: Commit, branch or tag on the Hub. Default: the newest commit.
        local: Read the Hub's cache alone.

    Raises:
        UserError: Of the type `error`: the model is not safe to load.
        OSError: There is no such model, or the Hub cannot be reached.
    """
    if Path(model).is_dir():
        check_model_folder(Path(model), error)
    else:
        check_model_folder(_hub_configs(model, revision, local), error, name=model)


@cache
def _hub_configs(model: str, revision: str | None, local: bool) -> Path:
    """The folder of the Hub's cache with the configuration files of a model."""
    from huggingface_hub import snapshot_download  # noqa: PLC0415 - of the extras
    from huggingface_hub.utils.tqdm import tqdm  # noqa: PLC0415 - as above

    patterns = [CONFIG_FILES, MODULES_FILE]
    bar: Any = partial(tqdm, disable=True)  # a few small files need none
    return Path(
        snapshot_download(model, revision=revision, local_files_only=local, allow_patterns=patterns, tqdm_class=bar)
    )
