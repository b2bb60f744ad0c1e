"""Label Studio: labeling configurations, tasks, and exports."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
from pluralbench_tables import read_json

from pluralbench_studies.answers import ASSIGNED_TO, Submission, rows_as_submissions
from pluralbench_studies.errors import AnswersError
from pluralbench_studies.forms import Form, Question, split_by_annotator
from pluralbench_studies.sheets import new_files

CONFIG = "label_config.xml"
TASKS = "tasks.json"


def label_studio_config(form: Form) -> str:
    """Return the labeling configuration of a form, as XML.

    Its controls have the names of the questions, and its variables are `$FIELD`.
    """
    view = ET.Element("View")
    for name, title in form.fields.items():
        ET.SubElement(view, "Header", value=title)
        ET.SubElement(view, "Text", name=name, value=f"${name}")
        for question in form.questions:
            if question.about == name:
                _add_control(view, question, name)
    for question in form.questions:
        if question.about is None:
            _add_control(view, question, next(iter(form.fields)))
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _add_control(view: ET.Element, question: Question, of: str) -> None:
    if question.title:
        ET.SubElement(view, "Header", value=question.title, size="5")
    names = {"name": question.name, "toName": of}
    if not question.options:
        ET.SubElement(view, "TextArea", names | {"rows": "2", "maxSubmissions": "1", "required": "false"})
        return
    choices = ET.SubElement(
        view, "Choices", names | {"choice": "single-radio", "showInline": "true", "required": "true"}
    )
    for option, label in question.options.items():
        ET.SubElement(choices, "Choice", value=label, alias=option)


def label_studio_tasks(shown: pl.DataFrame, form: Form) -> list[dict[str, Any]]:
    """Return the tasks to import: `form.item`, `annotator` (as `assigned_to`) and the fields of each row."""
    rows = shown.select(form.item, pl.col("annotator").alias(ASSIGNED_TO), *form.fields)
    return [{"data": row} for row in rows.iter_rows(named=True)]


def write_label_studio(folder: Path, shown: pl.DataFrame, form: Form) -> list[Path]:
    """Write `label_config.xml`, `tasks.json` with all tasks, and NAME.json with the tasks of each annotator.

    Args:
        folder: The folder to write to.
        shown: `form.item`, `annotator` and the fields, a row for each assigned item.
        form: The form.

    Returns:
        The paths.

    Raises:
        AssignmentError: If one of the files exists.
    """
    by_annotator = split_by_annotator(shown, form)
    config, all_tasks, *own_tasks = new_files(folder, [CONFIG, TASKS, *(f"{name}.json" for name in by_annotator)])
    config.write_text(label_studio_config(form), encoding="utf-8")
    frames = [pl.concat(by_annotator.values()), *by_annotator.values()]
    for path, rows in zip((all_tasks, *own_tasks), frames, strict=True):
        path.write_text(json.dumps(label_studio_tasks(rows, form), ensure_ascii=False, indent=1), "utf-8")
    return [config, all_tasks, *own_tasks]


def read_export(
    path: Path,
    form: Form,
    *,
    accounts: Mapping[str, str] | None = None,
    known: Collection[str] = (),
    by_assignment: bool = False,
) -> list[Submission]:
    """Read the annotations of an export in the format JSON or JSON-MIN, without skipped ones (`was_cancelled`).

    A CSV export is read as a sheet (`read_sheet`).

    Args:
        path: The export.
        form: The form.
        accounts: Annotator of an account, by its e-mail address or number.
        known: Names of the annotators. An account with such a name belongs to that annotator. An annotation without an
            account belongs to the annotator of its task.
        by_assignment: Whether all annotations belong to the annotator of their task.

    Raises:
        AnswersError: If the file is not an export of such tasks.
    """
    tasks = read_json(path, AnswersError)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise AnswersError(f"{path} is not an export of Label Studio, which is a list of tasks.")
    submissions = []
    for number, task in enumerate(tasks, start=1):
        where = f"{path}, item {number:,}"
        full = "annotations" in task
        data = task.get("data") if full else task
        if not isinstance(data, dict) or not isinstance(data.get(form.item), str):
            raise AnswersError(f"{where} has no `{form.item}` in its data; give an export of the tasks of this study.")
        ids = {name: _as_text(data.get(name)) for name in (form.item, ASSIGNED_TO)}
        annotations = _read_annotations(task["annotations"], where) if full else [(task.get("annotator"), task)]
        for account, answers in annotations:
            annotator = _resolve_annotator(account, ids[ASSIGNED_TO], accounts or {}, known)
            row = {name: _as_text(value) for name, value in answers.items()} | ids | {"annotator": annotator}
            submissions += rows_as_submissions([(where, row)], form, by_assignment=by_assignment)
    return submissions


def _read_annotations(annotations: object, where: str) -> Iterator[tuple[object, dict[str, object]]]:
    """The account and the answers of each annotation of a task, in the order of the last changes."""
    if not isinstance(annotations, list) or not all(isinstance(entry, dict) for entry in annotations):
        raise AnswersError(f"{where}: its `annotations` are not a list of objects.")
    done = (entry for entry in annotations if not entry.get("was_cancelled"))
    for entry in sorted(done, key=lambda entry: str(entry.get("updated_at") or entry.get("created_at") or "")):
        regions = entry.get("result")
        if not isinstance(regions, list):
            raise AnswersError(f"{where}: an annotation has no `result`.")
        answers: dict[str, object] = {}
        for region in regions:
            value = region.get("value") if isinstance(region, dict) else None
            if isinstance(value, dict) and isinstance(region.get("from_name"), str):
                answers[region["from_name"]] = value.get("choices", value.get("text"))
        yield entry.get("completed_by"), answers


def _as_text(value: object) -> str:
    """A value as a cell of a sheet. In JSON-MIN several lines of free text are an object."""
    if isinstance(value, dict):
        value = value.get("text")
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def _resolve_annotator(account: object, default: str, accounts: Mapping[str, str], known: Collection[str]) -> str:
    """The annotator of an account, which is a number, an e-mail address, or an object with both."""
    if account is None:
        return default
    parts = [account.get(key) for key in ("email", "username", "id")] if isinstance(account, dict) else [account]
    names = [str(part) for part in parts if part is not None]
    mapped = [accounts[name] for name in names if name in accounts]
    return next((name for name in (*mapped, *names) if name in known), (*mapped, *names, "")[0])
