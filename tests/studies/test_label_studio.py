"""Tasks for Label Studio and its exports, in the shapes that its documentation gives and that its own SDK makes."""

import json
import re
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from itertools import combinations
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
from build_chinese.annotation.annotations import MISSING, TWICE, Annotations, read
from build_chinese.annotation.tasks import Tasks, make
from build_chinese.errors import AnnotationsError, TasksError
from build_chinese.label_studio import label_config, write_label_studio
from chinese_prompts import counted_prompts, prompts_of

PEOPLE = ["ann-1", "ann-2", "ann-3", "ann-4", "ann-5"]
PROMPTS = prompts_of(
    {"p": ["=1+1", "乙", "丙 <b>&amp;\n第二行"], "q": ["甲", "乙"], "r": ["一", "二", "三", "四", "五"]}
)
TASKS = make(PROMPTS, PEOPLE, Tasks(overlap=0.3, check_share=0.3), seed=1, checks=["p-t1"])
SHOWN = dict(TASKS.select("task", "responses").iter_rows())


def load(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_configuration_names_its_controls_like_a_sheet() -> None:
    view = ET.fromstring(label_config(3))  # noqa: S314 - our own
    assert [text.get("value") for text in view.iter("Text")] == ["$prompt", "$A", "$B", "$C"]
    choices = {control.get("name"): [choice.get("alias") for choice in control] for control in view.iter("Choices")}
    assert choices == {
        **{f"score_{letter}": ["0", "1", "2", "3", "4", "5"] for letter in "ABC"},
        **{pair: ["g", "b", "s"] for pair in ("A_B", "A_C", "B_C")},
    }
    words = {control.get("name"): [choice.get("value") for choice in control] for control in view.iter("Choices")}
    assert words["A_C"] == ["A更好", "C更好", "不相上下"]
    assert [area.get("name") for area in view.iter("TextArea")] == ["remark"]
    pair = ET.fromstring(label_config(2))  # noqa: S314 - our own
    assert [control.get("name") for control in pair.iter("Choices")] == ["score_A", "score_B", "A_B"]


def test_what_is_written_and_what_it_hides(tmp_path: Path) -> None:
    paths = write_label_studio(tmp_path, TASKS, PROMPTS)
    for folder, size in ((tmp_path, 3), (tmp_path / "pairs", 2)):
        ours = {
            (task, name) for task, name in TASKS.select("task", "annotator").iter_rows() if len(SHOWN[task]) == size
        }
        tasks = load(folder / "tasks.json")
        assert {(task["data"]["task"], task["data"]["assigned_to"]) for task in tasks} == ours
        assert len(tasks) == len(ours)
        each = [load(folder / f"{name}.json") for name in sorted({name for _, name in ours})]
        assert [task for theirs in each for task in theirs] == tasks
        assert (folder / "label_config.xml").read_text(encoding="utf-8") == label_config(size)
    contents = {response["id"]: response["content"] for row in PROMPTS["responses"] for response in row}
    for task in load(tmp_path / "tasks.json"):
        data = task["data"]
        assert list(data) == ["task", "assigned_to", "prompt", "A", "B", "C"]
        assert [data[letter] for letter in "ABC"] == [contents[response] for response in SHOWN[data["task"]]]
    text = "".join(path.read_text(encoding="utf-8") for path in paths)
    for secret in ("secret-model", "p-a", "overlap", '"kind"', "check"):
        assert secret not in text
    with pytest.raises(TasksError, match="is there already; choose another folder, so that no annotation is lost"):
        write_label_studio(tmp_path, TASKS, PROMPTS)
    write_label_studio(tmp_path / "triples", make(counted_prompts(3), PEOPLE, Tasks(), seed=1), counted_prompts(3))
    assert not (tmp_path / "triples" / "pairs").exists()


def region(name: str, value: str, of: str = "prompt") -> dict[str, Any]:
    kind = "textarea" if name == "remark" else "choices"
    key = "text" if name == "remark" else "choices"
    return {"id": f"r-{name}", "from_name": name, "to_name": of, "type": kind, "value": {key: [value]}}


def item(task: str, *annotations: Mapping[str, Any], assigned_to: str = "ann-1") -> dict[str, Any]:
    return {"id": 1, "data": {"task": task, "assigned_to": assigned_to}, "annotations": list(annotations)}


def annotation(completed_by: object, answers: Mapping[str, str], **more: Any) -> dict[str, Any]:
    return {"completed_by": completed_by, "result": [region(*answer) for answer in answers.items()], **more}


def exported(folder: Path, items: Sequence[Any], **named: Any) -> Annotations:
    path = folder / "export.json"
    path.write_text(json.dumps(items, ensure_ascii=False), encoding="utf-8")
    return read([path], TASKS, **named)


TRIPLE = {"A_B": "g", "A_C": "s", "B_C": "b", "score_A": "4", "score_B": "2", "remark": "好"}


@pytest.mark.parametrize(
    ("account", "accounts"),
    [
        ("ann-1", {}),
        ({"id": 7, "email": "ann-1", "first_name": "", "last_name": ""}, {}),
        (7, {"7": "ann-1"}),
        ("a@example.org", {"a@example.org": "ann-1"}),
        ({"id": 7, "email": "a@example.org"}, {"a@example.org": "ann-1"}),
        ({"id": 7, "email": "a@example.org"}, {"7": "ann-1"}),
        (None, {}),
    ],
)
def test_an_export_is_read(tmp_path: Path, account: object, accounts: dict[str, str]) -> None:
    found = exported(tmp_path, [item("p-t1", annotation(account, TRIPLE))], accounts=accounts)
    first, second, third = SHOWN["p-t1"]
    assert found.marks.rows() == [
        ("p", "p-t1", "ann-1", first, second, "1"),
        ("p", "p-t1", "ann-1", first, third, "s"),
        ("p", "p-t1", "ann-1", second, third, "2"),
    ]
    assert found.scores.select("response", "score").rows() == [(first, 4.0), (second, 2.0)]
    assert found.remarks["remark"].to_list() == ["好"]


def test_accounts_that_say_nothing(tmp_path: Path) -> None:
    items = [item("p-t1", annotation(1, TRIPLE), assigned_to="ann-3")]
    with pytest.raises(
        AnnotationsError, match=r"item 1: there is no annotator '1'; say whose account it is with --account"
    ):
        exported(tmp_path, items)
    assert set(exported(tmp_path, items, assigned=True).marks["annotator"]) == {"ann-3"}


def test_the_last_change_counts_and_what_was_skipped_does_not(tmp_path: Path) -> None:
    answers = [
        annotation("ann-1", TRIPLE | {"A_B": "s"}, updated_at="2026-02-02T08:00:00Z"),
        annotation("ann-1", TRIPLE, updated_at="2026-02-01T08:00:00Z"),
        annotation("ann-1", TRIPLE, updated_at="2026-02-03T08:00:00Z", was_cancelled=True),
        annotation("ann-2", {}),
    ]
    found = exported(tmp_path, [item("p-t1", *answers)])
    assert found.marks["mark"].to_list() == ["s", "s", "2"]
    assert found.problems.filter(kind=TWICE).height == 1
    others = exported(tmp_path, [item("p-t1", *answers[2:])]).problems
    assert others["kind"].unique().to_list() == [MISSING]
    assert others.height == TASKS.height


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "{} is not JSON (Expecting property name enclosed in double quotes: line 1 column 2 (char 1))."),
        ("[" * 100_000, "{} is not JSON (maximum recursion depth exceeded"),
        ('{"a": 1}', "{} is no export of Label Studio, which is a list of tasks."),
        ('[{"data": {"text": "x"}, "annotations": []}]',
         "{}, item 1 has no `task` in its data; only tasks that were made here can be read."),
        ('[{"data": {"task": "p-t1"}, "annotations": [3]}]', "{}, item 1: its `annotations` are no list of objects."),
        ('[{"data": {"task": "p-t1"}, "annotations": [{"completed_by": 1}]}]',
         "{}, item 1: an annotation has no `result`."),
        ('[{"task": "p-t7", "annotator": "ann-1", "A_B": "g"}]',
         "{}, item 1: there is no task 'p-t7'; the tasks are others, or were made anew."),
    ],
)  # fmt: skip
def test_exports_that_are_refused(tmp_path: Path, content: str, message: str) -> None:
    path = tmp_path / "export.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(AnnotationsError, match=re.escape(message.format(path))):
        read([path], TASKS)


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
    assert not interface.validate_task({"data": {name: text for name, text in task["data"].items() if name != "A"}})
    annotation = interface.generate_sample_annotation()
    assert interface.validate_annotation(annotation), annotation
    account = {"id": number, "email": task["data"]["assigned_to"]}
    annotation |= {"id": number, "completed_by": account if number % 2 else number}
    items.append(task | {"id": number, "annotations": [annotation]})
strange = {"result": [items[0]["annotations"][0]["result"][0] | {"value": {"choices": ["x"]}}]}
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
@pytest.mark.parametrize("size", [3, 2])
def test_label_studios_own_sdk_takes_what_is_written_and_its_exports_are_read(
    tmp_path: Path, sdk: list[str], size: int
) -> None:
    prompts = counted_prompts(5, 3, 4, *[2] * 20)
    tasks = make(prompts, PEOPLE, Tasks(overlap=0.5), seed=1)
    shown = dict(tasks.select("task", "responses").iter_rows())
    write_label_studio(tmp_path, tasks, prompts)
    folder = tmp_path if size == 3 else tmp_path / "pairs"
    done = subprocess.run([*sdk, "-c", SDK, str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected, remarks = [], []
    for entry in load(folder / "export.json"):
        data, (made,) = entry["data"], entry["annotations"]
        chosen = {part["from_name"]: part["value"] for part in made["result"]}
        responses = dict(zip("ABC", shown[data["task"]], strict=False))
        for a, b in combinations(responses, 2):
            mark = {"g": "1", "b": "2", "s": "s"}[chosen[f"{a}_{b}"]["choices"][0]]
            expected.append((data["task"], data["assigned_to"], responses[a], responses[b], mark))
        remarks.append(
            (data["task"], data["assigned_to"], "\n".join(chosen.get("remark", {"text": []})["text"]).strip())
        )
    assert {mark for *_, mark in expected} == {"1", "2", "s"}
    numbered = enumerate(load(folder / "tasks.json"), start=1)
    accounts = {str(number): task["data"]["assigned_to"] for number, task in numbered}
    results = [folder / "export.json", folder / "JSON_MIN" / "result.json", folder / "CSV" / "result.csv"]
    for path in results:
        found = read([path], tasks, accounts=accounts)
        assert sorted(found.marks.drop("prompt").iter_rows()) == sorted(expected)
        assert found.scores.height == len(remarks) * size
        if path.suffix == ".json":
            assert sorted(found.remarks.drop("prompt").iter_rows()) == sorted(row for row in remarks if row[2])
