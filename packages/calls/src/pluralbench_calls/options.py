"""A chat model as a command line names it."""

from collections.abc import Mapping
from typing import Any

from pluralbench_runs import RecipeError
from pluralbench_runs.options import Overrides

from pluralbench_calls.chat import chosen_model


def with_model(
    given: Overrides, table: str, flag: str, local: Mapping[str, Any], own: Mapping[str, str] | None = None
) -> Overrides:
    """What the command line says, with the model of `table` in place of its name.

    flag: of the option that names the model. local: values of the table for the embedded model. own: providers that the
    builder serves itself, with the model that the recipe then has. Raises `RecipeError` for an endpoint without model.
    """
    name, url = given.get(f"{table}.model"), given.get("connection.base_url")
    if name is None:
        if url is not None:
            raise RecipeError(f"--base-url says where a model is served; say which one with {flag}.")
        return given
    if own is not None and name in own:
        return given | {f"{table}.provider": name, f"{table}.model": own[name]}
    return given | chosen_model(table, name, url, given.get("connection.api_key_env"), local)
