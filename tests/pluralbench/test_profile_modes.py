"""`pluralbench report` of models that were run with and without something told of the person: a table and a figure."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from defusedxml import ElementTree
from drawn_figures import draw
from made_runs import changed
from planned_users import by_words_told, people
from pluralbench import compare
from pluralbench.errors import EvaluationError
from pluralbench.reports.profile_modes import modes_of
from pluralbench.results import Run
from verbs import by_text, score
from written_tables import write

Command = Callable[..., tuple[int, str, str]]


def alone(groups: Any) -> list[list[float]]:
    """Another model of a family."""
    return by_text(groups)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Run]:
    """Runs of two functions by the names of their folders; one of them counts the words that it is told."""
    folder = tmp_path_factory.mktemp("modes")
    rows = people(40)
    data = write(folder / "people.jsonl", rows)
    titles = {row["id"]: [aspect["aspect"] for aspect in row["rubric_aspects"]] for row in rows}
    plans = {
        "true": write(folder / "true.jsonl", [{"id": name, "aspects": own} for name, own in titles.items()]),
        "idle": write(folder / "idle.jsonl", [{"id": name, "aspects": ["nothing"]} for name in titles]),
    }
    asked: dict[str, tuple[Any, dict[str, Any]]] = {
        "words-none": (by_words_told, {}),
        "words-raw": (by_words_told, {"profile": "raw"}),
        "words-true": (by_words_told, {"profile": "plan", "plans": plans["true"]}),
        "words-idle": (by_words_told, {"profile": "plan", "plans": plans["idle"]}),
        "alone-none": (alone, {}),
        "alone-raw": (alone, {"profile": "raw"}),
        "single": (by_text, {}),
    }
    return {
        name: score(model, data=data, benchmark="personalized", out=folder / "runs" / name, **told)
        for name, (model, told) in asked.items()
    }


def test_runs_belong_together_by_model(runs: dict[str, Run]) -> None:
    found = modes_of(list(runs.values()))
    assert {tuple(one.run.path.name for one in own) for own in found} == {
        ("words-none", "words-raw", "words-idle", "words-true"),
        ("alone-none", "alone-raw"),
    }
    assert all(own[0].mode == "none" and own[0].against_none is None for own in found)
    [of_true] = [one for own in found for one in own if one.run.path.name == "words-true"]
    assert of_true.against_none == compare(runs["words-none"], runs["words-true"]).headline
    assert of_true.run.headline.value == 1.0
    assert of_true.against_none is not None
    assert of_true.against_none.difference is not None
    assert of_true.against_none.difference > 0.3


@pytest.mark.parametrize(
    ("bare", "told", "together"),
    [
        (("error", 0), ("truncate-prompt", 0), True),
        (("error", 0), ("truncate-prompt", 2), True),
        (("drop", 1), ("truncate-prompt", 2), False),
        (("drop", 1), ("drop", 2), True),
        (("drop", 1), ("error", 0), True),
    ],
)
def test_overflow_rules_put_runs_apart_only_where_both_were_met(
    runs: dict[str, Run], bare: tuple[str, int], told: tuple[str, int], together: bool
) -> None:
    def cut(run: Run, rule: str, items: int) -> Run:
        return changed(run, scoring__on_overflow=rule, items_truncated=items)

    found = modes_of([cut(runs["words-none"], *bare), cut(runs["words-raw"], *told)])
    assert [[one.mode for one in own] for own in found] == ([["none", "raw"]] if together else [])


def test_the_report_has_a_row_for_each_mode(run: Command, runs: dict[str, Run]) -> None:
    folder = runs["single"].path.parent
    status, said, _ = run("report", folder, "--notes")
    assert status == 0
    table = " ".join(said[said.index("against none") :].split())
    assert "Against none: points gained over the same model without user context" in table
    bare, told = runs["words-none"].headline.value, runs["words-true"].headline.value
    assert bare is not None
    assert told is not None
    assert f"{100 * (told - bare):+.1f} [" in table
    status, said, _ = run("report", folder, "--format", "json")
    rows = {Path(row["run"]).name: row for row in json.loads(said) if row["run"]}
    assert rows["words-none"]["against_none"] is None
    assert rows["words-true"]["against_none"]["difference"] == pytest.approx(told - bare)
    status, said, _ = run("report", folder / "single", folder / "alone-none", "--format", "json")
    assert "against_none" not in said


def test_the_figure_has_a_group_for_each_family(runs: dict[str, Run], tmp_path: Path) -> None:
    paths = draw(list(runs.values()), tmp_path, {"Words and all": "*alone*"})
    [svg] = [path for path in paths if path.name == "profile_modes_personalized.svg"]
    texts = {text.strip() for one in ElementTree.parse(svg).iter() if (text := one.text)}
    assert {"none", "posts", "plan (words-true)", "plan (words-idle)"} <= texts
    assert any("Words and all" in text for text in texts)
    with pytest.raises(EvaluationError, match=r"pattern Qwen\* of the family Qwen matches none of the models "):
        draw(list(runs.values()), tmp_path, {"Qwen": "Qwen*"})


def test_a_family_has_a_name_and_models(run: Command, runs: dict[str, Run], tmp_path: Path) -> None:
    status, _, said = run("report", runs["single"].path, "--plots", tmp_path, "--family", "Qwen")
    assert (status, "--family 'Qwen' is not of the form NAME=MODELS, such as Qwen=Qwen*." in said) == (2, True)
