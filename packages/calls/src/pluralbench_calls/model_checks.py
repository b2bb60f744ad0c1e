"""Checks of a model in a folder or on the Hub, before a library loads it."""

from functools import cache, partial
from pathlib import Path
from typing import Any

from pluralbench_runs import CONFIG_FILES, MODULES_FILE, UserError, check_commit, check_model_folder


def check_model(model: str, error: type[UserError], *, revision: str | None = None, local: bool = False) -> None:
    """Check the configuration files of a model (`check_model_folder`); those of a model on the Hub are downloaded.

    `local` reads the Hub's cache alone.

    Raises:
        UserError: Of the type `error`: the model is not safe to load, or the Hub serves another commit.
        OSError: There is no such model, or the Hub cannot be reached.
    """
    folder = model_configs(model, error, revision=revision, local=local)
    check_model_folder(folder, error, name=model)


def model_configs(model: str, error: type[UserError], *, revision: str | None = None, local: bool = False) -> Path:
    """Return the folder with the configuration files of a model, on the Hub its cache. Raises as `check_model`."""
    if Path(model).is_dir():
        return Path(model)
    try:
        folder = _hub_configs(model, revision, local)
    except (LookupError, TypeError, AttributeError) as unexpected:
        raise error(f"The Hub's answer about {model} cannot be read ({unexpected!r:.200}).") from None
    check_commit(model, revision, folder.name, error)
    return folder


@cache
def _hub_configs(model: str, revision: str | None, local: bool) -> Path:
    from huggingface_hub import snapshot_download, try_to_load_from_cache
    from huggingface_hub.utils.tqdm import tqdm

    patterns = [CONFIG_FILES, MODULES_FILE]
    bar: Any = partial(tqdm, disable=True)  # a few small files need none
    folder = snapshot_download(
        model, revision=revision, local_files_only=local, allow_patterns=patterns, tqdm_class=bar
    )
    # The client's folder of a commit stays empty if the files that came are of another.
    config = try_to_load_from_cache(model, "config.json", revision=revision)
    return Path(config).parent if isinstance(config, str) else Path(folder)


def unreachable_errors() -> tuple[type[Exception], ...]:
    """Return the errors of the Hub's client without an answer of the Hub."""
    from huggingface_hub import errors

    # Without a network, the client raises the error of its HTTP library, which `errors` imports.
    return (errors.HfHubHTTPError, errors.OfflineModeIsEnabled, OSError, getattr(errors, "HTTPError", OSError))
