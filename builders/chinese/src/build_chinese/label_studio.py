"""Tasks for Label Studio, and its exports."""

import json
from collections.abc import Collection, Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl

from build_chinese.annotation_formats import ASSIGNED_TO, Submission, flat
from build_chinese.errors import AnnotationsError
from build_chinese.sheets import (
    LETTERS,
    MARK_WORDS,
    RUBRIC,
    Shown,
    by_annotator,
    new_files,
    pair_field,
    score_field,
    shown,
)
from build_chinese.text_files import read_text

CONFIG = "label_config.xml"
TASKS = "tasks.json"
PAIRS = "pairs"


def label_config(count: int) -> str:
    """The labelling configuration for tasks that show `count` responses.

    Its controls are named like the columns of a sheet: `A_B` for a mark on a pair, `score_A`, `remark`; the variables
    are `$prompt`, `$A` and so on.
    """
    view = ET.Element("View")
    _text(view, "题目", "prompt")
    for place, letter in enumerate(LETTERS[:count]):
        _text(view, f"回答 {letter}", letter)
        _choices(view, score_field(place), letter, {score: f"{score} {words}" for score, words in RUBRIC.items()})
    for first, second in combinations(range(count), 2):
        a, b = LETTERS[first], LETTERS[second]
        ET.SubElement(view, "Header", value=f"{a} 与 {b} 哪个更好？", size="5")
        better = {"g": a, "b": b}
        _choices(
            view,
            pair_field(first, second),
            "prompt",
            {m: words.format(better.get(m)) for m, words in MARK_WORDS.items()},
        )
    ET.SubElement(view, "Header", value="备注", size="5")
    ET.SubElement(view, "TextArea", name="remark", toName="prompt", rows="2", maxSubmissions="1", required="false")
    ET.indent(view)
    return ET.tostring(view, encoding="unicode") + "\n"


def _text(view: ET.Element, title: str, name: str) -> None:
    ET.SubElement(view, "Header", value=title)
    ET.SubElement(view, "Text", name=name, value=f"${name}")


def _choices(view: ET.Element, name: str, of: str, words: Mapping[str, str]) -> None:
    options = {"choice": "single-radio", "showInline": "true", "required": "true"}
    choices = ET.SubElement(view, "Choices", {"name": name, "toName": of, **options})
    for alias, value in words.items():
        ET.SubElement(choices, "Choice", value=value, alias=alias)


def write_label_studio(folder: Path, tasks: pl.DataFrame, prompts: pl.DataFrame) -> list[Path]:
    """Write `label_config.xml`, `tasks.json` with all tasks, NAME.json with those of each annotator, and `guide.md`.

    Tasks of two responses need another configuration, so they lie in the folder `pairs`, by the same names. Returns the
    paths. Raises `TasksError` for files that are there already.
    """
    items = shown(tasks, prompts)
    written = []
    for count, place in ((3, folder), (2, folder / PAIRS)):
        ours = [item for item in items if len(item.answers) == count]
        if not ours:
            continue
        people = by_annotator(ours)
        config, every, *each = new_files(place, [CONFIG, TASKS, *(f"{name}.json" for name in people)])
        config.write_text(label_config(count), encoding="utf-8")
        for path, theirs in ((every, ours), *zip(each, people.values(), strict=True)):
            path.write_text(json.dumps([_task(item) for item in theirs], ensure_ascii=False, indent=1), "utf-8")
        written += [config, every, *each]
    return written


def _task(item: Shown) -> dict[str, Any]:
    answers = dict(zip(LETTERS, item.answers, strict=False))
    return {"data": {"task": item.task, ASSIGNED_TO: item.annotator, "prompt": item.prompt, **answers}}


def read_export(
    path: Path, *, accounts: Mapping[str, str], known: Collection[str], assigned: bool = False
) -> list[Submission]:
    """The annotations of an export of the formats JSON or JSON-MIN; skipped ones (`was_cancelled`) are left out.

    accounts: the annotator of an account, by its e-mail address or its number. known: the annotators there are; an
    account that is named like one is theirs, and an annotation without an account is that of the task's annotator.
    assigned: all are those of the task's annotator, whatever the account.

    Raises `AnnotationsError`.
    """
    try:
        items = json.loads(read_text(path, AnnotationsError))
    except (ValueError, RecursionError) as fault:
        raise AnnotationsError(f"{path} is not JSON ({fault}).") from None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise AnnotationsError(f"{path} is no export of Label Studio, which is a list of tasks.")
    found = []
    for number, item in enumerate(items, start=1):
        where = f"{path}, item {number:,}"
        full = "annotations" in item
        data = item.get("data") if full else item
        if not isinstance(data, dict) or not isinstance(data.get("task"), str):
            raise AnnotationsError(f"{where} has no `task` in its data; only tasks that were made here can be read.")
        own = {name: _plain(data.get(name)) for name in ("task", ASSIGNED_TO)}
        for account, answers in _answers(item["annotations"], where) if full else [(item.get("annotator"), item)]:
            annotator = _annotator(account, own[ASSIGNED_TO], accounts, known)
            row = {name: _plain(value) for name, value in answers.items()} | own | {"annotator": annotator}
            found += flat([row], where, assigned=assigned)
    return found


def _answers(annotations: object, where: str) -> Iterator[tuple[object, dict[str, object]]]:
    """The account and the answers, by control, of each annotation of a task, in the order of their last changes."""
    if not isinstance(annotations, list) or not all(isinstance(entry, dict) for entry in annotations):
        raise AnnotationsError(f"{where}: its `annotations` are no list of objects.")
    done = (entry for entry in annotations if not entry.get("was_cancelled"))
    for entry in sorted(done, key=lambda entry: str(entry.get("updated_at") or entry.get("created_at") or "")):
        regions = entry.get("result")
        if not isinstance(regions, list):
            raise AnnotationsError(f"{where}: an annotation has no `result`.")
        found: dict[str, object] = {}
        for region in regions:
            value = region.get("value") if isinstance(region, dict) else None
            if isinstance(value, dict) and isinstance(region.get("from_name"), str):
                found[region["from_name"]] = value.get("choices", value.get("text"))
        yield entry.get("completed_by"), found


def _plain(value: object) -> str:
    """A value as a cell of a sheet; JSON-MIN has several lines of a remark as an object."""
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
