"""Label Studio: labeling configurations, tasks, and exports."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
from pluralbench_runs import one_line
from pluralbench_tables import read_json

from pluralbench_studies.errors import StudyError
from pluralbench_studies.forms import Form, Question, split_by_annotator
from pluralbench_studies.sheets import new_files

CONFIG = "label_config.xml"
TASKS = "tasks.json"
ASSIGNED_TO = "assigned_to"


def label_studio_config(form: Form) -> str:
    """Return the labeling configuration of a form, as XML: controls by the names of questions, variables `$FIELD`."""
    view = ET.Element("View")
    for name, title in form.fields.items():
        ET.SubElement(view, "Header", value=title)
        ET.SubElement(view, "Text", name=name, value=f"${name}")
        _add_controls(view, form, about=name, of=name)
    _add_controls(view, form, about=None, of=next(iter(form.fields)))
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _add_controls(view: ET.Element, form: Form, *, about: str | None, of: str) -> None:
    for question in form.questions:
        if question.about == about:
            _add_control(view, question, of)


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


def write_label_studio(folder: Path, shown: pl.DataFrame, form: Form) -> list[Path]:
    """Write `label_config.xml`, `tasks.json` with all tasks, and NAME.json with the tasks of each annotator.

    The data of a task are `form.item`, `annotator` (as `assigned_to`) and the fields; for `shown` see
    `split_by_annotator`.

    Raises:
        StudyError: If one of the files exists.
    """
    by_annotator = split_by_annotator(shown, form)
    config, *task_files = new_files(folder, [CONFIG, TASKS, *(f"{name}.json" for name in by_annotator)])
    config.write_text(label_studio_config(form), encoding="utf-8")
    for path, rows in zip(task_files, [pl.concat(by_annotator.values()), *by_annotator.values()], strict=True):
        tasks = [{"data": row} for row in rows.rename({"annotator": ASSIGNED_TO}).iter_rows(named=True)]
        path.write_text(json.dumps(tasks, ensure_ascii=False, indent=1), "utf-8")
    return [config, *task_files]


def export_rows(path: Path, item: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the annotations of an export in the format JSON or JSON-MIN, without skipped ones (`was_cancelled`).

    Yields:
        The place in the file, for errors, and a row with `item`, `assigned_to`, `annotator` (the account, which may be
        an object) and the answers.

    Raises:
        StudyError: If the file is not an export of such tasks.
    """
    tasks = read_json(path, StudyError)
    if not isinstance(tasks, list) or not all(isinstance(task, dict) for task in tasks):
        raise StudyError(f"{path} is not an export of Label Studio, which is a list of tasks.")
    for number, task in enumerate(tasks, start=1):
        where = f"{path}, item {number:,}"
        full = "annotations" in task
        data = task.get("data") if full else task
        if not isinstance(data, dict) or not isinstance(data.get(item), str):
            raise StudyError(f"{where} has no `{item}` in its data; give an export of the tasks of this study.")
        ids = {item: data[item], ASSIGNED_TO: data.get(ASSIGNED_TO)}
        for row in _read_annotations(task["annotations"], where) if full else [task]:
            yield where, row | ids


def _read_annotations(annotations: object, where: str) -> Iterator[dict[str, Any]]:
    """Yield the account and the answers of each annotation of a task, in the order of the last changes."""
    if not isinstance(annotations, list) or not all(isinstance(entry, dict) for entry in annotations):
        raise StudyError(f"{where}: its `annotations` are not a list of objects.")
    done = (entry for entry in annotations if not entry.get("was_cancelled"))
    for entry in sorted(done, key=lambda entry: _changed_at(entry, where)):
        regions = entry.get("result")
        if not isinstance(regions, list):
            raise StudyError(f"{where}: an annotation has no `result`.")
        row: dict[str, Any] = {"annotator": entry.get("completed_by")}
        for region in regions:
            value = region.get("value") if isinstance(region, dict) else None
            if isinstance(value, dict) and isinstance(region.get("from_name"), str):
                answer = value.get("choices", value.get("text"))
                # Several regions of a question are several answers, which a single choice refuses.
                answers = answer if isinstance(answer, list) else [] if answer is None else [answer]
                row.setdefault(region["from_name"], []).extend(answers)
        yield row


def _changed_at(entry: dict[str, Any], where: str) -> datetime:
    """Return the time of an annotation's last change; one without a time is the first."""
    text = str(entry.get("updated_at") or entry.get("created_at") or datetime.min.isoformat())
    try:
        time = datetime.fromisoformat(text)
        return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
    except (ValueError, OverflowError):
        raise StudyError(f"{where}: {one_line(text, 40)!r} is not the time of an annotation.") from None
