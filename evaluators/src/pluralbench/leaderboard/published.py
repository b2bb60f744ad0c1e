"""Results on a dataset that others published on the Hub, for the page of a leaderboard."""

from collections.abc import Collection, Sequence
from datetime import date
from typing import NamedTuple

from huggingface_hub import EvalResultEntry, parse_eval_result_entries
from pluralbench_release import ReleaseError
from pluralbench_release.commits import Remote, text_at
from pluralbench_release.evaluation import OVERALL
from pluralbench_release.hub import translate_read_errors
from pluralbench_runs import one_line, plural
from pluralbench_runs.meters import progress

from pluralbench.errors import RunError
from pluralbench.publishing.evaluation_file import EVALUATION_FILE, READ_ERRORS, Notes, parse_notes, read_entries
from pluralbench.reports.tables import Column, Report, Row, Table
from pluralbench.results.runs import Run

FOLDER = EVALUATION_FILE.rpartition("/")[0]
COLUMNS = (
    "overall, %",
    "settings",
    "interval and items",
    "rule",
    "dataset commit",
    "date",
    "published in",
)


class ResultFile(NamedTuple):
    """An evaluation file of a model, in its main branch or in an open pull request."""

    model: str
    path: str
    pull_request: int | None

    @property
    def place(self) -> str:
        """Where the file is, in words."""
        return "the model's repository" if self.pull_request is None else f"open pull request {self.pull_request}"

    def entries(self) -> list[EvalResultEntry] | None:
        """Read the file; None if it cannot be read."""
        revision = "main" if self.pull_request is None else f"refs/pr/{self.pull_request}"
        try:
            text = text_at(Remote(self.model, "model"), revision, self.path)
            return parse_eval_result_entries(read_entries(text))
        except (ReleaseError, *READ_ERRORS):
            return None


def published_results(dataset: str, runs: Sequence[Run]) -> Report:
    """Report the overall numbers on a dataset that models' authors and others published on the Hub.

    They are those of the Hub's leaderboard of the dataset, including models that declare a base model. A number is
    shown if its entry states the rule of one of the runs and percent as its unit. The others are named in the notes
    with the reason.

    Args:
        dataset: The dataset (ORG/NAME).
        runs: Runs, at least one of them on this dataset.

    Raises:
        RunError: If no run is on this dataset.
        pluralbench_release.TablesError: If the Hub has no leaderboard of it.
    """
    on_hub = [run for run in runs if run.config.data.revision is not None]
    rules = {run.config.benchmark.rule for run in on_hub if run.config.data.location == dataset}
    if not rules:
        places = sorted({run.config.data.location for run in on_hub})
        raise RunError(
            f"No run is on the Hub's dataset {dataset!r}, so published results cannot be compared with any; the runs "
            f"are on {', '.join(places) or 'other data'}."
        )
    files = _result_files(dataset)
    shown: list[tuple[ResultFile, EvalResultEntry, Notes]] = []
    left_out: list[str] = []
    with progress("Reading published results", len(files)) as meter:
        for file in files:
            entries = file.entries()
            own = [one for one in entries or [] if (one.dataset_id, one.task_id) == (dataset, OVERALL)]
            reasons = [] if own else [f"it has no result of the task `{OVERALL}`"]
            for entry in own:
                notes = _read_notes(entry, rules)
                if isinstance(notes, Notes):
                    shown.append((file, entry, notes))
                else:
                    reasons.append(notes)
            if entries is None:
                reasons = ["its file cannot be read"]
            left_out += [f"Not shown: {file.model} ({file.place}), because {reason}." for reason in reasons]
            meter.advance()
    shown.sort(key=lambda one: (-one[1].value, one[0].model))
    rows = [_row(*one) for one in shown]
    return Report(
        title="Published on the Hub, not checked",
        sentences=[
            f"{plural(len(rows), 'result')} on {dataset} from models' repositories and pull requests on the Hub, in "
            "percent, as their authors state them. Nothing about them was checked, and they have no ranks."
        ],
        tables=[Table("Overall numbers", "model", [*map(Column, COLUMNS)], rows)] if rows else [],
        notes=left_out,
    )


def _result_files(dataset: str) -> list[ResultFile]:
    """List the evaluation files behind the Hub's leaderboard of a dataset."""
    problem = (
        f"The Hub's leaderboard of {dataset} cannot be read ({{}}); a dataset has one if it has an `eval.yaml` and is "
        "on the Hub's list of benchmarks."
    )
    with translate_read_errors(dataset, None, problem):
        from huggingface_hub import HfApi

        listed = HfApi().get_dataset_leaderboard(dataset, base_model_only=False)
        files = [
            ResultFile(one.model_id, f"{FOLDER}/{one.filename.removeprefix(f'{FOLDER}/')}", one.pull_request)
            for one in listed
        ]
    return list(dict.fromkeys(files))


def _read_notes(entry: EvalResultEntry, rules: Collection[str]) -> Notes | str:
    """Return the notes of an entry, or why its value is not an overall number in percent by one of these rules."""
    notes, value = parse_notes(entry.notes), entry.value
    if notes is None:
        return f"its notes do not state metric, unit and rule as PluralBench writes them: {_shown(entry.notes)}"
    if notes.metric.partition(",")[0].lower() != OVERALL or notes.rule not in rules:
        return f"its number is another one: {one_line(f'{notes.metric}; {notes.rule}')}"
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
        return f"its value is not a number in percent: {_shown(value)}"
    return notes


def _row(file: ResultFile, entry: EvalResultEntry, notes: Notes) -> Row:
    settings, commit, day = notes.metric.partition(", ")[2], entry.dataset_revision or "", entry.date or ""
    texts = (settings, notes.counts, notes.rule, _shown(commit)[:12], _shown(day)[:10], file.place)
    return Row(file.model, [entry.value / 100, *map(one_line, texts)])


def _shown(value: object) -> str:
    """A value of an entry on one line; of what may be of any length, such as a list or a number, only its type."""
    short = value is None or isinstance(value, str | float | date) or (isinstance(value, int) and abs(value) < 10**15)
    return one_line(value) if short else f"({type(value).__name__})"
