"""Results of runs as `.eval_results/pluralbench.yaml`, which the Hub reads for the leaderboards of datasets."""

from collections.abc import Sequence
from typing import Any

import yaml
from huggingface_hub import EvalResult, EvalResultEntry, eval_result_entries_to_yaml, parse_eval_result_entries
from pluralbench_release.evaluation import OVERALL
from pluralbench_runs import one_line

from pluralbench.errors import RunError

EVALUATION_FILE = ".eval_results/pluralbench.yaml"
UNIT, RULE = "; percent; ", "; rule: "
MAX_CHARACTERS, MAX_DEPTH = 10**6, 50
READ_ERRORS = (yaml.YAMLError, KeyError, TypeError, AttributeError, ValueError, RecursionError)


def evaluation_entries(results: Sequence[EvalResult], date: str, source: str | None) -> list[EvalResultEntry]:
    """Return the results on data of the Hub as entries of an evaluation file.

    Values are in percent. Notes begin with the metric and its settings, and have what the format has no field for.
    """
    return [
        EvalResultEntry(
            dataset_id=result.dataset_type,
            task_id=result.dataset_config or OVERALL,
            value=round(100 * result.metric_value, 4),
            dataset_revision=result.dataset_revision,
            date=date,
            source_url=source,
            source_name=None if source is None else "PluralBench runs",
            notes=_notes(result),
        )
        for result in results
        # A config of this name would be taken for the overall number.
        if result.dataset_revision is not None and result.dataset_config != OVERALL
    ]


def with_entries(text: str | None, entries: Sequence[EvalResultEntry], where: str) -> str:
    """Return the text of an evaluation file with these entries in the place of those of the same tasks and settings.

    Raises:
        RunError: If the file cannot be read.
    """
    new = {_key(entry) for entry in entries}
    try:
        # Others' entries stay as they are written, with keys that this version of the client does not know.
        kept = [one for one in read_entries(text) if _key(*parse_eval_result_entries([one])) not in new]
        return yaml.safe_dump(
            [*kept, *eval_result_entries_to_yaml(list(entries))], allow_unicode=True, sort_keys=False, width=1000
        )
    except READ_ERRORS as error:
        raise RunError(f"{where} cannot be read ({one_line(error, 200)}); fix or delete it.") from None


def read_entries(text: str | None) -> list[Any]:
    """Return the entries of an evaluation file as they are written. Raises one of `READ_ERRORS`."""
    text = text or ""
    if len(text) > MAX_CHARACTERS:
        raise ValueError(f"it has more than {MAX_CHARACTERS:,} characters")
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    depth = 0
    for event in yaml.parse(text, loader):
        # A few aliases of aliases can stand for any amount of text.
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("it has YAML aliases")  # noqa: TRY004 - of the file, not of an argument
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > MAX_DEPTH:
            raise ValueError(f"it is nested more than {MAX_DEPTH} deep")
    entries = yaml.load(text, loader) or []  # noqa: S506 - of the safe loaders
    if not isinstance(entries, list):
        raise TypeError("it is not a list of entries")
    return entries


def _notes(result: EvalResult) -> str:
    args = result.metric_args or {}
    interval = (
        "no interval"
        if args["low"] is None
        else f"{args['level']:.0%} interval {100 * args['low']:.2f} to {100 * args['high']:.2f}"
    )
    items = f", {args['items']} of {args['of_items']} items" if "items" in args else ""
    return f"{result.metric_name}{UNIT}{interval}; n = {args['n']}{items}{RULE}{args['rule']}"


def _key(entry: EvalResultEntry) -> tuple[str, str, str]:
    """Identify an entry by its task and settings."""
    return entry.dataset_id, entry.task_id, (entry.notes or "").partition(";")[0]
