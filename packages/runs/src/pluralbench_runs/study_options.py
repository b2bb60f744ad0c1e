"""Options of the commands that give items to people and read what comes back."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from pluralbench_runs.errors import RecipeError

StudyExport = Annotated[Path | None, typer.Option("--export", help="Write the sheets of a study to this folder.")]
StudyImport = Annotated[
    Path | None, typer.Option("--import", help="Read the study in this folder; without FILES its own sheets.")
]
StudyRelease = Annotated[
    str | None, typer.Option("--release", help="What is shown: a release, a table or `ORG/NAME@REVISION`.")
]
ReturnedFiles = Annotated[
    list[Path] | None,
    typer.Argument(help="What came back, for --import: sheets (.csv), Label Studio's export (.json) or JSONL."),
]
Annotator = Annotated[list[str] | None, typer.Option(help="Who annotates; repeatable.")]
AnnotatorsPerItem = Annotated[int | None, typer.Option(min=1, help="How many annotators an item has.")]
Account = Annotated[
    list[str] | None,
    typer.Option(metavar="ACCOUNT=ANNOTATOR", help="Whose a Label Studio account is (number or e-mail); repeatable."),
]
AsAssigned = Annotated[
    bool, typer.Option("--assigned", help="Take an answer for that of the task's annotator, whatever the account.")
]


def check_exactly_one(given: Mapping[str, object]) -> None:
    """Raise `RecipeError` where not exactly one option is given. given: its value, by the option as it is shown."""
    there = [shown for shown, value in given.items() if value]
    if len(there) != 1:
        raise RecipeError(
            f"Give one of {', '.join(given)}; {'both' if len(there) == 2 else len(there) or 'none'} given."
        )


def parse_accounts(given: Sequence[str] | None) -> dict[str, str]:
    """What `Account` says, the annotator by the account. Raises `RecipeError` for what is not of its form."""
    pairs = [entry.partition("=") for entry in given or []]
    for account, equals, annotator in pairs:
        if not (account and equals and annotator):
            raise RecipeError(f"--account {account + equals + annotator!r} is not of the form ACCOUNT=ANNOTATOR.")
    return {account: annotator for account, _, annotator in pairs}
