"""Fields that options of a command set."""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple, get_origin

from pydantic.fields import FieldInfo


class Place(NamedTuple):
    """A field that an option sets.

    Attributes:
        parameter: Parameter of the function.
        info: The field, or the parameter itself.
        flag: The option, or the placeholder of an argument.
        key: Dotted key of the field in its model or recipe; in the tables of a list, the key in the table. "": the
            parameter itself.
        panel: Heading in --help.
        owner: Dotted key of the list, for a field of its tables.
        text_key: Key of the string in a table that is given as a string.
        default: Value without the option, for typer. Empty: the option is required.
        shown: What --help shows as the default.
    """

    parameter: str
    info: FieldInfo
    flag: str
    key: str = ""
    panel: str = ""
    owner: str = ""
    text_key: str = ""
    default: Any = None
    shown: str | None = None

    @property
    def is_option(self) -> bool:
        """Whether it is an option, and not an argument."""
        return self.flag.startswith("-")

    @property
    def dotted(self) -> str:
        """The key of the value in the recipe."""
        return f"{self.key}.{self.text_key}" if self.text_key and not is_list(self.info) else self.key

    @property
    def name(self) -> str:
        """The parameter of the option, for typer."""
        return "option_" + re.sub(r"\W+", "_", self.flag.partition("/")[0].strip("-"))


def dashed(name: str) -> str:
    """Return the name of an option, without the dashes before it."""
    return name.strip("_").replace("_", "-")


def heading(name: str) -> str:
    """Return the heading of the options of a table or a parameter."""
    return name.replace("_", " ").capitalize()


def extra_of(info: FieldInfo) -> Mapping[str, Any]:
    """Return what a field says of its option in `json_schema_extra`."""
    return info.json_schema_extra if isinstance(info.json_schema_extra, dict) else {}


def is_list(info: FieldInfo) -> bool:
    """Return whether a field has several values."""
    return get_origin(info.annotation) in {list, tuple}
