"""Label Studio: configuration, tasks and exports, in the shapes that its documentation gives and its own SDK makes."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import polars as pl
import pytest
from pluralbench_studies import (
    Form,
    Question,
    StudyError,
    label_studio_config,
    preference,
    read_answers,
    score,
    write_label_studio,
)

FORM = Form(
    {"post": "The <post> & who wrote it", "x": "回答", "y": "תשובה"},
    [
        preference("better", "One", "Two", title="Which?"),
        score("good_x", 0, 3, about="x"),
        Question("why", "Why?", optional=True),
    ],
)
SHOWN = pl.DataFrame(
    [
        ("i1", "an", "=1+1", "甲 <b>&amp;\nline", "مرحبا"),
        ("i1", "bo", "=1+1", "甲 <b>&amp;\nline", "مرحبا"),
        ("i2", "an", "p", "x", "y"),
    ],
    schema=["item", "annotator", *FORM.fields],
    orient="row",
)


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_configuration_names_its_controls_like_a_sheet() -> None:
    view = ET.fromstring(label_studio_config(FORM))  # noqa: S314 - our own
    names = [part.get("name") or part.get("value") for part in view]
    assert names == [
        *("The <post> & who wrote it", "post", "回答", "x", "good_x", "תשובה", "y"),
        *("Which?", "better", "Why?", "why"),
    ]
    controls = {part.get("name"): part for part in view if part.tag == "Choices"}
    assert [choice.get("alias") for choice in controls["better"]] == ["1", "2", "s"]
    assert [choice.get("value") for choice in controls["good_x"]] == ["0", "1", "2", "3"]
    assert {name: part.get("toName") for name, part in controls.items()} == {"good_x": "x", "better": "post"}
    assert [text.get("value") for text in view.iter("Text")] == ["$post", "$x", "$y"]
    assert [area.get("name") for area in view.iter("TextArea")] == ["why"]


def test_what_is_written(tmp_path: Path) -> None:
    config, every, an, bo = write_label_studio(tmp_path, SHOWN, FORM)
    assert config.read_text(encoding="utf-8") == label_studio_config(FORM)
    assert [an.name, bo.name] == ["an.json", "bo.json"]
    assert load(every) == load(an) + load(bo)
    assert load(bo) == [
        {"data": {"item": "i1", "assigned_to": "bo", "post": "=1+1", "x": "甲 <b>&amp;\nline", "y": "مرحبا"}}
    ]
    with pytest.raises(StudyError):
        write_label_studio(tmp_path, SHOWN, FORM)


def region(name: str, value: str) -> dict[str, Any]:
    key = "text" if name == "why" else "choices"
    return {"id": f"r-{name}", "from_name": name, "to_name": "post", "value": {key: [value]}}


def annotation(completed_by: object, answers: Mapping[str, str], **more: Any) -> dict[str, Any]:
    return {"completed_by": completed_by, "result": [region(*answer) for answer in answers.items()], **more}


def export(folder: Path, item: str, *annotations: Mapping[str, Any], assigned_to: str = "an") -> Path:
    path = folder / "export.json"
    made = [{"id": 1, "data": {"item": item, "assigned_to": assigned_to}, "annotations": list(annotations)}]
    path.write_text(json.dumps(made, ensure_ascii=False), encoding="utf-8")
    return path


SAID = {"better": "1", "good_x": "3", "why": "好\n吗"}


@pytest.mark.parametrize(
    ("account", "accounts"),
    [
        ("an", {}),
        ({"id": 7, "email": "an", "first_name": "", "last_name": ""}, {}),
        (7, {"7": "an"}),
        ("a@example.org", {"a@example.org": "an"}),
        ({"id": 7, "email": "a@example.org"}, {"a@example.org": "an"}),
        ({"id": 7, "email": "a@example.org"}, {"7": "an"}),
        (None, {}),
    ],
)
def test_whose_an_annotation_is(tmp_path: Path, account: object, accounts: dict[str, str]) -> None:
    path = export(tmp_path, "i1", annotation(account, SAID))
    found = read_answers([path], FORM, SHOWN, accounts=accounts).answers
    assert found.rows() == [("i1", "an", name, answer) for name, answer in SAID.items()]


def test_the_last_change_counts_and_what_was_skipped_does_not(tmp_path: Path) -> None:
    changes = [
        annotation("an", SAID | {"better": "s"}, updated_at="2026-02-02T08:00:00Z"),
        annotation("an", SAID, updated_at="2026-02-01T08:00:00Z"),
        annotation("an", SAID, updated_at="2026-02-03T08:00:00Z", was_cancelled=True),
        annotation("bo", {}),
    ]
    found = read_answers([export(tmp_path, "i1", *changes)], FORM, SHOWN)
    assert dict(found.answers.select("question", "answer").iter_rows()) == SAID | {"better": "s"}
    assert found.problems.filter(kind="double submission").height == 1
    nothing = read_answers([export(tmp_path, "i1", *changes[2:])], FORM, SHOWN)
    assert nothing.answers.is_empty()
    assert nothing.problems["kind"].to_list() == ["missing"] * 3


def test_the_last_change_is_the_last_in_time_whatever_the_zone(tmp_path: Path) -> None:
    changes = [
        annotation("an", SAID | {"better": better}, updated_at=time)
        for better, time in (("2", "2026-02-02T09:30:00Z"), ("1", "2026-02-02T10:00:00+02:00"))
    ]
    found = read_answers([export(tmp_path, "i1", *changes)], FORM, SHOWN)
    assert dict(found.answers.select("question", "answer").iter_rows())["better"] == "2"
    with pytest.raises(StudyError, match="item 1: 'yesterday' is not the time of an annotation"):
        read_answers([export(tmp_path, "i1", annotation("an", SAID, updated_at="yesterday"))], FORM, SHOWN)


def test_two_regions_for_a_single_choice_are_refused_as_two_choices_are(tmp_path: Path) -> None:
    twice = annotation("an", SAID)
    twice["result"].append(region("better", "2"))
    with pytest.raises(StudyError, match=r"item 1 \(item i1\): the answer '1\\n2' to better is not one of 1, 2, s"):
        read_answers([export(tmp_path, "i1", twice)], FORM, SHOWN)


def test_json_min_says_the_same(tmp_path: Path) -> None:
    path = tmp_path / "min.json"
    own = {"item": "i1", "assigned_to": "bo", "annotator": "an"}
    path.write_text(json.dumps([own | SAID | {"why": {"text": ["好", "吗"]}}]), encoding="utf-8")
    assert read_answers([path], FORM, SHOWN).answers.rows() == [("i1", "an", *answer) for answer in SAID.items()]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ('{"a": 1}', "{} is not an export of Label Studio, which is a list of tasks."),
        ('[{"data": {"text": "x"}, "annotations": []}]',
         "{}, item 1 has no `item` in its data; give an export of the tasks of this study."),
        ('[{"data": {"item": "i1"}, "annotations": [3]}]', "{}, item 1: its `annotations` are not a list of objects."),
        ('[{"data": {"item": "i1"}, "annotations": [{"completed_by": 1}]}]',
         "{}, item 1: an annotation has no `result`."),
        ('[{"item": "i7", "annotator": "an", "better": "1"}]',
         "{}, item 1: there is no item 'i7'; give the sheets of this study, whose items are others."),
        ('[{"item": "i1", "annotator": "an", "better": "3"}]',
         "{}, item 1 (item i1): the answer '3' to better is not one of 1, 2, s."),
    ],
)  # fmt: skip
def test_exports_that_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "export.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StudyError, match=re.escape(message.format(path))):
        read_answers([path], FORM, SHOWN)


# Runs with Label Studio's SDK, which has no place among the project's own libraries: FOLDER is what was written for it.
SDK = """
import json, random, sys
from pathlib import Path
from label_studio_sdk.converter import Converter
from label_studio_sdk.label_interface import LabelInterface

folder = Path(sys.argv[1])
config = (folder / "label_config.xml").read_text(encoding="utf-8")
interface = LabelInterface(config)
interface.validate()
random.seed(5)
tasks = json.loads((folder / "tasks.json").read_text(encoding="utf-8"))
items = []
for number, task in enumerate(tasks, start=1):
    assert interface.validate_task(task), task
    assert not interface.validate_task({"data": {name: text for name, text in task["data"].items() if name != "x"}})
    annotation = interface.generate_sample_annotation()
    assert interface.validate_annotation(annotation), annotation
    account = {"id": number, "email": task["data"]["assigned_to"]}
    annotation |= {"id": number, "completed_by": account if number % 2 else number}
    items.append(task | {"id": number, "annotations": [annotation]})
strange = {"result": [items[0]["annotations"][0]["result"][0] | {"value": {"choices": ["?"]}}]}
assert not interface.validate_annotation(strange)
path = folder / "export.json"
path.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
converter = Converter(config, str(folder))
for name in ("JSON_MIN", "CSV"):
    converter.convert(str(path), str(folder / name), name, is_dir=False)
"""


@pytest.fixture(scope="module")
def sdk() -> list[str]:
    """The command that runs Python with Label Studio's SDK, in an environment of its own."""
    uv = shutil.which("uv")
    if uv is None:
        pytest.skip("uv is not there, which fetches Label Studio's SDK")
    command = [uv, "run", "--isolated", "--no-project", "--with", "label-studio-sdk", "python"]
    ready = subprocess.run([*command, "-c", "import label_studio_sdk"], capture_output=True, text=True, check=False)
    if ready.returncode and "label_studio_sdk" not in ready.stderr:
        pytest.skip(f"Label Studio's SDK cannot be fetched here: {' '.join(ready.stderr.split())[-200:]}")
    assert ready.returncode == 0, ready.stderr
    return command


@pytest.mark.heavy
def test_label_studios_own_sdk_takes_what_is_written_and_its_exports_are_read(tmp_path: Path, sdk: list[str]) -> None:
    rows = [(f"i{number}", name, f"p{number}", "甲", "乙") for number in range(12) for name in ("an", "bo")]
    shown = pl.DataFrame(rows, schema=SHOWN.schema, orient="row")
    write_label_studio(tmp_path, shown, FORM)
    done = subprocess.run([*sdk, "-c", SDK, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = []
    for entry in load(tmp_path / "export.json"):
        data, (made,) = entry["data"], entry["annotations"]
        for part in made["result"]:
            value = part["value"].get("choices") or part["value"]["text"]
            text = "\n".join(value).strip()
            expected += [(data["item"], data["assigned_to"], part["from_name"], text)] if text else []
    assert {answer for *_, name, answer in expected if name == "better"} == {"1", "2", "s"}
    numbered = enumerate(load(tmp_path / "tasks.json"), start=1)
    accounts = {str(number): task["data"]["assigned_to"] for number, task in numbered}
    for path in ("export.json", "JSON_MIN/result.json", "CSV/result.csv"):
        found = read_answers([tmp_path / path], FORM, shown, accounts=accounts).answers.rows()
        choices = [row for row in found if row[2] != "why"]
        assert sorted(choices) == sorted(row for row in expected if row[2] != "why")
        assert path.endswith("csv") or sorted(found) == sorted(expected)
