"""Label Studio: the configuration of a form, its tasks, and its exports."""

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
from pluralbench_tables import read_json

from pluralbench_studies.answers import ASSIGNED_TO, Submission, rows_as_submissions
from pluralbench_studies.errors import AnswersError
from pluralbench_studies.forms import Form, Question, by_annotator
from pluralbench_studies.sheets import new_files

CONFIG = "label_config.xml"
TASKS = "tasks.json"


def label_studio_config(form: Form) -> str:
    """The labeling configuration of a form, as XML. Its controls are named like the questions, its variables
    `$FIELD`."""
    view = ET.Element("View")
    for name, title in form.fields.items():
        ET.SubElement(view, "Header", value=title)
        ET.SubElement(view, "Text", name=name, value=f"${name}")
        for question in form.questions:
            if question.about == name:
                _control(view, question, name)
    for question in form.questions:
        if question.about is None:
            _control(view, question, next(iter(form.fields)))
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _control(view: ET.Element, question: Question, of: str) -> None:
    if question.title:
        ET.SubElement(view, "Header", value=question.title, size="5")
    named = {"name": question.name, "toName": of}
    if not question.options:
        ET.SubElement(view, "TextArea", named | {"rows": "2", "maxSubmissions": "1", "required": "false"})
        return
    choices = ET.SubElement(
        view, "Choices", named | {"choice": "single-radio", "showInline": "true", "required": "true"}
    )
    for alias, words in question.options.items():
        ET.SubElement(choices, "Choice", value=words, alias=alias)


def label_studio_tasks(shown: pl.DataFrame, form: Form) -> list[dict[str, Any]]:
    """The tasks to import: rows of `form.item`, `annotator` (as `assigned_to`) and the fields, in the order given."""
    rows = shown.select(form.item, pl.col("annotator").alias(ASSIGNED_TO), *form.fields)
    return [{"data": row} for row in rows.iter_rows(named=True)]


def write_label_studio(folder: Path, shown: pl.DataFrame, form: Form) -> list[Path]:
    """Write `label_config.xml`, `tasks.json` with all tasks, and NAME.json with those of each annotator; the paths.

    shown: `form.item`, `annotator` and the fields, a row for each item given. Raises `AssignmentError` for files that
    are there already.
    """
    people = by_annotator(shown, form)
    config, every, *each = new_files(folder, [CONFIG, TASKS, *(f"{name}.json" for name in people)])
    config.write_text(label_studio_config(form), encoding="utf-8")
    ours = [pl.concat(people.values()), *people.values()]
    for path, rows in zip((every, *each), ours, strict=True):
        path.write_text(json.dumps(label_studio_tasks(rows, form), ensure_ascii=False, indent=1), "utf-8")
    return [config, every, *each]


def read_export(
    path: Path,
    form: Form,
    *,
    accounts: Mapping[str, str] | None = None,
    known: Collection[str] = (),
    by_assignment: bool = False,
) -> list[Submission]:
    """The annotations of an export of the formats JSON or JSON-MIN; skipped ones (`was_cancelled`) are left out.

    accounts: the annotator of an account, by its e-mail address or its number. known: the annotators there are; an
    account that is named like one is theirs, and an annotation without an account is that of the task's annotator.
    by_assignment: all are those of the task's annotator, whatever the account. A CSV export is read as a sheet.

    Raises `AnswersError`.
    """
    items = read_json(path, AnswersError)
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise AnswersError(f"{path} is no export of Label Studio, which is a list of tasks.")
    found = []
    for number, item in enumerate(items, start=1):
        where = f"{path}, item {number:,}"
        full = "annotations" in item
        data = item.get("data") if full else item
        if not isinstance(data, dict) or not isinstance(data.get(form.item), str):
            raise AnswersError(f"{where} has no `{form.item}` in its data; only tasks that were made here can be read.")
        own = {name: _plain(data.get(name)) for name in (form.item, ASSIGNED_TO)}
        for account, answers in _answers(item["annotations"], where) if full else [(item.get("annotator"), item)]:
            annotator = _annotator(account, own[ASSIGNED_TO], accounts or {}, known)
            row = {name: _plain(value) for name, value in answers.items()} | own | {"annotator": annotator}
            found += rows_as_submissions([(where, row)], form, by_assignment=by_assignment)
    return found


def _answers(annotations: object, where: str) -> Iterator[tuple[object, dict[str, object]]]:
    """The account and the answers, by control, of each annotation of a task, in the order of their last changes."""
    if not isinstance(annotations, list) or not all(isinstance(entry, dict) for entry in annotations):
        raise AnswersError(f"{where}: its `annotations` are no list of objects.")
    done = (entry for entry in annotations if not entry.get("was_cancelled"))
    for entry in sorted(done, key=lambda entry: str(entry.get("updated_at") or entry.get("created_at") or "")):
        regions = entry.get("result")
        if not isinstance(regions, list):
            raise AnswersError(f"{where}: an annotation has no `result`.")
        found: dict[str, object] = {}
        for region in regions:
            value = region.get("value") if isinstance(region, dict) else None
            if isinstance(value, dict) and isinstance(region.get("from_name"), str):
                found[region["from_name"]] = value.get("choices", value.get("text"))
        yield entry.get("completed_by"), found


def _plain(value: object) -> str:
    """A value as a cell of a sheet; JSON-MIN has several lines of free text as an object."""
    if isinstance(value, dict):
        value = value.get("text")
    if isinstance(value, list):
        return "\n".join(map(str, value))
    return "" if value is None else str(value)


def _annotator(account: object, own: str, accounts: Mapping[str, str], known: Collection[str]) -> str:
    """Who works by an account, which is a number, an e-mail address, or an object with both."""
    if account is None:
        return own
    parts = [account.get(key) for key in ("email", "username", "id")] if isinstance(account, dict) else [account]
    names = [str(part) for part in parts if part is not None]
    mapped = [accounts[name] for name in names if name in accounts]
    return next((name for name in (*mapped, *names) if name in known), (*mapped, *names, "")[0])
