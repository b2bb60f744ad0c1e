"""Command-line options of annotation studies: write sheets for annotators, and read the filled-in ones."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pluralbench_runs.errors import RecipeError

StudyExport = Annotated[Path | None, typer.Option("--export", help="Write the sheets of a study to this folder.")]
StudyImport = Annotated[
    Path | None, typer.Option("--import", help="Read the study in this folder (default: its own sheets; see FILES).")
]
StudyRelease = Annotated[
    str | None, typer.Option("--release", help="Data of the study: a release, a table or `ORG/NAME@REVISION`.")
]
ReturnedFiles = Annotated[
    list[Path] | None,
    typer.Argument(help="Filled-in files for --import: sheets (.csv), a Label Studio export (.json) or JSONL."),
]
Annotator = Annotated[list[str] | None, typer.Option(help="Name of an annotator; repeatable.")]
AnnotatorsPerItem = Annotated[int | None, typer.Option(min=1, help="Annotators per item.")]
Account = Annotated[
    list[str] | None,
    typer.Option(
        metavar="ACCOUNT=ANNOTATOR", help="Annotator of a Label Studio account (number or e-mail); repeatable."
    ),
]
AsAssigned = Annotated[
    bool,
    typer.Option("--assigned", help="Attribute each answer to the annotator assigned to its task, not to the account."),
]


def check_exactly_one(options: Mapping[str, object]) -> None:
    """Raise `RecipeError` unless exactly one option has a value.

    Args:
        options: The value of each option, by the option as the error shows it.
    """
    used = [option for option, value in options.items() if value]
    if len(used) != 1:
        count = "both" if len(used) == 2 else len(used) or "none"
        raise RecipeError(f"Give one of {', '.join(options)}; {count} given.")


def parse_accounts(entries: Sequence[str] | None) -> dict[str, str]:
    """Parse the values of `Account` into annotators by account.

    Raises:
        RecipeError: A value is not of the form ACCOUNT=ANNOTATOR.
    """
    pairs = [entry.partition("=") for entry in entries or []]
    for account, equals, annotator in pairs:
        if not (account and equals and annotator):
            raise RecipeError(f"--account {account + equals + annotator!r} is not of the form ACCOUNT=ANNOTATOR.")
    return {account: annotator for account, _, annotator in pairs}
